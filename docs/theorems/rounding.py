# %% [markdown]
# # The rounding of a softmax
#
# **The paper:** does not speak of rounding. **Used by:** every certificate.
#
# ## Statement
# Let $z_1, \dots, z_p$ be exact logits, $w = \mathrm{softmax}(z)$ and $r = \sum_k w_k v_k$. A dtype with unit round-off
# $u$ computes logits $\hat z_k$ with $|\hat z_k - z_k| \le \Delta_k$, subtracts the largest, takes `exp` within
# $\kappa$ ulp, adds up in any order, divides, and takes the dot product with $v$ in any order, with fused operations or
# without. Let $\gamma_n = n u/(1 - n u)$, $g_k = \max_j z_j - z_k$, and
#
# $$\Lambda_k = \Delta_k + u\,(g_k + \Delta_k + \max_j \Delta_j) + \frac{2 \kappa u}{1 - 2 \kappa u}, \qquad
# P(v) = e^{\sum_k w_k \Lambda_k} \sum_k w_k (e^{\Lambda_k} - 1)\,|v_k - \sum_j w_j v_j|.$$
#
# Then, as long as nothing underflows, the computed $\hat r$ obeys, with $P = P(v)$,
#
# $$|\hat r - r| \le P + \frac{\gamma_{p+1}\,\widetilde W + \gamma_{p-1} (|r| + P)}{1 - \gamma_{p-1}}, \qquad \widetilde W = \sum_k w_k |v_k| + P(|v|).$$
#
# ## Proof
# **1. Exponentials.** Let $\hat m = \max_k \hat z_k$. The subtraction rounds once: it errs by at most
# $u\,|\hat z_k - \hat m|$, and
# $\hat m - \hat z_k \le \max z + \max \Delta - z_k + \Delta_k = g_k + \Delta_k + \max \Delta$. The exponential is then
# right up to a factor $1 + \eta$ with $|\eta| \le 2 \kappa u$ (an ulp is at most $2u$ of the number), and
# $|\ln(1 + \eta)| \le 2\kappa u/(1 - 2 \kappa u)$. So the computed exponential is
# $\hat e_k = e^{z_k - \hat m + \lambda_k}$ with $|\lambda_k| \le \Lambda_k$; that is,
# $\hat e_k = C\,w_k\,e^{\lambda_k}$ with one $C$ for all $k$.
#
# **2. Their exact quotient.** Let $\tilde w_k = \hat e_k / \sum_j \hat e_j$ and $\tilde r = \sum_k \tilde w_k v_k$.
# Because $\sum_k w_k (v_k - r) = 0$,
#
# $$\tilde r - r = \frac{\sum_k w_k e^{\lambda_k} (v_k - r)}{\sum_k w_k e^{\lambda_k}} = \frac{\sum_k w_k (e^{\lambda_k} - 1)(v_k - r)}{\sum_k w_k e^{\lambda_k}}.$$
#
# The exponential function is convex, so by Jensen's inequality the denominator is at least
# $e^{\sum_k w_k \lambda_k} \ge e^{-\sum_k w_k \Lambda_k}$; and $|e^{\lambda} - 1| \le e^{\Lambda} - 1$. Hence
# $|\tilde r - r| \le P$. The same with $|v_k|$ in place of $v_k$ gives $\sum_k \tilde w_k |v_k| \le \widetilde W$.
#
# **3. Sum, division, dot product.** A sum of $p$ positive numbers in any order errs by a factor $1 + \sigma$,
# $|\sigma| \le \gamma_{p-1}$, because every term passes at most $p - 1$ roundings. It is the same for all weights. Each
# weight is divided (one rounding), multiplied by its value and added ($p$ roundings at most), so
#
# $$\hat r = \sum_k \tilde w_k v_k \frac{1 + \theta_k}{1 + \sigma}, \quad |\theta_k| \le \gamma_{p+1}, \qquad
# \hat r - \tilde r = \frac{\sum_k \tilde w_k v_k \theta_k - \sigma \tilde r}{1 + \sigma},$$
#
# and $|\tilde r| \le |r| + P$. Add step 2. ∎
#
# **Remarks.** *A free factor.* A factor common to all $\hat e_k$ changes nothing, so the argument also holds with
# $\lambda_k - \lambda_j$ for one $j$: the heaviest anchor's error is then 0 and the others' $\Lambda_k + \Lambda_j$.
# The library takes the smaller of the two. *Underflow.* The largest exponential is about 1, so numbers below the
# smallest normal one, `tiny`, change the result by no more than `tiny` times the largest value each, and there are at
# most $4p$ of them: this is added. *Logits.* For $z_k = \alpha_k s + \gamma_k$ a product and a sum round, each by at
# most $u/(1 + u)$ of the number, so that $\Delta_k = u\,(|\alpha_k s| + |z_k|)$ covers both, second order included;
# what underflow takes is added. *Cells.* On an interval of $s$ the weights are bounded by Lemma 3 of [the single
# head](single_head.md).
#
# Sharp heads have large logits, large logits round by much, and yet the bound stays small where it counts: $\Lambda_k$
# is multiplied by $|v_k - r|$, which is small for the anchors that weigh anything.
#
# ## Tried
# 2,000 random heads in float32, held against extended precision, with $\kappa = 4$:

# %%
import numpy as np

rng = np.random.default_rng(0)
u, kappa, worst = 2.0**-24, 4, 0.0
for _ in range(2000):
    p = int(rng.integers(2, 12))
    alpha, gamma, v = (rng.normal(size=p) * 10 ** rng.uniform(-1, scale) for scale in (2, 1, 2))
    alpha, gamma, v, s = (np.float32(one) for one in (alpha, gamma, v, rng.uniform(-3, 3)))
    logits = alpha * s + gamma
    weights = np.exp(logits - logits.max())
    computed = (weights / weights.sum()) @ v
    a, g, x, t = (one.astype(np.longdouble) for one in (alpha, gamma, v, s))
    z = a * t + g
    w = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
    r = w @ x
    delta = u * (np.abs(a * t) + np.abs(z))
    lam = delta + u * (z.max() - z + delta + delta.max()) + 2 * kappa * u / (1 - 2 * kappa * u)
    gam = [k * u / (1 - k * u) for k in range(p + 2)]
    P = [np.exp(w @ lam) * (w * np.expm1(lam)) @ np.abs(y - w @ y) for y in (x, np.abs(x))]
    bound = P[0] + (gam[p + 1] * (w @ np.abs(x) + P[1]) + gam[p - 1] * (abs(r) + P[0])) / (1 - gam[p - 1])
    bound += 4 * p * np.finfo(np.float32).tiny * np.abs(x).max()
    worst = max(worst, float(abs(computed - r) / bound))
print(f"the largest error was {worst:.2f} of its bound")
