# %% [markdown]
# # One head, p anchors
#
# **The paper:** arXiv:2504.15956v1, Theorem 3.1. **Call:** `ah.truncated_linear(w, t, low, high, anchors=p)`.
#
# ## Statement
# Let tokens $x_1, \dots, x_n$ each have a linear function $s_i = w_i \cdot x_i + t_i$ of their own, and let $\bar s$ be
# $s$ cut off at $a$ and $b$. For every $p \ge 2$ and $\varepsilon_0 > 0$ there is one softmax head with $p$ anchors
# whose output at every token $i$, for every input, is within
#
# $$\max(|a|, |b|)\,\varepsilon_0 + \frac{b - a}{p}$$
#
# of $\bar s_i$. With as many anchors as tokens, and $\varepsilon_0 = 1/n$, the error is $O(1/n)$.
#
# ## Weights
# The linear map in front has weights of its own at each position, as the paper allows; it writes $s_i$ into token $i$.
# Every token also carries an anchor, and the anchors beyond $n$ are appended tokens. (Where tokens outnumber anchors,
# tokens are appended until every anchor stands on equally many of them, which changes no mean.)
#
# Anchors $L_0 < \dots < L_{p-1}$ split $[a, b]$ evenly, $D = (b - a)/(p - 1)$ apart. The query carries $[s, 1]$, the
# keys are $[2\beta L_k, -\beta L_k^2]$, the values are $L_k$. Since
#
# $$2 \beta L_k s - \beta L_k^2 = -\beta (s - L_k)^2 + \beta s^2,$$
#
# and softmax does not change when all logits change by the same number, the weights are
# $w_k \propto e^{-\beta (s - L_k)^2}$: softmax picks the anchors nearest to $s$. In units of the spacing,
# $q = (s - a)/D$, anchors are $0, 1, \dots, p - 1$ and $w_k \propto e^{-c (q - k)^2}$ with the one number
# $c = \beta D^2$. The library stores weights in these units, because whole and half numbers are exact in floating
# point.

# %%
import numpy as np

import anchorhead as ah
from anchorhead.lab import single_head_sweep

rng = np.random.default_rng(0)
w, t = rng.normal(size=(4, 3)), rng.normal(size=4)
net = ah.truncated_linear(w, t, low=-1, high=1, anchors=16)
print(net.describe())

# %% [markdown]
# ## Proof
# Let $S = \sum_{m \ge 1} e^{-c m^2}$ and $S_1 = \sum_{m \ge 1} m\,e^{-c m^2}$; both fall like $e^{-c}$. Let
# $r = \sum_k w_k k$ be the head in units of the spacing, and $\bar q$ the query cut off at $0$ and $p - 1$.
#
# **Lemma 1 (far anchors weigh little).** *If $j \le q \le j + 1$, then the anchor $m \ge 1$ steps to the right of
# $j + 1$ weighs at most $e^{-c m^2} w_{j+1}$, and the anchor $m$ steps to the left of $j$ at most $e^{-c m^2} w_j$. If
# $q \le 0$, anchor $m$ weighs at most $e^{-c m^2} w_0$; likewise on the right.*
#
# Proof. For $k = j + 1 + m$ the quotient of weights is $e^{-c\,[(q - k)^2 - (q - j - 1)^2]}$, and
# $(k - q)^2 - (j + 1 - q)^2 = m\,(m + 2 (j + 1 - q)) \ge m^2$ because $q \le j + 1$. The other cases are the same with
# signs changed. ∎
#
# **Proposition 2.** *For every real $q$, $|r - \bar q| \le \frac12 + \frac{S}{4} + S_1$.*
#
# Proof. *Between two anchors*, $q = j + \theta$ with $0 \le \theta \le 1$. Replace every position $k$ by the nearer one
# of $j$ and $j + 1$. That changes $r$ by $\sum m\,w_{j+1+m} - \sum m\,w_{j-m}$, which by Lemma 1 lies between $-S_1$
# and $S_1$. After the change $r$ is $j + W$, where $W$ is the weight of all anchors from $j + 1$ on. With
# $A = \sum_{m \ge 1} w_{j+1+m} / w_{j+1}$ and $B = \sum_{m \ge 1} w_{j-m}/w_j$, both between $0$ and $S$,
#
# $$\frac{W}{1 - W} = \frac{w_{j+1} (1 + A)}{w_j (1 + B)} = e^{c (2\theta - 1)}\,\frac{1 + A}{1 + B},$$
#
# so $W = \sigma(c (2\theta - 1) + \ln\,\frac{1+A}{1+B})$ with the logistic function $\sigma$, whose slope is at most
# $\frac14$; and $|\ln\,\frac{1+A}{1+B}| \le \ln(1 + S) \le S$. Hence $|W - \sigma(c (2 \theta - 1))| \le S/4$. Finally
# $\theta$ and $\sigma(c(2\theta - 1))$ are both in $[0, \frac12]$ for $\theta \le \frac12$ and both in $[\frac12, 1]$
# otherwise, so they differ by at most $\frac12$. *Left of all anchors* $\bar q = 0$, and
# $0 \le r \le \sum m\,w_m \le S_1$ by Lemma 1; *right of them* likewise. ∎
#
# **The theorem.** Multiply by $D$: the error is at most $D/2 + D (S/4 + S_1)$. For $p \ge 2$ we have
# $D/2 = (b - a)/(2 (p - 1)) \le (b - a)/p$, and $S \le S_1 \le e^{-c}/(1 - e^{-c})^2$, so any $c$ with
# $\frac54 D\,e^{-c}/(1 - e^{-c})^2 \le \max(|a|, |b|)\,\varepsilon_0$ will do. Each token has its own query and all
# share the keys, so the bound holds for all $n$ tokens at once. ∎
#
# ## Why c is about 2.7, and the error 0.063 spacings
# The library chooses $c$ near 2.7 (2.75 in the certificate below), where the largest error is $0.063 D$ to $0.064 D$.
# With infinitely many anchors the error is known exactly. Let $Z(q) = \sum_k e^{-c (q - k)^2}$. Then
# $Z'/Z = -2c \sum_k w_k (q - k) = 2c\,(r - q)$, and Poisson's summation formula gives
# $Z(q) = \sqrt{\pi/c}\,\bigl(1 + 2 \sum_{m \ge 1} e^{-\pi^2 m^2 / c} \cos(2 \pi m q)\bigr)$. So
#
# $$r - q = -\frac{2\pi}{c}\,\frac{\sum_m m\,e^{-\pi^2 m^2/c} \sin(2\pi m q)}{1 + 2 \sum_m e^{-\pi^2 m^2 / c} \cos(2\pi m q)},$$
#
# a ripple of height about $\frac{2\pi}{c} e^{-\pi^2/c}$ that grows with $c$. At the end of the range, $q = 0$, half of
# the anchors are missing, and the error is $\sum m\,e^{-c m^2} / (1 + \sum e^{-c m^2})$, about $e^{-c}/(1 + e^{-c})$,
# which falls with $c$. The best $c$ makes them about equal:

