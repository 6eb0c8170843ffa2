"""A Series on a GPU: one kernel that reads every t once and writes its q, in about the time of a copy.

The arithmetic is that of `heads.SeriesHead`, by Horner's rule; a product and a sum may be rounded once, not twice.
"""

# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false
# Kernels are written in Triton's language, not in Python's.

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
"""Entries of one program."""


class FusedSeries:
    """t (entries,), contiguous, becomes q in place.

    ends          those that t is clipped to, None where it is not
    above, below  coefficients from power 0 on: q = s above(s) / below(s), s = t - origin; below is [1.0] where there is
                  no denominator
    """

    def __init__(
        self,
        ends: Sequence[float | None],
        origin: float,
        above: Sequence[float],
        below: Sequence[float],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        low, high = ends
        numbers = [0.0 if low is None else low, 0.0 if high is None else high, origin, *above, *below]
        self.numbers = torch.tensor(numbers, dtype=dtype, device=device)
        self.known = {
            "LOW": low is not None,
            "HIGH": high is not None,
            "ORIGIN": origin != 0,
            "ABOVE": len(above),
            "BELOW": len(below),
            "BLOCK": BLOCK,
        }

    def __call__(self, t: Tensor) -> None:
        with torch.cuda.device(t.device) if t.is_cuda else nullcontext():
            _series[(triton.cdiv(t.shape[0], BLOCK),)](t, t.shape[0], self.numbers, **self.known)


@triton.jit
def _series(
    t_ptr,
    size,
    numbers_ptr,
    LOW: tl.constexpr,
    HIGH: tl.constexpr,
    ORIGIN: tl.constexpr,
    ABOVE: tl.constexpr,
    BELOW: tl.constexpr,
    BLOCK: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    s = tl.load(t_ptr + at, inside, other=0.0)
    if LOW:
        s = tl.maximum(s, tl.load(numbers_ptr), propagate_nan=tl.PropagateNan.ALL)
    if HIGH:
        s = tl.minimum(s, tl.load(numbers_ptr + 1), propagate_nan=tl.PropagateNan.ALL)
    if ORIGIN:
        s -= tl.load(numbers_ptr + 2)
    q = s
    if ABOVE > 1:
        q *= _horner(s, numbers_ptr + 3, ABOVE)
    if BELOW > 1:
        d = _horner(s, numbers_ptr + 3 + ABOVE, BELOW)
        q = tl.div_rn(q, d) if q.dtype == tl.float32 else q / d
    tl.store(t_ptr + at, q, inside)


@triton.jit
def _horner(s, coefficients_ptr, COUNT: tl.constexpr):
    """sum_j c_j s^j."""
    total = tl.zeros_like(s) + tl.load(coefficients_ptr + COUNT - 1)
    for step in tl.static_range(2, COUNT + 1):
        total = total * s + tl.load(coefficients_ptr + COUNT - step)
    return total
