# %% [markdown]
# # Out to other tools, and in from them
#
# A network goes to where you work: ONNX, torch.export, TransformerLens. And the MLPs that you have there come here.

# %%
import numpy as np
import onnxruntime
import torch
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import anchorhead as ah

net = ah.approximate("x*y + sin(3*x)", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-6)
x = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
print(f"proven within {net.certificate.bound:.2g}: {net.parameters} numbers")

# %% [markdown]
# ## ONNX
#
# MatMul, Add, Softmax and changes of shape, for any batch size; the certificate is in the file's metadata. Another
# runtime makes the same sums in another order, so the last digits may differ.

# %%
ah.export(net, "function.onnx")
session = onnxruntime.InferenceSession("function.onnx")
(name,) = (one.name for one in session.get_inputs())
(y,) = session.run(None, {name: x})
print("largest difference to torch", np.abs(y - net(x)).max())
for key, text in sorted(session.get_modelmeta().custom_metadata_map.items()):
    print(f"{key}: {text[:70]}{'…' if len(text) > 70 else ''}")

# %% [markdown]
# ## torch.export and torch.compile
#
# `net.module()` is a plain torch module. `ah.export(net, "function.pt2")` writes a program that `torch.export.load`
# reads on a machine without Anchorhead.

# %%
ah.export(net, "function.pt2")
program = torch.export.load("function.pt2").module()
print("largest difference", float((program(torch.from_numpy(x)) - net(torch.from_numpy(x))).abs().max()))

# %% [markdown]
# ## TransformerLens
#
# A bridge with hooks and caches, attention-only. Every head and every place of the residual stream has a label, so what
# a method of interpretability finds can be held against the truth.

# %%
bridge = ah.export(net, to="transformer-lens")
for block, (label, heads) in enumerate(zip(bridge.block_labels, bridge.head_labels, strict=True)):
    print(f"block {block}: {label}")
    for number, head in enumerate(heads):
        print(f"  head {number}: {head}")

# %% [markdown]
# Where does each head look? Patterns are read from the cache, as of any model:

# %%
at = torch.tensor([[0.5, -0.25]], dtype=torch.float64)
y, cache = bridge.run_with_cache(at)
last = len(bridge.head_labels) - 1
pattern = cache["pattern", last][0, :, 0]
tokens = bridge.token_labels()
for number, row in enumerate(pattern):
    most = int(row.argmax())
    print(f"head {number} looks at {tokens[most]} with weight {float(row[most]):.3f}")

# %% [markdown]
# And what breaks, if a head is cut out? The error of the output, head by head:

# %%
inputs = torch.from_numpy(x)
exact = inputs[:, 0] * inputs[:, 1] + torch.sin(3 * inputs[:, 0])


def without(head):
    def cut(z, hook):
        z = z.clone()
        z[:, :, head] = 0
        return z

    with torch.no_grad():
        return bridge.run_with_hooks(inputs, fwd_hooks=[(f"blocks.{last}.attn.hook_z", cut)])


for number, label in enumerate(bridge.head_labels[last]):
    error = float((without(number).reshape(-1) - exact).abs().max())
    print(f"without head {number} ({label}): {error:.2g}")

# %% [markdown]
# ## In: an MLP of scikit-learn
#
# The same predictions from attention alone, with a proven error for every input of the box.

# %%
images, digits = load_digits(return_X_y=True)
model = MLPClassifier((16,), max_iter=300, random_state=0, early_stopping=True).fit(images[:1500] / 16, digits[:1500])
attention = ah.convert(model, on=(0, 1), within=1e-6)
scores = attention(images[1500:] / 16)
same = np.array_equal(model.classes_[scores.argmax(axis=1)], model.predict(images[1500:] / 16))
print(f"{attention.parameters:,} numbers, proven within {attention.certificate.bound:.2g}; same digits: {same}")

# %% [markdown]
# `ah.convert("mlp.onnx", on=(0, 1), within=1e-4)` does the same with an ONNX file.
