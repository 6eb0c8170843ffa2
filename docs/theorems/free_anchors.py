# %% [markdown]
# # Beyond the paper: free anchors, solved values
#
# **Statement.** Evenly spaced anchors reach an error of about $1/p$. Anchors that may stand anywhere, with values that
# are solved for, reach errors that fall exponentially in $p$ for smooth functions, and 1e-10 for a ReLU with three.
#
# **Weights.** $r(s) = \sum_k v_k\,\mathrm{softmax}_k(\alpha_k s + \gamma_k)$ is linear in the values: given the keys
# they are a least squares problem. The keys are $2p - 2$ numbers, found by variable projection and sharpened towards
# the largest error. The quotient of two sums of exponentials is a rational function of $e^s$, and behaves like one.

# %%
import anchorhead as ah

for anchors in range(3, 11):
    head = ah.head("gelu", on=(-10, 10), anchors=anchors)
    print(f"{anchors:3} anchors: proven {head.certificate.bound:.2e}")
head = ah.head("gelu", on=(-10, 10), within=1e-6)
for slope, offset, value in zip(head.parts[0].slopes, head.parts[0].offsets, head.parts[0].values[:, 0], strict=True):
    print(f"slope {slope:+.6f}  offset {offset:+.6f}  value {value:+.6f}")

# %% [markdown]
# **Proof.** The difference of function and head is analytic. On a piece of the interval it is interpolated at Chebyshev
# points; what is left out is bounded by its size on a Bernstein ellipse, in complex balls. So a few dozen evaluations
# bound the error at every point, to within two per cent of the largest error found. Rounding is bounded on cells.

# %%
print(head.certificate)
ah.plot(head, "gelu.png")

# %% [markdown]
# ![GELU as eight anchors](gelu.png)
#
# **A ReLU is three anchors**: slopes $-A, -h, h$, offsets $\ln 2, 0, 0$, values $0, -1/h, 1/h$. The two small slopes make
# the line, the steep one switches it off.

# %%
print(ah.head("relu", on=(-1, 1), within=1e-9).certificate)
