# %% [markdown]
# # H heads, and positions as anchors
#
# **The paper:** arXiv:2504.15956v1, Theorem 3.2. **Call:** `ah.truncated_linear(w, t, low, high, heads=H)`.
#
# ## Statement
# $H$ heads over $n \ge 3$ tokens, nothing appended, approximate $n$ truncated linear functions $\bar s_i$
# ($s_i = w_i \cdot x_i + t_i$ cut off at $a$ and $b$) with an error of at most
#
# $$\max(|a|, |b|)\,\varepsilon_0 + \delta, \qquad \delta = \frac{b - a}{(n - 2) H},$$
#
# for any $\varepsilon_0 > 0$, if the heads are sharp enough.
#
# ## Weights
# No tokens are appended: each token's own position $k$, counted from the middle, is an anchor. Each token carries its
# query and seven constants of its position: $1$, $k$, $-k^2$, a flag for cells (1 at all positions but the first and
# the last), $k$ at a cell and 0 at the ends, a flag for the first position, and one for the last. Cut the range into
# $N = (n - 2) H$ cells of width $\delta$. Head $h$ owns $n - 2$ neighbouring cells, its *slice*. It has one anchor at
# the centre of each of its cells, and one *dummy* half a cell beyond either end of the slice. An anchor's value is its
# centre, counted from the middle of the range; a dummy's value is 0, except that the first head's lower dummy holds the
# lower end of the range and the last head's upper dummy the upper end. All heads have the same sharpness
# $c = \beta \delta^2$. Their outputs add up, and the middle of the range is added at the end.

# %%
import numpy as np

import anchorhead as ah
from anchorhead.lab import multi_head_sweep

rng = np.random.default_rng(0)
w, t = rng.normal(size=(12, 3)), rng.normal(size=12)
for heads in (1, 2, 4, 8, 16):
    net = ah.truncated_linear(w, t, low=-1, high=1, heads=heads)
    theirs = 2 / (10 * heads)
    print(f"{heads:3} heads: proven {net.certificate.bound:.3e}, the theorem without its softmax term {theirs:.3e}")

