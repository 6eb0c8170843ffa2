# %% [markdown]
# # A function of your own
#
# Name a function, say where, say how well: out comes an attention-only network, its size and the proof.

# %%
import numpy as np

import anchorhead as ah

net = ah.approximate("sin(3*x)*exp(x)", on={"x": (-1, 1)}, within=1e-6)
print(net.certificate)

# %% [markdown]
# It runs like a function, and it is nothing but linear maps and softmax:

# %%
x = np.linspace(-1, 1, 5)[:, None]
print(np.c_[x, net(x), np.sin(3 * x) * np.exp(x)])
print(net.describe())

# %%
ah.plot(net)

# %% [markdown]
# ## Several variables, several outputs
#
# Structure comes first: sums of functions of one linear combination become heads, max and abs of affine parts become
# ridges, products go to a grid.

# %%
box = {"x": (-1, 1), "y": (0, 2), "z": (-3, 3)}
net = ah.approximate(["exp(x*y) + sin(z)", "max(x, y) - abs(z)"], on=box, within=1e-4)
print(net.certificate)
print(net(np.array([0.5, 1.0, 2.0])))

# %% [markdown]
# ## A callable
#
# Of a callable only values are known. So the certificate says *measured*: by a search for the worst place. Give a
# Lipschitz constant, and it says *proven*.


# %%
def bump(x):
    return np.exp(-3 * (x**2).sum(axis=1))


measured = ah.approximate(bump, on={"a": (-1, 1), "b": (-1, 1)}, within=1e-3)
proven = ah.approximate(bump, on={"a": (-1, 1), "b": (-1, 1)}, within=0.1, lipschitz=1.5)
for net in (measured, proven):
    print(f"{net.certificate.kind}: {net.certificate.bound:.2e}, {net.parameters:,} parameters")

# %% [markdown]
# ## Keep it, and have it checked
#
# A file holds the weights, the function and the certificate. `ah.check` proves the bound anew from the stored weights
# and the stored function, by a verifier that shares nothing with what built the network.

# %%
net = ah.approximate("x*y + sin(z)", on=box, within=1e-4)
net.save("net.safetensors")
print(ah.check("net.safetensors").line)
