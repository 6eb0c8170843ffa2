# %% [markdown]
# # One attention layer and a softmax
#
# **The paper:** arXiv:2504.15956, "one-layer self-attention followed by a softmax function" is a universal approximator
# (no theorem number known to us). **Call:** `ah.convert(model, on, within, form="attention-softmax")`.
#
# ## Statement
# One (multi-head) attention layer followed by a softmax, with linear maps only, approximates every continuous
# sequence-to-sequence function on a compact domain.
#
# ## Weights
# Attention gathers the sequence, a linear map writes the logits $\alpha_k s_r + \gamma_k$ of every neuron $r$, a
# softmax acts on groups of $p$ features (or, in the sequence layout, on each token), and a linear map reads the values.

# %%
import torch

import anchorhead as ah

torch.manual_seed(0)
mlp = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 8)).double()
net = ah.convert(mlp, on=(0, 1), tokens=4, within=1e-6, form="attention-softmax")
print(net.describe())

# %% [markdown]
# ## Proof
# **Lemma.** *An attention head whose keys and values do not depend on the input is a linear map, a softmax and a linear
# map.* For a query $Q z$ of a token $z$, constant keys $k_1, \dots, k_p$ and constant values $v_1, \dots, v_p$ the head
# gives
#
# $$\sum_j v_j\,\mathrm{softmax}_j(k_1 \cdot Q z, \dots, k_p \cdot Q z) = V\,\mathrm{softmax}(K Q\,z),$$
#
# with the matrix $K$ whose rows are the $k_j$ and the matrix $V$ whose columns are the $v_j$. $K Q$ and $V$ are
# constant. ∎
#
# In the [two-layer construction](two_layers.md) the second layer's keys and values sit in registers and are constants.
# Replace it by the lemma: the function that is computed stays the same, in exact arithmetic, and so does its error.
# Neurons are added up by $V$: with groups of features for the neurons, $V$ is one matrix. ∎
#
# Rounding is another matter: each logit is now a dot product with every gathered feature rather than with two numbers,
# so its sums are longer, and the bound counts that:

# %%
print(net.certificate)
print("proven again:", ah.check(net).stated)
ah.plot(net, "attention_softmax.png")

# %% [markdown]
# ![What the network computes along a line through the box, and its error](attention_softmax.png)
