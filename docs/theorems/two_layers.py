# %% [markdown]
# # Two attention layers: any continuous function
#
# **Statement.** Two attention layers, with linear maps only, approximate every continuous sequence-to-sequence function
# on a compact domain.
#
# **Weights.** The first layer *gathers*: head $j$ has query 1 and key $C\,\mathrm{onehot}_j$(position), so every token
# holds the whole sequence afterwards. The second *computes*: neurons, a head each; or one head over a grid of anchors,
# whose logits add up axis by axis, so that its weights are products of softmaxes.

# %%
import numpy as np

import anchorhead as ah

box = {"x": (-1, 1), "y": (-1, 1)}
text = "sin(3*x)*cos(2*y) + exp(x*y)"
for placement, within in (("uniform", 0.3), ("solved", 0.3), ("solved", 1e-6)):
    net = ah.approximate(text, on=box, within=within, placement=placement)
    print(f"{placement:8} {len(net.embed.registers):6,} anchors: proven {net.certificate.bound:.2e}")

# %% [markdown]
# **Proof.** For even anchors, values are those of the function, and its modulus of continuity bounds the error: that is
# the paper's proof. Solved values need more: the grid's weight functions are expanded in Chebyshev polynomials with proven
# remainders, contracted with the values, and the difference from the function is bounded on ellipses, axis by axis.

# %%
print(net.certificate)
ah.plot(net, "two_layers.png")

# %% [markdown]
# ![The function, and the error of the network under its bound](two_layers.png)
#
# Sequences go in and out as well: here two tokens of two features, and an output for each token.

# %%
net = ah.approximate([["x[0,0]*x[1,0]"], ["max(x[0,0], x[1,1])"]], tokens=2, features=2, on=(0, 1), within=1e-3)
print(net.describe())
x = np.random.default_rng(0).uniform(0, 1, (1000, 2, 2))
exact = np.stack([x[:, 0, 0] * x[:, 1, 0], np.maximum(x[:, 0, 0], x[:, 1, 1])], axis=1)
print(f"largest error here {np.abs(net(x)[..., 0] - exact).max():.2e}, proven {net.certificate.bound:.2e}")
