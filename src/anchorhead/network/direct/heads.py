"""Heads on a scalar in torch, entry by entry of an array of queries t: what is read takes the place of t.

`SeriesHead` evaluates a Saturated, in units in which the read is shift + scale q; `SoftmaxHead` any other head, as the
softmax that it is, with its few keys as the first axis of a block that stays in the cache: along a last axis of three
numbers a softmax takes ten times as long.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from anchorhead.network.direct.saturated import Saturated


class SeriesHead:
    """See saturated: q of t, in place."""

    scratch = 1
    """Arrays of the size of t that an evaluation needs."""
    block = 1 << 19
    """Entries at a time for each thread: few enough for its cache."""

    def __init__(self, found: Saturated) -> None:
        self.found = found
        self.scale, self.shift = found.scale, found.shift
        self.ends = [end if math.isfinite(end) else None for end in (found.low, found.high)]

    def __call__(self, t: Tensor, scratch: Tensor) -> None:
        """t (entries,), contiguous, becomes q."""
        if self.ends != [None, None]:
            t.clamp_(*self.ends)
        if self.found.origin:
            t.sub_(self.found.origin)
        self._polynomial(t, scratch[: t.shape[0]])

    def _polynomial(self, s: Tensor, scratch: Tensor) -> None:
        """s + sum c_j s^j in place, powers by products."""
        if not self.found.coefficients:
            return
        (power, coefficient), *more = self.found.coefficients
        square = torch.mul(s, s, out=scratch)
        if power == 3 and not more:
            torch.addcmul(s, square, s, value=coefficient, out=s)
            return
        total = s.clone()
        for power, coefficient in self.found.coefficients:
            rest = square if power % 2 == 0 else square * s
            for _ in range(power // 2 - 1):
                rest = rest * square
            total.add_(rest, alpha=coefficient)
        s.copy_(total)


class SoftmaxHead:
    """sum_k v_k softmax_k(a_k t + g_k)."""

    scale, shift = 1.0, 0.0

    def __init__(self, slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, dtype: str, device: str) -> None:
        kind = getattr(torch, dtype)
        self.slopes, self.offsets = (
            torch.tensor(np.asarray(one, np.float64), dtype=kind, device=device)[:, None] for one in (slopes, offsets)
        )
        self.values = torch.tensor(np.asarray(values, np.float64), dtype=kind, device=device)[None]
        self.scratch = 2 * len(slopes)
        self.block = max(1, (1 << 16) // len(slopes))

    def __call__(self, t: Tensor, scratch: Tensor) -> None:
        keys = self.slopes.shape[0]
        logits, weights = scratch[: 2 * keys * t.shape[0]].view(2, keys, t.shape[0]).unbind()
        torch.mul(self.slopes, t, out=logits)
        logits.add_(self.offsets)
        torch.softmax(logits, 0, out=weights)
        torch.mm(self.values, weights, out=t[None])
