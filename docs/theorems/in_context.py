# %% [markdown]
# # Gradient descent in context
#
# **The paper:** arXiv:2504.15956v1, Theorem 4.1. **Call:**
# `incontext.gradient_descent(loss, steps=…, rate=…, features=…)`.
#
# ## Statement
# Let $\ell(s, y)$ be convex and differentiable in $s$ with a Lipschitz derivative $\ell'$, and let prompts have
# $n \le N$ examples $(x_i, y_i)$ from a bounded box, with $\eta L \le 2$, where $L$ is a Lipschitz constant of the
# gradient of the mean loss $\frac1n \sum_i \ell(w \cdot x_i, y_i)$. For every $T$ and $\varepsilon > 0$ there are
# attention-only layers, the same for every such prompt, whose state after $T$ steps is within $\varepsilon$ of that of
# gradient descent, $w_{t+1} = w_t - \eta\,\frac1n \sum_i \ell'(w_t \cdot x_i, y_i)\,x_i$ with $w_0 = 0$.
#
# ## Weights, for the squared loss
# The prompt carries each example twice, $(x_i, y_i)$ and $(-x_i, -y_i)$; a *state* token carries $w$. The state asks
# with $[w, 1]$, keys are $h\,[x, -y]$, values $x/h$. With the residuals $r_i = w \cdot x_i - y_i$ the logits of the two
# copies are $\pm h r_i$ and the values $\pm x_i/h$, so the head reads exactly
#
# $$\hat g(h) = \frac{\sum_i x_i \sinh(h r_i)/h}{\sum_j \cosh(h r_j)},$$
#
# which tends to the gradient $g = \frac1n \sum_i r_i x_i$ as $h \to 0$. Two heads, with $h$ and $2h$, give
# $\frac13 (4 \hat g(h) - \hat g(2h))$. The skip carries $w$, and the output map multiplies by $-\eta$: a step is one
# layer.

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
# ## Proof: one step
# Let $\rho = h \max_i |r_i|$, and let $\mathrm{mean}$ be over examples; inequalities between vectors
# hold entry by entry.
#
# **Proposition 1.** *For $\rho \le 1$, $|\hat g(h) - g| \le \frac{\rho^2}{2}\,\mathrm{mean}(|r|\,|x|)$.*
#
# Proof. $\hat g - g = \mathrm{mean}(r_i x_i\,(b_i - 1))$ with
# $b_i = \frac{\sinh(h r_i)/(h r_i)}{\mathrm{mean}(\cosh(h r))}$. The numerator of $b_i$ is between 1 and
# $\sinh(\rho)/\rho \le 1 + \rho^2 (\frac16 + \frac1{120} + \dots) \le 1 + \rho^2/2$, the denominator between 1 and
# $\cosh \rho$, and $1/\cosh\rho \ge 1 - \rho^2/2$. So $|b_i - 1| \le \rho^2/2$. ∎
#
# **Proposition 2.** *For $\rho \le \frac{1}{10}$ the two heads together err by at most
# $13\,\rho^4\,\mathrm{mean}(|r|\,|x|)$.*
#
# Proof. $\hat g(h)$ is even in $h$, and analytic where $|h| \max |r| \le 1$, complex $h$ included: there
# $|\mathrm{mean}(\cosh(h r))| \ge 2 - \cosh 1 > 0.456$, because $|\cosh z - 1| \le \cosh|z| - 1$; and
# $|\sinh(h r)/h| \le |r| \sinh 1$, because $|\sinh z| \le \sinh|z| \le |z| \sinh 1$ for $|z| \le 1$. So
# $|\hat g| \le M = 2.6\,\mathrm{mean}(|r|\,|x|)$ there, and by Cauchy's estimate the coefficients of
# $\hat g(h) = g + \sum_{k \ge 1} c_k h^{2k}$ obey $|c_k| \le M \max|r|^{2k}$. In $\frac13 (4 \hat g(h) - \hat g(2h))$
# the coefficient of $h^{2k}$ is $c_k (4 - 4^k)/3$, which is 0 for $k = 1$. What is left is at most
#
# $$M \sum_{k \ge 2} \frac{4^k - 4}{3} \rho^{2k} = M \Bigl(\frac{16 \rho^4}{3 (1 - 4 \rho^2)} - \frac{4 \rho^4}{3 (1 - \rho^2)}\Bigr) \le 2.6 \cdot 4.3\,\rho^4\,\mathrm{mean}(|r|\,|x|) \le 13\,\rho^4\,\mathrm{mean}(|r|\,|x|).$$
#
# ∎
#
# The rounding of each head is [that of a softmax](rounding.md) over $2n$ keys whose logits are within $\rho$ of 0, so
# that no weight is above $e^{2\rho}/(2n)$; it grows like $u/h$, and $h$ is chosen where both errors meet.

