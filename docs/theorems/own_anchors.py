# %% [markdown]
# # Transformers without feed-forward layers
#
# **Statement.** Attention alone suffices: every feed-forward sublayer of a pretrained transformer can be replaced by
# attention heads, a head a neuron, with a proven bound for every input text.
#
# **Weights.** Each token sees itself and a few registers (mask `self+registers`). A neuron's query carries $[s, 1]$,
# $s = w \cdot z + b$. Registers have keys $[\alpha_k, \gamma_k]$ and values $v_k$ as ever; the token's *own* key is an
# anchor too, and its value is $s$ itself:
#
# $$r(s) = \frac{s\,e^{\alpha s} + \sum_k v_k\,e^{\alpha_k s + \gamma_k}}{e^{\alpha s} + \sum_k e^{\alpha_k s + \gamma_k}}.$$
#
# To the right the own key wins and $r(s) = s$; to the left a register of value 0 wins. So the head follows GELU on the
# whole line, with an error relative to $\max(1, |s|)$, and so does its rounding. `silu` is exact with one register, a
# ReLU errs by $0.28/\alpha$, and $\alpha$ may be huge.

# %%
from anchorhead.constructions.own_head import own_head

for within in (1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10):
    head = own_head("gelu", within, "float64")
    print(
        f"within {within:g}: {head.registers} registers and the token itself, proven {head.bound:.1e} on the whole line"
    )

# %% [markdown]
# All slopes are whole multiples of one step, so all exponentials are powers of one: the softmax of all anchors costs
# one exponential, two polynomials and a quotient.
#
# **Gated neurons** $\varphi(g)\,u$ take two heads: the own key carries $u$, registers carry 0. A weight is then
# $1/(1 + \sum_k e^{\alpha_k g + \gamma_k})$, which float32 computes to a few units in the last place however small it
# is, and $\varphi$ is the difference of two such functions.

# %%
import torch
from transformers import BertConfig, BertModel

import anchorhead as ah

torch.manual_seed(0)
config = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=100)
model, report = ah.attention_only(BertModel(config).eval(), within=1e-5)
print(report)

# %% [markdown]
# **Proof.** Behind a LayerNorm $|w \cdot z|$ is at most $|w|_2 \sqrt d$, its affine part folded into $w$ and $b$. So every
# neuron has a range that holds for every text, and errors of heads and of rounding are added up over the neurons:

# %%
print(report.layers[0].certificate)

# %%
import matplotlib.pyplot as plt
import numpy as np

s = np.linspace(-7, 7, 1401)
head = own_head("gelu", 1e-5, "float64")
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
