# %% [markdown]
# # ReLU networks, and every network of neurons
#
# **The paper:** arXiv:2504.15956, "attention subsumes ReLU networks and many known universal approximators" (no theorem
# number known to us; it follows from Theorem 3.1 of version 1). **Call:** `ah.convert(model, on, within)`.
#
# ## Statement
# Let $y = W_L\,\varphi(\dots \varphi(W_1 x + b_1) \dots) + b_L$ be a feed-forward network with continuous activations
# on a box of inputs. For every $\varepsilon > 0$ there is a network of attention layers with linear maps that is within
# $\varepsilon$ of it on the whole box.
#
# ## Weights
# A neuron $\varphi(w \cdot x + t)$ is a head on a number: its query carries $[w \cdot x + t, 1]$, shared anchors carry
# keys and values. Each head is stretched to the interval that its neuron's argument can reach.
#
# - In the **transformer layout** each neuron is a head, and linear maps act on one token at a time. If there are
#   several tokens, a first attention layer *gathers*: head $j$ asks with 1 for the key $2000\,[\text{position} = j]$
#   and copies token $j$ into every token.
# - In the **sequence layout** each neuron is a token, one head serves all of them (the [single-head
#   theorem](single_head.md) with as many queries as neurons), and linear maps act across the sequence.

# %%
import numpy as np
import torch

import anchorhead as ah

torch.manual_seed(0)
mlp = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 8)).double()
for layout in ("transformer", "sequence"):
    net = ah.convert(mlp, on=(0, 1), tokens=4, within=1e-6, layout=layout)
    print(net.describe().split("Certificate")[0])

# %% [markdown]
# ## Proof
# **Lemma 1 (gathering is exact).** *A key whose logit is at least 1000 above all others gets the weight 1, and the
# others get exactly 0, in float32 and float64.* For $e^{-1000}$ is below half of the smallest positive number of either
# dtype, so `exp` of the differences is 0 (or so small that the products with it round to nothing), and $1/1 = 1$. The
# copied token is the token itself. What the certificate is about is what the dtype computes, so nothing is left over to
# count; in exact arithmetic the others would weigh at most $n e^{-1000}$.
#
# **Lemma 2 (one layer).** *Let head $r$ be within $d_r$ of $\varphi$ on an interval $I_r$, and let the argument that
# reaches it be $\hat s_r \in I_r$ with $|\hat s_r - s_r| \le \epsilon_r$, $s_r \in I_r$ the exact one. If $\varphi$ has
# the Lipschitz constant $\ell_r$ on $I_r$, then its output is within $d_r + \ell_r \epsilon_r$ of $\varphi(s_r)$.* For
# $|\hat r(\hat s) - \varphi(s)| \le |\hat r(\hat s) - \varphi(\hat s)| + |\varphi(\hat s) - \varphi(s)|$.
#
# **Theorem.** *Let $\delta_0 = 0$ and $\delta_l = d_l + \ell_l\,|W_l|\,\delta_{l-1}$ entry by entry, where $|W|$ is the
# matrix of absolute values. If $I_l$ contains $W_l x_{l-1} + b_l$ for every input of the box, widened by
# $|W_l|\,\delta_{l-1}$, then the output errs by at most $|W_L|\,\delta_{L-1}$.*
#
# Proof. By induction the outputs of layer $l - 1$ err by at most $\delta_{l-1}$, so the arguments of layer $l$ err by
# at most $|W_l|\,\delta_{l-1}$ and lie in $I_l$; Lemma 2 gives $\delta_l$. The last map is linear. ∎
#
# **Existence.** Every continuous $\varphi$ on an interval is a uniform limit of heads (by the [uniform
# grid](two_layers.md) in one variable, or by [free anchors](free_anchors.md)). Choose the heads of the last layer
# first, then those of the layer before with $d$ small enough that the later layers do not amplify it beyond
# $\varepsilon$. For activations that are not Lipschitz use a modulus of continuity in Lemma 2. ∎
#
# **Corollary.** Networks of ReLU neurons with one hidden layer are dense in the continuous functions on a box (Cybenko,
# Hornik, Leshno), so attention layers are, too.
#
# ## As a computation
# The proof reads the *stored* network. Every feature is followed as an affine form in the target's own quantities:
# $\hat q = \sum_i c_i q_i + c_0 \pm e$, with an error radius $e$. A linear map acts on forms; a head's query is matched
# with a neuron's argument, whose interval follows from the box; what does not match exactly (weights are rounded when
# stored) becomes part of $e$; the [rounding](rounding.md) of every sum and softmax is added where it happens. Forms
# keep track of quantities that cancel, where intervals would not. How much each head may err is shared out by how
# much the outputs feel it, and what a head leaves of its share goes to others; if rounding has eaten a share, the network is
# built anew with finer heads.

# %%
print(net.certificate)
x = np.random.default_rng(0).uniform(0, 1, (5000, 4, 2))
exact = mlp(torch.from_numpy(x.reshape(5000, 8))).detach().numpy().reshape(5000, 4, 2)
print(f"largest error here {np.abs(net(x) - exact).max():.1e}; proven again: {ah.check(net).stated:.1e}")
plan = ah.plan(mlp, on=(0, 1), within=[1e-1, 1e-3, 1e-6], tokens=4)
print(plan)
ah.plot(plan, "relu_plan.png")

# %% [markdown]
# ![How large for which error: the paper's even anchors, and solved ones](relu_plan.png)