# %%
r = rng.normal(size=40)
exact = (r[:, None] * X).mean(axis=0)
for rho in (0.1, 0.05):
    h = rho / np.abs(r).max()
    one = [(X * np.sinh(k * h * r)[:, None] / (k * h)).sum(axis=0) / np.cosh(k * h * r).sum() for k in (1, 2)]
    size = (np.abs(r)[:, None] * np.abs(X)).mean(axis=0)
    first, second = np.abs(one[0] - exact).max(), np.abs((4 * one[0] - one[1]) / 3 - exact).max()
    print(
        f"rho {rho}: one head {first:.1e} (at most {rho**2 / 2 * size.max():.1e}), two {second:.1e} (at most {13 * rho**4 * size.max():.1e})"
    )

# %% [markdown]
# ## Proof: all steps
# **Proposition 3.** *Let the objective be convex and twice differentiable (or have a Lipschitz gradient) with second
# derivatives $H$, $0 \le H \le L$, and $\eta L \le 2$. If step $t$ of a path errs by at most $f_t$, its distance from
# exact descent after $T$ steps is at most $\sum_{t < T} f_t$. The same holds with a soft threshold after each step.*
#
# Proof. For two points $w, w'$, $\nabla F(w) - \nabla F(w') = \bar H\,(w - w')$ with the mean
# $\bar H = \int_0^1 H(w' + \theta (w - w'))\,d\theta$, symmetric and between 0 and $L$. So one exact step multiplies
# the difference by $I - \eta \bar H$, whose eigenvalues are in $[1 - \eta L, 1] \subseteq [-1, 1]$: its length does not
# grow. The soft threshold $S(w) = \mathrm{sign}(w) \max(|w| - \tau, 0)$ moves no two numbers further apart, because its
# slope is 0 or 1. So $e_{t+1} \le e_t + f_t$. ∎
#
# *Squared loss:* $H = X^\top X/n + \text{decay}$ is constant, and $\lVert I - \eta H \rVert < 1$ where examples see all
# directions: $e_{t+1} \le \lVert I - \eta H \rVert e_t + f_t$. *Momentum* $\mu$ (squared loss): the difference obeys
# $E_{t+1} = (1 + \mu - \eta H) E_t - \mu E_{t-1} + f_t$, hence $E_T = \sum_k p_k(H) f_{T-1-k}$ with
# $p_k(\lambda) = \mu^{k/2}\,U_k\bigl(\frac{1 + \mu - \eta\lambda}{2 \sqrt\mu}\bigr)$, $U_k$ Chebyshev's polynomials of
# the second kind, which satisfy the same recurrence. For $0 \le \eta\lambda \le 2 (1 + \mu)$ the argument is at most
# $\frac{1 + \mu}{2 \sqrt\mu}$ in size, $|U_k|$ is largest at the ends, and there
# $|p_k| = p_k(0) = 1 + \mu + \dots + \mu^k \le \frac{1}{1 - \mu}$. So $e_T \le \frac{1}{1 - \mu} \sum_t f_t$.
#
# ## Proof: for every prompt of a box
# The step errors need $\max |r_i|$. For the squared loss the residuals obey $r_{t+1} = (I - \eta X X^\top/n)\,r_t$ and
# $r_0 = -y$; the eigenvalues of the matrix are in $[-1, 1]$, so $|r_t|_2 \le |y|_2$, hence $|r_i| \le \sqrt n \max|y|$.
# With decay, count it as examples of label 0; with a threshold, the objective does not grow (it is a proximal step with
# $\eta L \le 2$), and it bounds the residuals in the same way. That gives the certificate for the box; the one for a
# given prompt follows the residuals of a path in float64, with its own distance from the exact path counted in.
#
# ## Other losses: score, link, collect
# Three layers for each step, with the *link* $\varphi = \ell'$:
#
# 1. **Score.** Every example asks the state with $h x_i$: against a key $w$ of value 1 and a key 0 of value $-1$ it
#    reads $\tanh(h s_i/2)$, and $\frac2h \tanh(h s/2)$ is within $h^2 |s|^3/12$ of $s$, because
#    $|\tanh x - x| \le |x|^3/3$. Two sharpnesses cancel the $h^2$ term as above. Call what is left $d$.
# 2. **Link.** Every example asks the anchors of a head for $\varphi$, proven within $e_\varphi$ on the range of scores
#    ([free anchors](free_anchors.md)). With $|\varphi'| \le \ell$ its result is within $e = \ell d + e_\varphi$ of
#    $\varphi(s_i)$.
# 3. **Collect.** As for the squared loss with $\varphi(s_i)$ in place of $r_i$; the error $e$ moves the logits by $h e$
#    and adds at most $e\,\mathrm{mean}(|x|)$ to first order, which the bound counts in full.
#
# The gradient of a convex loss has $0 \le \varphi' \le \ell$, so Proposition 3 holds with
# $L = \ell\,\lVert X^\top X/n \rVert$. ∎
#
# One certificate is for every prompt of a box; a tighter one is for the prompt at hand:

# %%
prompt = net.prompt(X, y)
trace = incontext.trace(net, prompt)
print(trace.certificate)
print("largest distance found", np.abs(trace.path - trace.exact).max())
ah.plot(trace, "in_context.png")

# %% [markdown]
# ![The path over the loss, what the state attends to, and the distance from exact descent](in_context.png)
