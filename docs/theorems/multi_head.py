# %% [markdown]
# # H heads, and positions as anchors
#
# **Statement.** $H$ heads over $n$ tokens, nothing appended, approximate $n$ truncated linear functions with an error
# of at most $\max(|a|, |b|)\,\varepsilon_0 + (b - a)/((n - 2) H)$.
#
# **Weights.** Each token's own position $k$ is an anchor: positional features $1, k, k^2$ and two flags for the ends are
# all that keys and values need. Head $h$ owns the $h$-th part of the range: $n - 2$ anchors at the centres of its
# cells, and a dummy of value 0 half a cell beyond either end, except that the first head's lower dummy has value $a$
# and the last head's upper one has value $b$. The heads add up.

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
# **Proof.** Where one head hands over to the next both leak up to $e^{-2c}\max(|a|, |b|)$, so the sharpness has to grow
# with the number of cells. The proof bounds each head on cells between all crossings, adds them up, and then adds the
# rounding of each softmax and of the sum.

# %%
print(net.certificate)
print(ah.check(net))
ah.plot(multi_head_sweep((1, 2, 4, 8, 16), 12), "multi_head.png")

# %% [markdown]
# ![Error against the number of heads](multi_head.png)