# %%
for c in (2.0, 2.5, 2.7, 2.75, 2.9, 3.5):
    ripple, end = 2 * np.pi / c * np.exp(-(np.pi**2) / c), np.exp(-c) / (1 + np.exp(-c))
    q, k = np.linspace(-1, 9, 20001), np.arange(16)
    weights = np.exp(-c * (q[:, None] - k) ** 2)
    r = weights @ k / weights.sum(axis=1)
    tails = np.exp(-c * np.arange(1, 30) ** 2)
    bound = 0.5 + tails.sum() / 4 + (np.arange(1, 30) * tails).sum()
    found = np.abs(r - np.clip(q, 0, 15)).max()
    print(f"c = {c}: ripple {ripple:.4f}, end {end:.4f}; largest error found {found:.4f}, Proposition 2: {bound:.4f}")

# %% [markdown]
# ## How the certificate is proven
# Proposition 2 is about nine times too large, and says nothing of the stored, rounded weights. So the certificate is
# computed from these, by a lemma on **cells**. Let $r(q) = \sum_k w_k v_k$ with
# $w = \mathrm{softmax}(\alpha_k q + \gamma_k)$, and let $A = \sum_k w_k \alpha_k$.
#
# **Lemma 3.** *$r' = \sum_k w_k (v_k - r)(\alpha_k - A)$, $r'' = \sum_k w_k (v_k - r)(\alpha_k - A)^2$, and
# $w_k(q) \le w_k(q_0)\,e^{(\alpha_k - A(q_0)) (q - q_0)}$.*
#
# Proof. $w_k' = w_k (\alpha_k - A)$, which gives $r' = \sum w_k (\alpha_k - A) v_k$; subtracting
# $r \sum w_k (\alpha_k - A) = 0$ gives the first formula. Differentiate it: the terms with $r'$ and $A'$ are multiplied
# by $\sum w_k (\alpha_k - A) = 0$ and $\sum w_k (v_k - r) = 0$, which leaves the second. Last,
# $(\ln w_k)' = \alpha_k - A$ and $(\ln w_k)'' = -A' = -\sum w_k (\alpha_k - A)^2 \le 0$: $\ln w_k$ is concave and lies
# below its tangent. ∎
#
# On a cell of width $h$ around $q_0$ on which the target is linear, Taylor's formula for $g = r - \text{target}$ gives
#
# $$|g| \le \max |g(q_0) \pm g'(q_0)\,h/2| + \sup |r''|\,h^2/8,$$
#
# and the last part of Lemma 3 bounds all weights in $r''$ on the cell by those at its centre,
# $w_k \le u_k = \min(1, w_k(q_0)\,e^{|\alpha_k - A(q_0)| h/2})$. The other factors of $r''$ vary on the cell, too. Let
# $V$ be the largest less the smallest of all values and 0, and $\Lambda$ the largest less the smallest slope.
#
# - $A' = \sum w_j (\alpha_j - A)^2 \le \sum w_j (\alpha_j - A(q_0))^2$, because a variance is least about the mean. So
#   $|\alpha_k - A| \le \lambda_k = |\alpha_k - A(q_0)| + \frac h2 \bigl(\sum_j u_j (\alpha_j - A(q_0))^2 + \omega \Lambda^2\bigr)$.
# - $r' = \sum w_k (v_k - r(q_0))(\alpha_k - A)$, because $\sum w_k (\alpha_k - A) = 0$. So
#   $|r'| \le F = \sum_k u_k |v_k - r(q_0)| \lambda_k + \omega V \Lambda$ and
#   $|v_k - r| \le d_k = |v_k - r(q_0)| + \frac h2 F$.
# - Together, $\sup |r''| \le \sum_k u_k d_k \lambda_k^2 + \omega V \Lambda^2$.
#
# The sums run over a *window* of anchors around the heaviest one. What is left out of it has logits more than 60 below
# the largest on the whole cell, and weighs at most $\omega = p\,e^{-60}$ together (`unseen` in the code). These anchors
# are missing from $r(q_0)$ and $r'(q_0)$ as well, for which $\omega V (1 + \frac h2 \Lambda)$ is added.
#
# Cells end at every crossing of neighbouring anchors, so that one anchor is the heaviest on a whole cell, and at the
# corners of the target; they are halved until the bound is close to the largest error found. Where the end anchor's
# logit is more than 60 above its neighbour's, all other anchors weigh at most $p\,e^{-60}$ together, and this times the
# size of the values is added. Rounding of the dtype is added as [proven here](rounding.md).
#
# All this is computed in float64, which rounds as well. The bound allows for it in units of $u = 2^{-53}$: $16 u$ times
# the sizes of the sum of heads, of the bias and of the target on a cell, for the dozen operations that make a bound of
# their difference; $16 u\,(|a| + |b|)$ for the ends of the range and the spacing, which are themselves rounded; and for
# the weights at $q_0$ a relative $4 \cdot (10^{-13} + 8 u \max_k (|\alpha_k q_0| + |\gamma_k|))$, because an error of a
# logit is a relative error of its weight. These allowances are generous counts of operations, not a proof of each.
# `ah.check` does not rest on them: the verifier derives the bound anew from the stored weights, with all errors in balls.

