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

from anchorhead.network.direct.series import Series

Operation = Callable[[], Any]
BLOCK = 1 << 16
"""Logits at a time for each thread: few enough for its cache."""
SERIES_BLOCK = 1 << 18
"""Bytes at a time of a series for each thread: with what is held beside them few enough for its cache, and enough for a
call."""
ON_DEVICE = 1 << 27
"""Numbers at a time where there is no cache to stay in."""


class SeriesHead:
    """See series: q of t, in place."""

    def __init__(self, found: Series, dtype: str, device: str = "cpu") -> None:
        self.found, self.on_device = found, torch.device(device).type != "cpu"
        self.scale, self.shift = found.scale, found.shift
        self.ends = [end if math.isfinite(end) else None for end in (found.low, found.high)]
        self.origin = torch.tensor(found.origin, dtype=getattr(torch, dtype))
        self.cubic = not found.below and [power for power, _ in found.coefficients] == [3]
        self.above = _dense([(1, 1.0), *found.coefficients])[1:]
        self.below = _dense([(0, 1.0), *found.below])
        self.kernel = kernel_of("FusedSeries", device, [self.quotient], self.origin.dtype, torch.device(device))

    @property
    def quotient(self) -> tuple:
        """What a kernel is told of it."""
        return 1.0, self.found.low, self.found.high, self.found.origin, self.above, self.below

    def scratch(self, count: int) -> int:
        """Numbers that an evaluation of so many entries needs beside them."""
        if self.kernel is not None:
            return 0
        block = ON_DEVICE if self.on_device else SERIES_BLOCK // self.origin.itemsize * torch.get_num_threads()
        return count if self.cubic else 2 * min(count, block) if len(self.above) + len(self.below) > 2 else 0

    def operations(self, t: Tensor, scratch: Tensor) -> Iterator[Operation]:
        """From t (entries,), contiguous, to q."""
        if self.kernel is not None:
            yield partial(self.kernel, t)
            return
        if self.ends != [None, None]:
            yield partial(t.clamp_, *self.ends)
        if self.found.origin:
            yield partial(t.sub_, self.origin)
        if self.cubic:
            yield partial(torch.mul, t, t, out=scratch)
            yield partial(torch.addcmul, t, scratch, t, value=self.found.coefficients[0][1], out=t)
        elif len(scratch):
            for s in t.split(len(scratch) // 2):
                above, below = scratch[: len(s)], scratch[-len(s) :]
                if len(self.above) > 1:
                    yield from _horner(self.above, s, above)
                if len(self.below) > 1:
                    yield from _horner(self.below, s, below)
                if len(self.above) > 1:
                    yield partial(s.mul_, above)
                if len(self.below) > 1:
                    yield partial(s.div_, below)


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
