# %% [markdown]
# # How large for a given error?
#
# The theorems say that a network exists. How large must it be? A plan says so before anything is built; heads show
# how the error falls with every anchor.

# %%
import anchorhead as ah
from anchorhead.lab import single_head_sweep

# %% [markdown]
# ## The paper's rate
#
# One head with p evenly spaced anchors clips a linear function within (b - a)/p. What is proven here is about fifteen
# times smaller, and falls at the same rate:

# %%
sweep = single_head_sweep((8, 16, 32, 64, 128), 8)
ah.plot(sweep)

# %% [markdown]
# ## Far past the rate
#
# Anchors and values that are solved for: every anchor more divides the error of GELU by about ten.

# %%
for anchors in range(3, 11):
    head = ah.head("gelu", on=(-10, 10), anchors=anchors)
    print(f"{anchors:3} anchors: proven {head.certificate.bound:.2e}")

# %% [markdown]
# ## A plan
#
# What a function's parts become, and how large the network will be for each error, beside the paper's placement:

# %%
plan = ah.plan("sin(3*x)*cos(2*y) + exp(x*y)", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-6)
print(plan)
ah.plot(plan)
