# %% [markdown]
# # Gradient descent in context
#
# **Statement.** Attention-only layers carry out gradient descent on a prompt of examples: the same weights for every
# prompt, a step a layer.
#
# **Weights.** The prompt carries each example twice, $(x_i, y_i)$ and $(-x_i, -y_i)$; a state token carries $w$. For the
# squared loss the state asks with $[w, 1]$ against keys $h\,[x, -y]$, and reads values $x / h$. With
# $r_i = w \cdot x_i - y_i$ the head gives exactly
#
# $$\hat g = \frac{\sum_i x_i \sinh(h r_i) / h}{\sum_j \cosh(h r_j)},$$
#
# the gradient up to $(h\,r)^2$. A second head at $2h$ takes that away, too. Other losses take three layers a step: score,
# link through anchors, collect.

# %%
import numpy as np

import anchorhead as ah
from anchorhead import incontext

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = X @ [1.2, -0.7] + 0.3 * rng.normal(size=40)
net = incontext.gradient_descent(steps=30, rate=0.3, features=2, labels=(-6, 6))
print(net.describe())

# %% [markdown]
# **Proof.** The error of a step is bounded by the power series in $h r$, with the rounding of every sum; errors of
# steps before are carried on by $\lVert I - \eta X^\top X / n \rVert$, which is at most 1 for safe rates. One certificate
# is for every prompt of a box; a tighter one is for the prompt at hand.

# %%
prompt = net.prompt(X, y)
trace = incontext.trace(net, prompt)
print(trace.certificate)
ah.plot(trace, "in_context.png")

# %% [markdown]
# ![The path over the loss, what the state attends to, and the distance from exact descent](in_context.png)
