"""The kernels for GPUs, run by Triton's interpreter, which needs none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

SCRIPT = """
from types import SimpleNamespace

import torch
import triton.language as tl
from own_heads import gate_head, own_head
from anchorhead.convert.attention_only.attend import GateAttention, SelfKeyAttention
from anchorhead.convert.attention_only import attend_triton
from anchorhead.convert.attention_only.heads import numbers_of

# the interpreter has no libdevice
attend_triton.libdevice = SimpleNamespace(
    exp=lambda x: tl.exp(x), fast_expf=lambda x: tl.exp(x), fast_dividef=lambda a, b: a / b
)
torch.manual_seed(0)
s, u = (torch.randn(3, 1500).mul(4) for _ in range(2))
for name in ("gelu", "silu", "leaky_relu", "hardtanh", "tanh"):
    module = SelfKeyAttention(numbers_of(own_head(name, "float32")))
    for way in ("direct", "powers") if module.has_powers else ("direct",):
        for x, within in ((s, 2e-6), (s.half(), 1e-3)):
            r = attend_triton.KERNELS[way](dict(module.named_buffers()), module.structure, x)
            assert torch.allclose(r, module(x), rtol=within, atol=within), (name, way)
gate = GateAttention(numbers_of(gate_head("float32")))
r = attend_triton.KERNELS["gate"](dict(gate.named_buffers()), gate.structure, s, u)
assert torch.allclose(r, gate(s, u), rtol=2e-6, atol=2e-6)
print("agree")
"""


@pytest.mark.slow
def test_the_kernels_agree_with_the_formulas():
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("agree\n"), done.stderr
