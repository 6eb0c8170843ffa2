# %% [markdown]
# # Statistical models in context
#
# **Statement.** Attention-only layers approximate various statistical models in context.
#
# **Weights.** Linear, ridge, lasso, elastic net, logistic, Poisson, Huber and quantile regression are gradient descent
# with a loss, a decay of the weights and a soft threshold. Momentum, an intercept and the stopping rule are attention
# layers and features of the state as well; per-column scaling alone is done outside. `fit` is a forward pass.

# %%
import numpy as np
from sklearn import linear_model
from sklearn.datasets import load_diabetes

import anchorhead as ah
from anchorhead import incontext

X, y = load_diabetes(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
for ours, theirs in (
    (incontext.Ridge(alpha=1.0), linear_model.Ridge(alpha=1.0, tol=1e-12)),
    (incontext.Lasso(alpha=1.0), linear_model.Lasso(alpha=1.0, tol=1e-12)),
):
    ours.fit(X, y)
    theirs.fit(X, y)
    off = np.abs(ours.coef_ - theirs.coef_).max() / np.abs(theirs.coef_).max()
    print(f"{type(ours).__name__}: {ours.n_iter_} steps, largest difference of a coefficient {off:.1e}")

# %% [markdown]
# The network of an estimator is a network like any other: it describes itself, is saved, and runs on other prompts.

# %%
print(ours.network_.describe())
lasso = incontext.gradient_descent(steps=40, rate=0.2, features=2, labels=(-4, 4), threshold=0.1)
standard = (y[:60] - y[:60].mean()) / y[:60].std()
ah.plot(incontext.trace(lasso, lasso.prompt(X[:60, [2, 8]], standard)), "statistical_models.png")

# %% [markdown]
# ![The path of a lasso with two features](statistical_models.png)
