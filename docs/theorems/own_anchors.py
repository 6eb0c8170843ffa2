# %% [markdown]
# # Transformers without feed-forward layers
#
# **The paper:** proves that attention alone suffices; this construction for pretrained models goes beyond it. **Call:**
# `ah.attention_only(model, within)`.
#
# ## Statement
# Every feed-forward sublayer of a pretrained transformer can be replaced by attention heads, one for each neuron (two
# for a gated one), so that for **every** input text each activation is within $\varepsilon \max(1, |s|)$ of the
# original's, and each output of the sublayer within a bound that is proven.
#
# ## Weights
# Each token sees itself and a few *registers*, tokens that carry constants (mask `self+registers`). A neuron's query
# carries $[s, 1]$, $s = w \cdot z + b$. Registers have keys $[\alpha_k, \gamma_k]$ and values $v_k$ as ever; the
# token's *own* key is an anchor too, and its value is $s$ itself:
#
# $$r(s) = \frac{s\,e^{\alpha s} + \sum_k v_k\,e^{\alpha_k s + \gamma_k}}{e^{\alpha s} + \sum_k e^{\alpha_k s + \gamma_k}}.$$
#
# To the right the own key wins and $r(s)$ tends to $s$; to the left a register of value 0 wins. So the head follows
# GELU and its like on the whole line.

# %%
from anchorhead.constructions.single.self_key_head import self_key_head

for within in (1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10):
    head = self_key_head("gelu", within, "float64")
    print(
        f"within {within:g}: {head.registers} registers and the token itself, proven {head.bound:.1e} on the whole line"
    )

# %% [markdown]
# ## Proof: one head
# **Closed forms.** *SiLU is one register, exactly:* with own slope 1 and a register of slope, offset and value 0,
# $r(s) = s e^s/(e^s + 1) = s\,\sigma(s)$. *ReLU:* with own slope $A$ it is $s\,\sigma(A s)$, and
# $|s\,\sigma(A s) - \max(s, 0)| = |s|/(1 + e^{A |s|}) \le 0.2785/A$, the maximum of $x/(1 + e^x)$ being 0.2785.
#
# **Other activations** $f$ that tend to straight lines: $|f(s) - (A_\pm s + B_\pm)| \le \tau_\pm(T) \max(1, |s|)$ for
# $\pm s \ge T$. Three pieces cover the line.
#
# 1. *The middle*, $|s| \le T$: $f - r$ is analytic and is bounded on Bernstein ellipses, by [Lemma 1
#    here](free_anchors.md).
# 2. *To the right*, $s > T$: let the key with the largest slope be on top, with value $V(s)$ (a line: the own key's
#    value is $s$). The key $k$ weighs at most $e^{-g_k(s)}$, where $g_k$ is how far its logit is below; $g_k$ grows
#    with $s$, so for all $s > T$ the others change the result by at most
#    $\sum_k e^{-g_k(T)}\,|v_k - V(s)| \le \text{left over}(T) \max(1, |s|)$. So $r$ is near the line $V$, $f$ is near
#    the line $A_+ s + B_+$, and two lines differ, relative to $\max(1, |s|)$, by at most the difference of their slopes
#    plus that of their constants over $\max(1, T)$. The three add up.
# 3. *To the left* likewise, with the key of the least slope. ∎
#
# **Rounding** is that of [a softmax](rounding.md). Where the own key has nearly all the weight, $|v_k - r|$ is
# multiplied by weights that vanish, so the rounding is relative to $|s|$, too.
#
# **One exponential is enough.** All slopes are whole multiples of one step $\Delta$: with $y = e^{\Delta s}$ all
# exponentials are powers of $y$, and the softmax is a quotient of two polynomials in $y$ with a positive denominator.
# Evaluated by Horner's rule it costs one exponential, two polynomials and a quotient; this way of computing has a
# rounding bound of its own, and the certificate holds for both.
#
# **Gated neurons** $\varphi(g)\,u$ take two heads: the own key has logit 0 and carries $u$, registers carry 0. A head
# then gives $u/(1 + \sum_k e^{\alpha_k g + \gamma_k})$: sums of positive numbers, so float32 computes the weight to a
# few units in the last place however small it is. $\varphi$ is the difference of two such functions, and the difference
# from $\varphi$ is bounded on ellipses as above, relative to $\max(1, |g|)\,|u|$.
#
# ## Proof: one sublayer, for every text
# **Lemma.** *Behind a LayerNorm (its scale and shift folded into $w$ and $b$) every neuron's argument obeys
# $|w \cdot z| \le |w - \bar w|_2 \sqrt d$, whatever the text, where $\bar w$ is the mean of the entries of $w$.* For
# the normalised $z$ has mean 0 and $\sum_i z_i^2 \le d$, so $w \cdot z = (w - \bar w) \cdot z$, and the Cauchy–Schwarz
# inequality applies. (Behind an RMSNorm the same without the mean. The dtype's norm is allowed to round by 0.1 per
# cent, which is counted.)
#
# So every neuron has a range that holds for every text. Within it its head errs by at most
# $\varepsilon_r = \varepsilon \max(1, |s|)$, and an output entry $\sum_r c_r\,\varphi(s_r)$ by at most
# $\sum_r |c_r|\,\varepsilon_r$, to which the rounding of both linear maps is added. ∎

# %%
import torch
from transformers import BertConfig, BertModel

import anchorhead as ah

torch.manual_seed(0)
config = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=100)
model, report = ah.attention_only(BertModel(config).eval(), within=1e-5)
print(report)

# %% [markdown]
# The certificate of the first sublayer:

# %%
print(report.layers[0].certificate)

# %%
import matplotlib.pyplot as plt
import numpy as np

s = np.linspace(-7, 7, 1401)
head = self_key_head("gelu", 1e-5, "float64")
exact = torch.nn.functional.gelu(torch.from_numpy(s)).numpy()
figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(8, 6), layout="constrained")
upper.plot(s, exact, color="#DADADA", linewidth=6, label="gelu")
upper.plot(s, head(s), color="#0072B2", label=f"{head.registers} registers and the token itself")
upper.legend()
lower.plot(s, (head(s) - exact) / np.maximum(1, np.abs(s)), color="#0072B2")
lower.axhspan(-head.bound, head.bound, color="#E69F00", alpha=0.2)
lower.set_xlabel("s")
lower.set_ylabel("error / max(1, |s|)")
figure.savefig("own_anchors.png", dpi=120)
plt.close(figure)

# %% [markdown]
# ![GELU as a head whose own key is an anchor, and its error within the proven band](own_anchors.png)
