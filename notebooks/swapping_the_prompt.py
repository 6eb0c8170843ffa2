# %% [markdown]
# # Swapping the prompt
#
# One network, its weights fixed once and for all. It is told by its prompt which examples to learn from, and by
# features of the prompt which model to fit: nothing in the network changes.
#
# A step of gradient descent is a few attention layers; the layers below are 400 such steps, which share their weights.

# %%
import hashlib

import numpy as np

from anchorhead import incontext

STEPS, COLUMNS = 400, 3
net = incontext.many_learners(("squared", "logistic", "huber"), steps=STEPS, features=COLUMNS, intercept=True)


def fingerprint(net):
    digest = hashlib.sha256()
    for weights in net.module().state_dict().values():
        digest.update(weights.numpy().tobytes())
    return digest.hexdigest()[:12]


before = fingerprint(net)
print(f"{STEPS} steps, {net.parameters:,} numbers, fingerprint {before}")

# %% [markdown]
# ## Three data sets
#
# Of different sizes, with different truths. The columns are standardised outside; all else is inside.

# %%
rng = np.random.default_rng(7)


def made(rows, truth, noise):
    X = rng.standard_normal((rows, COLUMNS)) @ (np.eye(COLUMNS) + 0.4)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X @ truth + noise * rng.standard_normal(rows)
    return X, (y - y.mean()) / y.std()


tables = {
    "short": made(40, [1.0, -2.0, 0.5], 0.3),
    "long": made(400, [0.0, 1.0, 1.0], 1.0),
    "with outliers": made(150, [2.0, 0.0, -1.0], 0.2),
}
tables["with outliers"][1][::15] += 6.0

# %% [markdown]
# ## A prompt
#
# Each example is a token: its columns and a 1 for the intercept, the same times the rate, the label, and flags that say
# which model to fit. A token for each penalised weight and one for where to start follow, then the negatives of all.

# %%
X, y = tables["short"]
prompt = net.prompt(X, y, loss="squared", rate=0.3, penalty=0.01)
print("tokens x features", prompt.shape)
print("the first token", np.round(prompt[0], 3))

# %% [markdown]
# ## Three models
#
# Least squares with a penalty, logistic regression on whether the label is above 0, and Huber's loss, which outliers
# cannot pull. What comes out of the network is compared with gradient descent itself, carried out in float64.

# %%
models = {"squared": {"rate": 0.3, "penalty": 0.01}, "logistic": {"rate": 1.0, "penalty": 0.01}, "huber": {"rate": 0.3}}
print(f"{'data set':<15}{'model':<10}{'w0':>9}{'w1':>9}{'w2':>9}{'intercept':>11}   off exact descent")
for name, (X, y) in tables.items():
    for loss, words in models.items():
        labels = (y > 0).astype(float) if loss == "logistic" else y
        prompt = net.prompt(X, labels, loss=loss, **words)
        w = net(prompt)
        off = np.abs(w - net.exact(prompt)).max()
        print(f"{name:<15}{loss:<10}" + "".join(f"{entry:>9.4f}" for entry in w[:-1]) + f"{w[-1]:>11.4f}   {off:.1e}")
print(f"fingerprint {fingerprint(net)}: {'unchanged' if fingerprint(net) == before else 'changed'}")

# %% [markdown]
# Look at the rows of the table with outliers: its truth is in the proportion 2 : 0 : -1. Least squares moves its
# intercept and its weights towards the outliers, Huber's loss hardly does.

# %% [markdown]
# ## Is it right?
#
# Least squares with a penalty has a closed form, and the forward pass agrees with it.

# %%
for name, (X, y) in tables.items():
    A = np.column_stack([X, np.ones(len(y))])
    penalty = 0.01 * np.diag([1.0] * COLUMNS + [0.0])
    closed = np.linalg.solve(A.T @ A / len(y) + penalty, A.T @ y / len(y))
    w = net(net.prompt(X, y, loss="squared", rate=0.3, penalty=0.01))
    print(f"{name:<15}largest difference {np.abs(w - closed).max():.1e}")

# %% [markdown]
# And what is proven for one of these prompts, rounding included:

# %%
X, y = tables["short"]
print(net.certify(net.prompt(X, y, loss="huber", rate=0.3)))
