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

from anchorhead.network.direct.saturated import Crossing, Saturated

BLOCK = 128
"""Entries of which one near a crossing makes all be looked at."""
NEAR = 1.01
"""A crossing is near within so many widths: widths are at least 400 units in the last place of where they are."""


class SeriesHead:
    """See saturated: q of t, in place."""

    scratch = 1
    """Arrays of the size of t that an evaluation needs."""
    block = 1 << 19
    """Entries at a time for each thread: few enough for its cache, enough that mending takes little of the time."""

    def __init__(self, found: Saturated) -> None:
        self.found = found
        self.scale, self.shift = found.scale, found.shift
        self.crossings = [one for one in (found.left, found.right) if one is not None]

    def __call__(self, t: Tensor, scratch: Tensor) -> None:
        """t (entries,), contiguous, becomes q."""
        near: list[tuple[Crossing, Tensor, Tensor]] = []
        for crossing in self.crossings:
            places = self._near(t, crossing, scratch)
            if places.shape[0]:
                near.append((crossing, places, t.index_select(0, places)))
        self._series(t, scratch)
        for crossing, places, before in near:
            t.index_copy_(0, places, self._mended(before, crossing))

    def _series(self, t: Tensor, scratch: Tensor) -> None:
        found = self.found
        if found.low > -math.inf or found.high < math.inf:
            t.clamp_(found.low if found.low > -math.inf else None, found.high if found.high < math.inf else None)
        if found.origin:
            t.sub_(found.origin)
        self._polynomial(t, scratch)

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

    @staticmethod
    def _near(t: Tensor, crossing: Crossing, scratch: Tensor) -> Tensor:
        """The entries near a crossing: those of the blocks in which some are, and of what is left behind the blocks."""
        limit, count = (NEAR * crossing.width) ** 2, t.shape[0] // BLOCK
        whole = count * BLOCK
        blocks = t[:whole].view(count, BLOCK)
        least = torch.amin(_squares(blocks, crossing, scratch[:whole].view(count, BLOCK)), -1)
        rows = torch.nonzero(least < limit)
        found = [t.new_empty(0, dtype=torch.int64)]
        if rows.shape[0]:
            some = blocks.index_select(0, rows.view(-1))
            places = rows * BLOCK + torch.arange(BLOCK, device=t.device)
            found.append(places.masked_select(_squares(some, crossing) < limit))
        if whole < t.shape[0]:
            found.append(torch.nonzero(_squares(t[whole:], crossing) < limit).view(-1) + whole)
        return torch.cat(found[1:]) if len(found) > 2 else found[-1]

    def _mended(self, t: Tensor, crossing: Crossing) -> Tensor:
        """What the steep anchor and the gentle ones give together near a crossing."""
        total = t - self.found.origin
        self._polynomial(total, torch.empty_like(total))
        logit = (t - crossing.at) * crossing.slope
        weight = torch.softmax(torch.stack([torch.zeros_like(logit), logit]), 0)[1]  # whose exp is the one tested
        return crossing.value + (total - crossing.value) * weight


def _squares(t: Tensor, crossing: Crossing, out: Tensor | None = None) -> Tensor:
    """(t - crossing)^2; a crossing that is next to nothing of a width is taken for 0."""
    if abs(crossing.at) > crossing.width / 400:
        t = torch.sub(t, crossing.at, out=out)
    return torch.mul(t, t, out=out)


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
