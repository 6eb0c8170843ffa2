# %% [markdown]
# # Statistical models in context
#
# **The paper:** arXiv:2504.15956v1, whose abstract says that attention-only layers "approximate various statistical
# models in-context" (no theorem number known to us; it rests on Theorem 4.1). **Call:** `incontext.Ridge()` and others.
#
# ## Statement
# Linear, ridge, lasso, elastic net, logistic, Poisson, Huber and quantile regression minimise
# $F(w) = f(w) + \tau |w|_1$, where $f$ is a mean of convex losses and a term $\frac{\lambda}{2} |w|^2$. *If $f$ is
# $\mu$-strongly convex with second derivatives at most $L$, and $\eta \le 1/L$, then $T$ steps of [descent in
# context](in_context.md), each of which errs by at most $\epsilon$, end within*
#
# $$(1 - \eta\mu)^T\,|w_0 - w^*| + \frac{\epsilon}{\eta\mu}$$
#
# *of the minimiser $w^*$.*
#
# ## Weights
# A decay of the weights is part of the skip: $w (1 - \eta\lambda) - \eta g$. The soft threshold $S_{\eta\tau}$ of the
# lasso is one more attention layer with one head for each entry of $w$:
# $S(w) = w - \eta\tau\,\mathrm{hardtanh}(w/(\eta\tau))$, and hardtanh is a head of a few anchors that are registers. An
# intercept is a column of ones. Momentum keeps a velocity in the state. Per-column scaling alone is done outside of the
# network. `fit` is a forward pass.
#
# ## Proof
# One exact step is $w \mapsto S(w - \eta \nabla f(w))$. As in [Proposition 3 there](in_context.md),
# $\nabla f(w) - \nabla f(w') = \bar H (w - w')$ with $\mu \le \bar H \le L$, so the eigenvalues of $I - \eta \bar H$
# are in $[0, 1 - \eta\mu]$, and $S$ moves no two points further apart: the step shrinks distances by the factor
# $1 - \eta\mu$. The minimiser is a fixed point: $w^*$ minimises $F$ if and only if
# $-\nabla f(w^*) \in \tau\,\partial|w^*|_1$, that is, if and only if $w^* = S(w^* - \eta \nabla f(w^*))$. So
# $|w_{t+1} - w^*| \le (1 - \eta\mu)\,|w_t - w^*| + \epsilon$, and the geometric sum is at most $\epsilon/(\eta\mu)$. ∎
#
# The minimiser is what scikit-learn finds by other means, so coefficients can be compared. How many steps that takes
# depends on $\eta\mu$: columns are standardised first, and momentum shortens the way.

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
