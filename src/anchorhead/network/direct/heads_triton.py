"""Heads on a scalar on a GPU, one kernel each: every t is read once and what is read takes its place, in about the time
of a copy.

The arithmetic is that of `heads`: Horner's rule for series, of which a product and a sum may be rounded in one;
for softmaxes sum_k v_k e_k / sum_k e_k, e_k = exp(z_k - top), which is rounded as often as the sum of v_k (e_k / sum);
for sigmoids 1 / (1 + exp(-z)).
"""

# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# Kernels are written in Triton's language, not in Python's.

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

BLOCK = 1024
"""Entries of one program."""
Quotient = tuple[float, float, float, float, Sequence[float], Sequence[float]]
"""scale, low, high, origin, above, below."""


class FusedSeries:
    """t (entries,), contiguous, becomes q in place: the sum over pieces of scale s above(s) / below(s), where
    s = clip(t, low, high) - origin.

    pieces        scale, low, high, origin, above and below of each: the latter are coefficients from power 0 on
    """

    def __init__(self, pieces: Sequence[Quotient], dtype: torch.dtype, device: torch.device) -> None:
        above, below = max(len(piece[4]) for piece in pieces), max(len(piece[5]) for piece in pieces)
        lines = [len(piece[4]) == len(piece[5]) == 1 for piece in pieces]
        pieces = [piece for kind in (True, False) for piece, line in zip(pieces, lines, strict=True) if line is kind]
        rows = [[*piece[:4], *_filled(piece[4], above), *_filled(piece[5], below)] for piece in pieces]
        self.numbers = torch.tensor(rows, dtype=dtype, device=device)
        self.known = {"LINES": sum(lines), "PIECES": len(pieces), "ABOVE": above, "BELOW": below}

    def __call__(self, t: Tensor) -> None:
        _start(_series, t, self.numbers, **self.known)


def _filled(coefficients: Sequence[float], count: int) -> list[float]:
    """With zeros, which round nothing."""
    return [*coefficients, *[0.0] * (count - len(coefficients))]


class FusedSoftmax:
    """t (entries,), contiguous, becomes sum_k v_k softmax_k(a_k t + g_k) in place; all of shape (keys,)."""

    def __init__(self, slopes: Tensor, offsets: Tensor, values: Tensor) -> None:
        self.numbers, self.keys = torch.cat([slopes, offsets, values]), slopes.shape[0]

    def __call__(self, t: Tensor) -> None:
        _start(_softmax, t, self.numbers, self.keys)


class FusedSigmoid:
    """t (entries,), contiguous, becomes shift + scale sigmoid(rate t + lead) in place."""

    def __init__(self, numbers: Sequence[float], dtype: torch.dtype, device: torch.device) -> None:
        """numbers: rate, lead, scale, shift."""
        self.numbers = torch.tensor(numbers, dtype=dtype, device=device)

    def __call__(self, t: Tensor) -> None:
        _start(_sigmoid, t, self.numbers)


def _start(kernel: Any, t: Tensor, *arguments: Any, **known: Any) -> None:
    with torch.cuda.device(t.device) if t.is_cuda else nullcontext():
        kernel[(triton.cdiv(t.shape[0], BLOCK),)](t, t.shape[0], *arguments, **known, BLOCK=BLOCK)


@triton.jit
def _series(
    t_ptr,
    size,
    numbers_ptr,
    LINES: tl.constexpr,
    PIECES: tl.constexpr,
    ABOVE: tl.constexpr,
    BELOW: tl.constexpr,
    BLOCK: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    t = tl.load(t_ptr + at, inside, other=0.0)
    total = tl.zeros_like(t)
    for piece in tl.static_range(PIECES):
        own_ptr = numbers_ptr + piece * (4 + ABOVE + BELOW)
        s = tl.maximum(t, tl.load(own_ptr + 1), propagate_nan=tl.PropagateNan.ALL)
        s = tl.minimum(s, tl.load(own_ptr + 2), propagate_nan=tl.PropagateNan.ALL) - tl.load(own_ptr + 3)
        q = s
        if piece >= LINES and ABOVE > 1:
            q *= _horner(s, own_ptr + 4, ABOVE)
        if piece >= LINES and BELOW > 1:
            q = _over(q, _horner(s, own_ptr + 4 + ABOVE, BELOW))
        total += tl.load(own_ptr) * q
    tl.store(t_ptr + at, total, inside)


@triton.jit
def _horner(s, coefficients_ptr, COUNT: tl.constexpr):
    """sum_j c_j s^j."""
    total = tl.zeros_like(s) + tl.load(coefficients_ptr + COUNT - 1)
    for step in tl.static_range(2, COUNT + 1):
        total = total * s + tl.load(coefficients_ptr + COUNT - step)
    return total


@triton.jit
def _over(a, b):
    """a / b, rounded once: only for float32 is there another quotient."""
    return tl.div_rn(a, b) if a.dtype == tl.float32 else a / b


@triton.jit
def _softmax(t_ptr, size, numbers_ptr, keys, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    t = tl.load(t_ptr + at, inside, other=0.0)
    top = tl.load(numbers_ptr) * t + tl.load(numbers_ptr + keys)
    for k in range(1, keys):
        z = tl.load(numbers_ptr + k) * t + tl.load(numbers_ptr + keys + k)
        top = tl.maximum(top, z, propagate_nan=tl.PropagateNan.ALL)
    total = tl.zeros_like(t)
    mean = tl.zeros_like(t)
    for k in range(keys):
        e = libdevice.exp(tl.load(numbers_ptr + k) * t + tl.load(numbers_ptr + keys + k) - top)
        total += e
        mean += e * tl.load(numbers_ptr + 2 * keys + k)
    tl.store(t_ptr + at, _over(mean, total), inside)


@triton.jit
def _sigmoid(t_ptr, size, numbers_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    t = tl.load(t_ptr + at, inside, other=0.0)
    z = tl.load(numbers_ptr) * t + tl.load(numbers_ptr + 1)
    weight = _over(tl.zeros_like(t) + 1.0, libdevice.exp(-z) + 1.0)
    tl.store(t_ptr + at, tl.load(numbers_ptr + 2) * weight + tl.load(numbers_ptr + 3), inside)
