# %% [markdown]
# # One attention layer and a softmax
#
# **Statement.** One (multi-head) attention layer followed by a softmax, with linear maps only, approximates every
# continuous sequence-to-sequence function on a compact domain.
#
# **Weights.** An attention whose keys and values are constants is Linear, Softmax, Linear. So the layer that computes
# may be written that way: attention gathers the sequence, a linear map writes the logits
# $\alpha_k s_r + \gamma_k$ of every neuron, a softmax acts on groups of $p$ features, a linear map reads the values.

# %%
import torch

import anchorhead as ah

torch.manual_seed(0)
mlp = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 8)).double()
net = ah.convert(mlp, on=(0, 1), tokens=4, within=1e-6, form="attention-softmax")
print(net.describe())

# %% [markdown]
# **Proof.** The same as for two attention layers; only the sums are longer, and so is the rounding: each logit now has
# a product with every feature, not with two.

# %%
print(net.certificate)
print(ah.check(net))
ah.plot(net, "attention_softmax.png")

# %% [markdown]
# ![What the network computes along a line through the box, and its error](attention_softmax.png)