# %%
print(net.certificate)
x = rng.uniform(-10, 10, size=(2000, 4, 3))
exact = np.clip(np.einsum("bnd,nd->bn", x, w) + t, -1, 1)
print(f"largest error here {np.abs(net(x)[..., 0] - exact).max():.3e}")
print("verified by another route, in balls:", ah.check(net).stated)

# %%
ah.plot(single_head_sweep((8, 16, 32, 64, 128), 8), "single_head.png")

# %% [markdown]
# ![The theorem's bound, the proven one, and the largest error found, against the number of anchors](single_head.png)
#
# The single head's bound is more than ten times under the theorem's from 3 anchors on, in float64 as far as we looked
# (1,000 anchors) and in float32 up to 512; at 1,000 anchors float32 itself limits it to five times.
#
# ## Several outputs
# The paper also lets a map $G$ send anchor $k$ to output feature $G(k)$ (`outputs=`): its value is $L_k$ in that
# feature and 0 in the others. **Proposition 4.** *If $s$ is at least $\tau$ away from every midpoint of neighbouring
# anchors, and $j$ is the nearest anchor, then every output feature is within $D/2 + 2 \max(|a|, |b|)\,\varepsilon$ of
# $\bar s$ in feature $G(j)$ and 0 elsewhere, with
# $\varepsilon = 2 \sum_{i \ge 1} e^{-c\,i (i - 1) - 2 c\,i \tau / D}$.*
#
# Proof. The anchor $i$ steps from $j$ has weight at most $e^{-c\,i (i - 2 |q - j|)} w_j$, and
# $|q - j| \le \frac12 - \tau/D$ (or $q$ is beyond the end, where the weight is smaller still), so the weight off $j$ is
# at most $\varepsilon$. A feature other than $G(j)$ is at most $\varepsilon \max(|a|, |b|)$; feature $G(j)$ differs
# from $L_j$ by at most $2 \varepsilon \max(|a|, |b|)$; and $|L_j - \bar s| \le D/2$. ∎
#
# At a midpoint where $G$ changes, two outputs hold about one half each, however sharp the head is: no bound can hold
# there, and the certificate names the neighbourhoods that it leaves out.
#
# ## Where it ends
# In float32 logits of 1,000 anchors reach 600,000, and each rounds by 0.03: one softmax cannot do better there.
