# %% [markdown]
# # One head, p anchors
#
# **Statement.** Let tokens $x_1, \dots, x_n$ each have a linear function $s_i = w_i \cdot x_i + t_i$ of their own. One
# softmax head with $p$ anchors approximates all $n$ truncated functions, $s_i$ cut off at $a$ and $b$, with an error of
# at most $\max(|a|, |b|)\,\varepsilon_0 + (b - a)/p$. With as many anchors as tokens the error is $O(1/n)$.
#
# **Weights.** Anchors $L_1 < \dots < L_p$ split the range evenly. A query that carries $[s, 1]$ meets keys
# $[2\beta L_k, -\beta L_k^2]$, so that the logits differ from $-\beta (s - L_k)^2$ by what all keys share: softmax
# picks the anchors nearest to $s$, and their values $L_k$ come out, averaged. With spacing $D$ the one number that
# matters is the sharpness $c = \beta D^2$.

# %%
import numpy as np

import anchorhead as ah
from anchorhead.lab import single_head_sweep

rng = np.random.default_rng(0)
w, t = rng.normal(size=(4, 3)), rng.normal(size=4)
net = ah.truncated_linear(w, t, low=-1, high=1, anchors=16)
print(net.describe())

# %% [markdown]
# **Proof.** Between two anchors the head is a smooth curve through a few neighbours; second-order cells between all
# crossings bound its distance from $s$ for every real $s$, and the rounding of the stored weights is bounded anchor by
# anchor. The best sharpness is about 2.7: the error is then 0.063 spacings, where the theorem has one.

# %%
print(net.certificate)
x = rng.uniform(-10, 10, size=(2000, 4, 3))
exact = np.clip(np.einsum("bnd,nd->bn", x, w) + t, -1, 1)
print(f"largest error here {np.abs(net(x)[..., 0] - exact).max():.3e}")
print(ah.check(net))

# %%
ah.plot(single_head_sweep((8, 16, 32, 64, 128), 8), "single_head.png")

# %% [markdown]
# ![The theorem's bound, the proven one, and the largest error found, against the number of anchors](single_head.png)
#
# **Where it ends.** A non-constant map from anchors to outputs (`outputs=`) leaves two outputs at about a half where it
# changes, however sharp the head is; the certificate names the neighbourhoods that it leaves out. In float32 logits of
# 1,000 anchors reach 600,000, and each rounds by 0.03: one softmax cannot do better there.
