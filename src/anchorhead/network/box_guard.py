"""Whether inputs lie in the certified box, and what they are rounded to: numbers of the dtype that lie in it, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from anchorhead.domain import Box


@dataclass(frozen=True, eq=False)
class BoxGuard:
    """The ends of a box on a device, in float64, as far as the dtype has numbers.

    interval   the ends of every entry, if all have the same
    passed     where the dtype does not hold ends, so that rounding may pass them, its last numbers in the box
    """

    box: Box
    low: Tensor
    high: Tensor
    interval: tuple[float, float] | None
    passed: tuple[Tensor, Tensor] | None

    @classmethod
    def of(cls, box: Box, kind: np.dtype, device: torch.device) -> Self:
        largest = float(np.finfo(kind).max)
        low, high = (np.clip(end, -largest, largest) for end in (box.low, box.high))
        alike = low.size and (low == low.flat[0]).all() and (high == high.flat[0]).all()
        interval = (float(low.flat[0]), float(high.flat[0])) if alike else None
        first, last = low.astype(kind), high.astype(kind)
        beyond = first < low, last > high
        first = np.where(beyond[0], np.nextafter(first, kind.type(np.inf)), first)
        last = np.where(beyond[1], np.nextafter(last, kind.type(-np.inf)), last)
        numbers = [torch.from_numpy(np.array(end)).to(device) for end in (low, high, first, last)]
        passed = (numbers[2], numbers[3]) if beyond[0].any() or beyond[1].any() else None
        return cls(box, numbers[0], numbers[1], interval, passed)

    def holds(self, x: Tensor) -> bool:
        """Whether all entries lie in the box, for which they must be finite; before they are rounded."""
        x = x.detach()
        if not x.numel():
            return True
        if self.interval is None or not x.is_floating_point():
            exact = x.to(torch.float64)
            return bool(((exact >= self.low) & (exact <= self.high)).all())
        least, largest = torch.aminmax(x)
        return self.interval[0] <= least.item() and largest.item() <= self.interval[1]

    def kept(self, x: Tensor) -> Tensor:
        """Inputs of the box, rounded, without those that have passed its ends by that."""
        if self.passed is None:
            return x
        return x + (x.detach().clamp(*self.passed) - x.detach())
