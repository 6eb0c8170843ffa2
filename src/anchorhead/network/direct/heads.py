"""Heads on a scalar in torch, entry by entry of an array of queries t: what is read takes the place of t.

`SeriesHead` evaluates a Saturated, in units in which the read is shift + scale q; `SoftmaxHead` any other head, as the
softmax that it is, with its few keys as the first axis of a block that stays in the cache: along a last axis of three
numbers a softmax takes ten times as long. Both say which operations do that to an array, once for many evaluations:
of few rows they take as long as Python needs to find them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anchorhead.network.direct.saturated import Saturated

Operation = Callable[[], Any]
BLOCK = 1 << 16
"""Logits at a time for each thread: few enough for its cache."""
ON_DEVICE = 1 << 24
"""Numbers at a time where there is no cache to stay in."""


class SeriesHead:
    """See saturated: q of t, in place."""

    def __init__(self, found: Saturated, dtype: str) -> None:
        self.found = found
        self.scale, self.shift = found.scale, found.shift
        self.ends = [end if math.isfinite(end) else None for end in (found.low, found.high)]
        self.origin = torch.tensor(found.origin, dtype=getattr(torch, dtype))
        self.cubic = [power for power, _ in found.coefficients] == [3]

    def scratch(self, count: int) -> int:
        """Numbers that an evaluation of so many entries needs beside them."""
        return count if self.cubic else 3 * count if self.found.coefficients else 0

    def operations(self, t: Tensor, scratch: Tensor) -> Iterator[Operation]:
        """From t (entries,), contiguous, to q: s = clip(t) - origin, then s + sum c_j s^j, powers by products."""
        if self.ends != [None, None]:
            yield partial(t.clamp_, *self.ends)
        if self.found.origin:
            yield partial(t.sub_, self.origin)
        if self.cubic:
            yield partial(torch.mul, t, t, out=scratch)
            yield partial(torch.addcmul, t, scratch, t, value=self.found.coefficients[0][1], out=t)
        elif self.found.coefficients:
            total, square, power = scratch.view(3, t.shape[0]).unbind()
            yield partial(total.copy_, t)
            yield partial(torch.mul, t, t, out=square)
            for exponent, coefficient in self.found.coefficients:
                yield partial(torch.mul, square, t, out=power) if exponent % 2 else partial(power.copy_, square)
                for _ in range(exponent // 2 - 1):
                    yield partial(power.mul_, square)
                yield partial(total.add_, power, alpha=coefficient)
            yield partial(t.copy_, total)


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

    def scratch(self, count: int) -> int:
        return 2 * self.keys * min(count, self._block)

    @property
    def _block(self) -> int:
        numbers = BLOCK * torch.get_num_threads() if self.slopes.is_cpu else ON_DEVICE
        return max(1, numbers // self.keys)

    def operations(self, t: Tensor, scratch: Tensor) -> Iterator[Operation]:
        for part in t.split(scratch.shape[0] // (2 * self.keys) or 1):
            count = part.shape[0]
            logits, weights = scratch[: 2 * self.keys * count].view(2, self.keys, count).unbind()
            yield partial(torch.mul, self.slopes, part, out=logits)
            yield partial(logits.add_, self.offsets)
            yield partial(torch.softmax, logits, 0, out=weights)
            yield partial(torch.mm, self.values, weights, out=part[None])
