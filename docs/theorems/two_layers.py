# %% [markdown]
# # Two attention layers: any continuous function
#
# **The paper:** arXiv:2504.15956v1, Theorem 3.3. **Call:** `ah.approximate(f, on, within)`.
#
# ## Statement
# Two attention layers, with linear maps only, approximate every continuous sequence-to-sequence function on a compact
# domain: for continuous $f: [a, b]^{n \times d} \to \mathbb{R}^{n \times m}$ and $\varepsilon > 0$ there is such a
# network within $\varepsilon$ of $f$ everywhere.
#
# ## Weights
# The first layer *gathers*: head $j$ has query 1 and key $C\,[\text{position} = j]$, so every token holds the whole
# sequence afterwards (with $C = 2000$ exactly so in float32 and float64, by [Lemma 1 here](relu_networks.md); in exact
# arithmetic up to weights of $n e^{-C}$). The second *computes*: one head for each neuron; or one head over a **grid**
# of anchors, whose logits add up axis by axis,
#
# $$z_{k_1 \dots k_D} = \sum_{j=1}^{D} (\alpha^j_{k_j} x_j + \gamma^j_{k_j}), \qquad w_{k_1 \dots k_D} = \prod_{j=1}^{D} w^j_{k_j}(x_j),$$
#
# so that its weights are products of softmaxes, one for each axis. So that each token gets its own output, the grid has
# one more axis, which selects the token's position: the logits are 0 at the token's own place and at most $-C$
# elsewhere.

# %%
import numpy as np

import anchorhead as ah

box = {"x": (-1, 1), "y": (-1, 1)}
text = "sin(3*x)*cos(2*y) + exp(x*y)"
for placement, within in (("uniform", 0.3), ("solved", 0.3), ("solved", 1e-6)):
    net = ah.approximate(text, on=box, within=within, placement=placement)
    print(f"{placement:8} {len(net.embed.registers):6,} anchors: proven {net.certificate.bound:.2e}")

# %% [markdown]
# ## Proof of the theorem: a uniform grid that holds values of f
# Let anchors stand at the points $a_k$ of a uniform grid with spacing $\delta_j$ along axis $j$ of the $D = n d$
# entries, with sharpness $c$ and values $f(a_k)$. Weights are not negative and add up to 1, so
#
# $$|r(x) - f(x)| = |\sum_k w_k(x)\,(f(a_k) - f(x))| \le \sum_k w_k(x)\,|f(a_k) - f(x)|.$$
#
# Let $x$ lie in a cell of the grid. Along each axis, by [Lemma 1 of the single head](single_head.md), the anchors more
# than $R$ steps beyond the cell weigh at most $S_R = \sum_{m > R} e^{-c m^2}$ together. The weights of the grid are
# products, so the weights of one axis are their marginals, and the anchors that are more than $R$ steps off along
# *some* axis weigh at most $D S_R$. All other anchors are within $(R + 1) \delta_j$ of $x$ along every axis. With the
# modulus of continuity $\omega(\eta) = \sup \{|f(x) - f(y)| : |x_j - y_j| \le \eta\}$ and the oscillation
# $\mathrm{osc} = \sup f - \inf f$,
#
# $$\sup |r - f| \le \omega\bigl((R + 1) \max_j \delta_j\bigr) + D\,S_R\,\mathrm{osc}.$$
#
# Choose $R$ so that the second term is at most $\varepsilon/3$ for every entry of the output, then the grid so fine
# that the first is, which is possible because $f$ is uniformly continuous on a compact set.
#
# One head serves all entries: it has an anchor for each grid point $a_k$ and each position $i$, whose value is the
# vector of the $m$ entries of $f(a_k)$ at token $i$, and the axis of positions selects the token's own. Gathering and
# selecting leak weights of at most $n e^{-C}$ each. What is gathered is a mean of tokens: it lies in the box, too, and
# each entry is within $(b - a)\,n e^{-C}$ of that of the token meant. Selecting changes the output by at most
# $2 n e^{-C} \sup |f|$. $r$ is uniformly continuous and does not depend on $C$, so for $C$ large enough both together
# change the output by at most $\varepsilon/3$. ∎
#
# The library's uniform grids use a sharper version of the same argument, cell by cell, with $|\partial f/\partial x_j|$
# or the range of $f$ on blocks of cells enclosed in balls. It needs $1/\varepsilon$ anchors along each axis, so it is
# for a few variables. Many variables are served by structure: [sums of neurons](relu_networks.md), which the same two
# layers compute.
#
# ## Proof for solved grids
# With values that are solved for, neighbouring anchors cancel each other's errors, and $|f(a_k) - f(x)|$ is of no use.
# Let $g = f - r$ on a box, and $I_j g$ the polynomial of degree $n_j$ in $x_j$ that agrees with $g$ at $n_j + 1$
# Chebyshev points $\cos(k\pi/n_j)$ of the $j$-th axis. Let $\Lambda_j = 1 + \frac2\pi \ln(n_j + 1)$, which bounds the
# Lebesgue constant of this interpolation: $\sup |I_j h| \le \Lambda_j \sup |h|$ (Ehlich and Zeller; Theorem 15.2 in
# Trefethen's *Approximation Theory and Approximation Practice*).
#
# **Proposition.** *If $|g - I_j g| \le e_j$ on the box, and $p$ is the polynomial through values that are within $e$ of
# $g$ at the tensor grid of Chebyshev points, then*
#
# $$\sup |g| \le \sup |p| + e \prod_j \Lambda_j + \sum_j e_j \prod_{l < j} \Lambda_l.$$
#
# Proof. $g - I_1 \cdots I_D g = \sum_j I_1 \cdots I_{j-1} (g - I_j g)$, a telescoping sum, and each $I_l$ amplifies by
# at most $\Lambda_l$: this bounds the last term. $I_1 \cdots I_D g - p$ interpolates numbers of size at most $e$: the
# middle term. ∎
#
# The $e_j$ come from the remainder of [Lemma 1 here](free_anchors.md), $4 M \rho^{-n}/(\rho - 1)$, for $f$ along one
# axis at a time with the others in their intervals, and for the one-dimensional weight functions $w^j_k$ of the head.
# $\sup |p|$ follows from values on a finer tensor grid, with the factor $1/\cos(\pi/(2K))$ of the same lemma once for
# each axis. Where ellipses cannot be found or degrees get too high, the box is halved. [Rounding](rounding.md) is added
# with logits that are sums over the axes.

# %%
print(net.certificate)
ah.plot(net, "two_layers.png")

# %% [markdown]
# ![The function, and the error of the network under its bound](two_layers.png)
#
# ## A function of a sequence
# Two tokens of two features go in, and one output for each token comes out:

# %%
net = ah.approximate([["x[0,0]*x[1,0]"], ["max(x[0,0], x[1,1])"]], tokens=2, features=2, on=(0, 1), within=1e-3)
print(net.describe())
x = np.random.default_rng(0).uniform(0, 1, (1000, 2, 2))
exact = np.stack([x[:, 0, 0] * x[:, 1, 0], np.maximum(x[:, 0, 0], x[:, 1, 1])], axis=1)
print(f"largest error here {np.abs(net(x)[..., 0] - exact).max():.2e}, proven {net.certificate.bound:.2e}")