# %% [markdown]
# ## Proof
# In units of $\delta$, counted from the middle, the query is $q$, the target $\bar q$ is $q$ cut off at $\pm N/2$, and
# within each head anchors are 1 apart, so [Lemma 1 and Proposition 2 of the single head](single_head.md) hold in each
# head, with $S = \sum_{m \ge 1} e^{-c m^2}$ and $S_1 = \sum_{m \ge 1} m\,e^{-c m^2}$. Every value is at most $N/2$ in
# size, every position at most $(N + 1)/2$.
#
# **Heads that $q$ is not near.** Let $q$ lie at a distance $x \ge \frac12$ beyond the slice of a head: at or beyond its
# dummy on that side. The anchor $m$ steps from this dummy (a cell, or the far dummy) weighs at most
# $e^{-c\,m (2x + m - 1)}$ times the dummy's weight, because
# $(x - \frac12 + m)^2 - (x - \frac12)^2 = m (2x - 1 + m)$. Unless it is an end of the range, the dummy's value is 0, so
# the head contributes at most $\frac N2 \sum_m e^{-c m (2x + m - 1)}$. The $g$-th such head on a side has
# $x \ge \frac12 + (g - 1)(n - 2)$; together all heads on both sides contribute at most
#
# $$E_0 = 2 \cdot \frac N2 \sum_{g \ge 1} \sum_{m \ge 1} e^{-c m^2 - 2 c (g - 1)(n - 2)} \le \frac{N S}{1 - e^{-2c (n - 2)}}.$$
#
# **Case 1: $q$ is between the centres of two cells of one head** (for $n = 3$ a head has one cell, and there is no such
# $q$). By Proposition 2 the mean of *positions* under the weights of this head is within
# $\frac12 + \frac S4 + S_1$ of $q$. Values differ from positions at the dummies alone, by at most $(N + 1)/2$, and these
# weigh at most $S$ (Lemma 1). So the sum of all heads is within
# $\frac12 + \frac S4 + S_1 + \frac{N + 1}{2} S + E_0$ of $q$.
#
# **Case 2: $q$ is within half a cell of a border $B$ between two heads**, $q = B + x$, $|x| \le \frac12$. In the lower
# head $q$ lies between its last cell, at $B - \frac12$, and its dummy, at $B + \frac12$. With these two alone the last
# cell would weigh $\rho = 1/(1 + e^{2 c x})$; with the anchors behind it (cells, and the far dummy), which weigh at
# most $S$ times as much, it weighs between $\rho/(1 + S)$ and $\rho$. So the head contributes $\rho\,(B - \frac12)$ up
# to $N S$: at most $S \cdot \frac N2$ for the change of its weight and as much for the anchors behind. In the upper
# head the dummy stands at $B - \frac12$ and the first cell at $B + \frac12$, which in the same way contributes
# $(1 - \rho)(B + \frac12)$ up to $N S$. The two halves add up:
#
# $$\rho\,(B - \tfrac12) + (1 - \rho)(B + \tfrac12) = B + \tfrac12 - \rho = B + \tfrac12 \tanh(c x),$$
#
# as one head with anchors on both sides would give. Both $x$ and $\frac12 \tanh(c x)$ lie on the same side of 0 and
# within $\frac12$ of it, so they differ by at most $\frac12$. In all: $\frac12 + 2 N S + E_0$.
#
# **Case 3: $q$ is within half a cell of the lower end of the range, or beyond it**, $q = -\frac N2 + x$,
# $x \le \frac12$. For $x \ge -\frac12$ it lies between the dummy, of value $-\frac N2$, and the first cell, of value
# $-\frac N2 + \frac12$, which without the others give $-\frac N2 + \frac12 \sigma(2 c x)$; the others weigh at most
# $S$, and all values are within $N$ of each other, so they change this by at most $N S$. The target is
# $-\frac N2 + \max(x, 0)$, and $|\frac12 \sigma(2 c x) - \max(x, 0)| \le \frac12$. (At $x = 0$ it is $\frac14$: the
# quarter of a cell that certificates show.) For $x < -\frac12$ all anchors but the dummy weigh at most $S$, and the
# error is at most $N S$. The upper end likewise. In all: $\frac12 + N S + E_0$.
#
# **The theorem.** All cases together: the error is at most
# $\delta\,(\frac12 + \frac S4 + S_1 + S) + \delta N S\,(2 + 1/(1 - e^{-2 c}))$, and
# $\delta N = b - a \le 2 \max(|a|, |b|)$. $S$ and $S_1$ fall like $e^{-c}$, so for $c$ large enough the first part is
# at most $\delta$ and the second at most $\max(|a|, |b|)\,\varepsilon_0$. ∎
#
# The second part is the price of handing over: its size is that of the *values*, not of a cell, so in this proof the
# sharpness grows like the logarithm of the number of cells. The proof as a computation:

# %%
n, heads, c = 8, 4, 6.0
cells = (n - 2) * heads
q = np.linspace(-cells / 2 - 3, cells / 2 + 3, 40001)
total = np.zeros_like(q)
for h in range(heads):
    centres = -cells / 2 + (n - 2) * h + np.arange(-1, n - 1) + 0.5
    values = centres.copy()
    values[0], values[-1] = (-cells / 2 if h == 0 else 0.0), (cells / 2 if h == heads - 1 else 0.0)
    logits = -c * (q[:, None] - centres) ** 2
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    total += weights @ values / weights.sum(axis=1)
m = np.arange(1, 40)
S, S1 = np.exp(-c * m**2).sum(), (m * np.exp(-c * m**2)).sum()
bound = 0.5 + S / 4 + S1 + S + cells * S * (2 + 1 / (1 - np.exp(-2 * c)))
print(
    f"largest error {np.abs(total - np.clip(q, -cells / 2, cells / 2)).max():.3f} cells, by the proof at most {bound:.3f}"
)

# %% [markdown]
# The certificate is computed from the stored weights, as for [one head](single_head.md): each head is bounded on cells
# between all crossings, the heads are added up, and then the [rounding](rounding.md) of each softmax and of the sum.

# %%
print(net.certificate)
print("verified by another route, in balls:", ah.check(net).stated)
ah.plot(multi_head_sweep((1, 2, 4, 8, 16), 12), "multi_head.png")

# %% [markdown]
# ![Error against the number of heads](multi_head.png)
