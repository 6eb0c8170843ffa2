# %% [markdown]
# # ReLU networks, and every network of neurons
#
# **Statement.** Attention subsumes ReLU networks, and with them other universal approximators: any feed-forward network
# on a sequence is computed by attention layers with linear maps, as closely as one likes.
#
# **Weights.** A neuron $\varphi(w \cdot x + t)$ is a head on a scalar: its query carries $[w \cdot x + t, 1]$, shared
# anchors carry keys and values. In the *transformer* layout a neuron is a head and linear maps act on a token alone; in
# the *sequence* layout a neuron is a token, one head serves all of them, and linear maps act across the sequence.

# %%
import torch

import anchorhead as ah

torch.manual_seed(0)
mlp = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 8)).double()
for layout in ("transformer", "sequence"):
    net = ah.convert(mlp, on=(0, 1), tokens=4, within=1e-6, layout=layout)
    print(net.describe())

# %% [markdown]
# **Proof.** Every pre-activation is enclosed on the box, as an affine form in the inputs; each head errs by at most
# $d_r$ there, rounding included; layer by layer the errors are pushed through the absolute values of the weights. Deeper
# networks are done the same way: intervals are widened by the errors that reach them.

# %%
print(net.certificate)
print(ah.check(net))
plan = ah.plan(mlp, on=(0, 1), within=[1e-1, 1e-3, 1e-6], tokens=4)
print(plan)
ah.plot(plan, "relu_plan.png")

# %% [markdown]
# ![How large for which error: the paper's even anchors, and solved ones](relu_plan.png)
