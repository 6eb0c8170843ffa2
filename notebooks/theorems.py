# %% [markdown]
# # The theorems, with their weights
#
# *Universal Approximation with Softmax Attention* (arXiv 2504.15956) proves that attention alone approximates any
# continuous function. Its proofs construct weights. Here they are, one claim after the other: built, run, and held
# against their bounds.

# %%
import numpy as np
import torch

import anchorhead as ah
from anchorhead import incontext

rng = np.random.default_rng(0)


def largest_error(network, exact, x):
    """The largest |network - exact| at the given inputs."""
    return float(np.abs(network(x) - exact(x)).max())


# %% [markdown]
# ## One head: n truncated linear functions, error O(1/p)
#
# Every token i gets w_i · x_i + t_i, clipped to [-1, 1]. One softmax head with p anchors does it for all of them.

# %%
w, t = rng.normal(size=(8, 4)), rng.normal(size=8)


def clipped(x):
    return np.clip((w * x).sum(axis=-1, keepdims=True) + t[:, None], -1, 1)


x = rng.uniform(-1, 1, (2000, 8, 4))
for anchors in (8, 32, 128, 512):
    net = ah.truncated_linear(w, t, low=-1, high=1, anchors=anchors)
    print(f"{anchors:4} anchors: proven {net.certificate.bound:.2e}, found {largest_error(net, clipped, x):.2e}")

# %% [markdown]
# ## H heads: O(1/(nH))
#
# With several heads the tokens' own positions are the anchors, and each head refines a part of the range.

# %%
for heads in (1, 4, 16):
    net = ah.truncated_linear(w, t, low=-1, high=1, heads=heads)
    print(f"{heads:4} heads: proven {net.certificate.bound:.2e}, found {largest_error(net, clipped, x):.2e}")

# %% [markdown]
# ## ReLU networks, and with them other universal approximators
#
# Two attention layers, or one and a softmax, compute any feed-forward network on a sequence. The neurons' heads have
# three anchors each, placed where they serve best, so the error is far below the theorem's rate.

# %%
mlp = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 12)).double()
for form in ("two-layer", "attention-softmax"):
    for layout in ("transformer", "sequence"):
        net = ah.convert(mlp, on=(0, 1), tokens=4, within=1e-6, form=form, layout=layout)
        print(f"{form:18} {layout:12} proven {net.certificate.bound:.2e}, {net.parameters:,} parameters")

# %% [markdown]
# ## Any continuous function
#
# A function of two variables goes to one head over a grid of anchors. Placed evenly, as in the proof, the error falls
# with the spacing; solved for, it falls exponentially.

# %%
text, box = "sin(3*x)*cos(2*y)", {"x": (-1, 1), "y": (-1, 1)}
for placement, within in (("uniform", 0.3), ("solved", 0.3), ("solved", 1e-6)):
    net = ah.approximate(text, on=box, within=within, placement=placement)
    anchors = len(net.embed.registers)
    print(f"{placement:8} {anchors:6,} anchors: proven {net.certificate.bound:.2e}")
ah.plot(net)

# %% [markdown]
# ## Gradient descent in context
#
# A prompt of examples goes in, fitted weights come out: one attention layer for each step, the same weights for all
# prompts.

# %%
X = rng.normal(size=(40, 2))
y = X @ [1.2, -0.7] + 0.3 * rng.normal(size=40)
net = incontext.gradient_descent(steps=30, rate=0.3, features=2, labels=(-6, 6))
trace = incontext.trace(net, net.prompt(X, y))
print(f"after 30 steps {trace.path[-1]}, at most {trace.certificate.bound:.2e} from exact gradient descent")
ah.plot(trace)
