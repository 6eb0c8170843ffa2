"""A softmax head on a scalar, as proofs see it, and the target it is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

NEGLIGIBLE = 60.0
"""Anchors whose logit lies this far below the largest are bounded together, not one by one: exp(-60) = 9e-27."""


@dataclass(frozen=True, eq=False)
class ScalarHead:
    """A head on a scalar, in exact arithmetic, with what the dtype makes of its weights.

    groups           which output feature each anchor writes to, -1 for none (its value is then 0)
    slope_error      how far the dtype's slopes, offsets and values (which it computes) may be from these
    copies           how many tokens carry each anchor
    """

    slopes: Float[np.ndarray, " p"]
    offsets: Float[np.ndarray, " p"]
    values: Float[np.ndarray, " p"]
    groups: Int[np.ndarray, " p"]
    origin: float
    slope_error: Float[np.ndarray, " p"]
    offset_error: Float[np.ndarray, " p"]
    value_error: Float[np.ndarray, " p"]
    copies: int = 1

    @cached_property
    def crossings(self) -> Float[np.ndarray, " gaps"]:
        """The queries at which neighbouring anchors weigh the same."""
        return self.origin - np.diff(self.offsets) / np.diff(self.slopes)

    @cached_property
    def window(self) -> tuple[int, float]:
        """How many anchors to each side of the heaviest matter, and a bound on the weight of all the others.

        Where anchor j is the heaviest, q lies between its crossings x_(j-1) and x_j, so that
        z_j - z_(j+i) = sum_(m<i) step_(j+m) (x_(j+m) - q) >= sum_(m<i) step_(j+m) (x_(j+m) - x_j); likewise below.
        """
        x, step = self.crossings, np.diff(self.slopes)
        count = len(self.slopes)
        right, left = np.zeros(count), np.zeros(count)
        for reach in range(1, count):
            right = right[:-1] + step[reach - 1 :] * (x[reach - 1 :] - x[: len(x) - reach + 1])
            left = left[1:] + step[: len(x) - reach + 1] * (x[reach - 1 :] - x[: len(x) - reach + 1])
            if min(right.min(), left.min()) > NEGLIGIBLE:
                return reach - 1, self.unseen_weight
        return count - 1, 0.0

    @property
    def unseen_weight(self) -> float:
        """A bound on the weight of all anchors whose logit is NEGLIGIBLE below the largest."""
        return len(self.slopes) * float(np.exp(-NEGLIGIBLE))


@dataclass(frozen=True)
class Piece:
    """The target on low <= q <= high: level + slope q, in output feature `group`, and 0 in the others."""

    low: float
    high: float
    level: float
    slope: float
    group: int


@dataclass(frozen=True)
class Readout:
    """What happens to the sum of the heads: a bias is added; how often each head's output is rounded on the way."""

    bias: float
    roundings: int
