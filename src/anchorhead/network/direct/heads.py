"""Heads on a scalar in torch, entry by entry of an array of queries t: what is read takes the place of t.

`SeriesHead` evaluates a Series, in units in which the read is shift + scale q, by Horner's rule, an operation a
coefficient, on blocks that stay in the cache; `SoftmaxHead` any other head, as the softmax that it is, with its few
keys as the first axis of such a block: along a last axis of three numbers a softmax takes ten times as long. On a GPU
each is one kernel (`heads_triton`). Both say which operations do that to an array, once for many evaluations: of few
rows they take as long as Python needs to find them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anchorhead.network.direct.series import Piece, Series

Operation = Callable[[], Any]
BLOCK = 1 << 16
"""Logits at a time for each thread: few enough for its cache."""
SERIES_BLOCK = 1 << 18
"""Bytes at a time of a series for each thread: with what is held beside them few enough for its cache, and enough for a
call."""
ON_DEVICE = 1 << 27
"""Numbers at a time where there is no cache to stay in."""


class SeriesHead:
    """See series: q of t, in place.

    Of several pieces, what the others give is computed from t first, on a block that stays in the cache, then the first
    takes the place of t, and the others are added to it.
    """

    def __init__(self, found: Series, dtype: str, device: str = "cpu") -> None:
        self.found, self.scale, self.shift = found, found.scale, found.shift
        self.first, *others = (Quotient(one, dtype, device) for one in (found, *found.beside))
        self.others = list(zip(others, (piece.scale for piece in found.beside), strict=True))
        self.kernel = kernel_of("FusedSeries", device, self.pieces, getattr(torch, dtype), torch.device(device))

    @property
    def pieces(self) -> list[tuple]:
        """What a kernel is told of it."""
        return [(scale, *quotient.numbers) for quotient, scale in ((self.first, 1.0), *self.others)]

    def scratch(self, count: int) -> int:
        """Numbers that an evaluation of so many entries needs beside them."""
        if self.kernel is not None:
            return 0
        if not self.others:
            return self.first.scratch(count)
        block = min(count, self.first.block)
        return len(self.others) * block + max(one.scratch(block) for one in (self.first, *(q for q, _ in self.others)))

    def operations(self, t: Tensor, scratch: Tensor) -> Iterator[Operation]:
        """From t (entries,), contiguous, to q."""
        if self.kernel is not None:
            yield partial(self.kernel, t)
            return
        if not self.others:
            yield from self.first.operations(t, t, scratch)
            return
        block = min(len(t), self.first.block)
        for s in t.split(block) if block else ():
            *parts, rest = scratch.split([*[block] * len(self.others), len(scratch) - block * len(self.others)])
            parts = [part[: len(s)] for part in parts]
            for part, (one, _) in zip(parts, self.others, strict=True):
                yield from one.operations(s, part, rest[: one.scratch(len(s))])
            yield from self.first.operations(s, s, rest[: self.first.scratch(len(s))])
            for part, (_, scale) in zip(parts, self.others, strict=True):
                yield partial(torch.add, s, part, alpha=scale, out=s)


class Quotient:
    """s above(s) / below(s), s = clip(t, low, high) - origin: what a series is, or a piece of it beside its scale."""

    def __init__(self, of: Series | Piece, dtype: str, device: str) -> None:
        self.low, self.high = of.low, of.high
        self.ends = [end if math.isfinite(end) else None for end in (of.low, of.high)]
        self.origin = torch.tensor(of.origin, dtype=getattr(torch, dtype))
        self.cubic = not of.below and [power for power, _ in of.coefficients] == [3]
        self.above = _dense([(1, 1.0), *of.coefficients])[1:]
        self.below = _dense([(0, 1.0), *of.below])
        self.on_cpu = torch.device(device).type == "cpu"

    @property
    def numbers(self) -> tuple:
        return self.low, self.high, self.origin.item(), self.above, self.below

    @property
    def block(self) -> int:
        return numbers_at_a_time(self.origin.itemsize, self.on_cpu)

    def scratch(self, count: int) -> int:
        return count if self.cubic else 2 * min(count, self.block) if len(self.above) + len(self.below) > 2 else 0

    def operations(self, t: Tensor, out: Tensor, scratch: Tensor) -> Iterator[Operation]:
        """From t to out, which may be t."""
        if self.ends != [None, None]:
            yield partial(torch.clamp, t, *self.ends, out=out)
        elif out is not t:
            yield partial(out.copy_, t)
        if self.origin:
            yield partial(out.sub_, self.origin)
        if self.cubic:
            yield partial(torch.mul, out, out, out=scratch)
            yield partial(torch.addcmul, out, scratch, out, value=self.above[2], out=out)
        elif len(scratch):
            for s in out.split(len(scratch) // 2):
                above, below = scratch[: len(s)], scratch[-len(s) :]
                if len(self.above) > 1:
                    yield from _horner(self.above, s, above)
                if len(self.below) > 1:
                    yield from _horner(self.below, s, below)
                if len(self.above) > 1:
                    yield partial(s.mul_, above)
                if len(self.below) > 1:
                    yield partial(s.div_, below)


def numbers_at_a_time(itemsize: int, on_cpu: bool) -> int:
    """Entries of a block."""
    return SERIES_BLOCK // itemsize * torch.get_num_threads() if on_cpu else ON_DEVICE


def kernel_of(name: str, device: str, *given: Any) -> Callable[[Tensor], Any] | None:
    """All of a head as one kernel, where there are such."""
    if torch.device(device).type != "cuda":
        return None
    try:
        from anchorhead.network.direct import heads_triton
    except ImportError:  # triton is not there for every machine with a GPU
        return None
    return getattr(heads_triton, name)(*given)


def _dense(powers: Sequence[tuple[int, float]]) -> list[float]:
    """The coefficients from power 0 on."""
    known = dict(powers)
    return [known.get(power, 0.0) for power in range(max(known) + 1)]


def _horner(coefficients: Sequence[float], s: Tensor, out: Tensor) -> Iterator[Operation]:
    """out = sum_j coefficients_j s^j, of two or more."""
    *others, before, last = coefficients
    yield partial(torch.add, s.new_tensor(before), s, alpha=last, out=out)
    for one in reversed(others):
        yield partial(torch.addcmul, s.new_tensor(one), s, out, out=out)


class SoftmaxHead:
    """sum_k v_k softmax_k(a_k t + g_k)."""

    scale, shift = 1.0, 0.0

    def __init__(self, slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, dtype: str, device: str) -> None:
        kind = getattr(torch, dtype)
        self.slopes, self.offsets = (
            torch.tensor(np.asarray(one, np.float64), dtype=kind, device=device)[:, None] for one in (slopes, offsets)
        )
        self.values = torch.tensor(np.asarray(values, np.float64), dtype=kind, device=device)[None]
        self.keys = len(slopes)
        self.kernel = kernel_of(
            "FusedSoftmax", device, *(one.flatten() for one in (self.slopes, self.offsets, self.values))
        )

    def scratch(self, count: int) -> int:
        return 2 * self.keys * min(count, self._block) if self.kernel is None else 0

    @property
    def _block(self) -> int:
        numbers = BLOCK * torch.get_num_threads() if self.slopes.is_cpu else ON_DEVICE
        return max(1, numbers // self.keys)

    def operations(self, t: Tensor, scratch: Tensor) -> Iterator[Operation]:
        if self.kernel is not None:
            yield partial(self.kernel, t)
            return
        for part in t.split(scratch.shape[0] // (2 * self.keys) or 1):
            count = part.shape[0]
            logits, weights = scratch[: 2 * self.keys * count].view(2, self.keys, count).unbind()
            yield partial(torch.mul, self.slopes, part, out=logits)
            yield partial(logits.add_, self.offsets)
            yield partial(torch.softmax, logits, 0, out=weights)
            yield partial(torch.mm, self.values, weights, out=part[None])
