"""The kernels of heads for GPUs, run by Triton's interpreter, which needs none."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")

SCRIPT = """
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import torch
import triton.language as tl
from anchorhead.network.direct import heads_triton
from anchorhead.network.direct.heads import SeriesHead, SoftmaxHead
from anchorhead.network.direct.heads_triton import FusedSeries, FusedSigmoid, FusedSoftmax
from anchorhead.network.direct.series import Piece, Series
from anchorhead.network.direct.two_keys import SigmoidHead, TwoKeys

heads_triton.libdevice = SimpleNamespace(exp=lambda x: tl.exp(x))  # the interpreter has none
torch.manual_seed(0)
INFINITE = math.inf
SERIES = [
    (0.25, -1.0, 2.0, ((3, 0.1),), ()),
    (0.0, -INFINITE, INFINITE, ((2, 0.3), (3, 0.1)), ((1, 0.1), (2, 0.7))),
    (0.1, -0.5, INFINITE, (), ()),
    (0.1, -INFINITE, 0.5, (), ((1, 0.1), (2, 0.9))),
]
PIECES = (
    Piece(0.5, 0.5, 1.5, ((2, 0.3), (3, 0.1)), (), 0.75),
    Piece(-1.0, -INFINITE, -1.0, ((2, 0.1),), ((1, -0.1), (2, 0.2)), -1.25),
    Piece(0.25, 0.25, INFINITE, (), (), 0.5),
)
def agree(head, kernel, t):
    one, other = t.clone(), t.clone()
    for operation in head.operations(one, torch.empty(head.scratch(len(t)), dtype=t.dtype)):
        operation()
    kernel(other)
    assert torch.allclose(one, other, rtol=4 * torch.finfo(t.dtype).eps, atol=4 * torch.finfo(t.dtype).eps), head
    assert not torch.equal(one, t)

for dtype in ("float32", "float64"):
    t = torch.randn(2500, dtype=getattr(torch, dtype)).mul(2)
    for origin, low, high, above, below in SERIES:
        found = Series((0.0,), (0.0,), (0.0,), origin, low, high, above, 1.0, 0.0, 9.0, 1.0, below)
        head = SeriesHead(found, dtype)
        agree(head, FusedSeries(head.pieces, t.dtype, t.device), t)
        bent = SeriesHead(replace(found, beside=PIECES), dtype)
        agree(bent, FusedSeries(bent.pieces, t.dtype, t.device), t)
    keys = np.array([-1.0, 0.5, 2.0]), np.array([0.0, 0.1, 0.2]), np.array([1.0, 2.0, -1.0])
    softmax = SoftmaxHead(*keys, dtype, "cpu")
    agree(softmax, FusedSoftmax(*(one.flatten() for one in (softmax.slopes, softmax.offsets, softmax.values))), t)
    numbers = 0.5, -0.25, 2.0, -1.0
    sigmoid = SigmoidHead(TwoKeys((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), *numbers), dtype)
    agree(sigmoid, FusedSigmoid(numbers, t.dtype, t.device), t)
print("agree")
"""


@pytest.mark.slow
def test_the_kernels_compute_what_heads_compute():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("agree\n"), done.stderr
