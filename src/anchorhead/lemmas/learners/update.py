"""What a step keeps of w and v, and how what heads read is added to both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from anchorhead.targets.descent import Descent


@dataclass(frozen=True)
class Update:
    """w <- kept w + momentum v + what is read, and v <- pulled w + momentum v + the same, entry by entry.

    kept, pulled   1 - rate decay and -rate decay; without momentum there is no v, and nothing is pulled
    """

    kept: tuple[float, ...]
    momentum: float
    pulled: tuple[float, ...]

    @classmethod
    def of(cls, target: Descent) -> Update:
        pull = target.rate * target.decays
        return cls(tuple(1 - pull), target.momentum, tuple(-pull if target.momentum else 0 * pull))

    @classmethod
    def read(cls, skip: Float[np.ndarray, "width width"], target: Descent, w: int) -> Update:
        """From the skip of the layer that writes w; w: the slot of its first entry."""
        slots = np.arange(w, w + target.weights)
        kept = tuple(map(float, skip[slots, slots]))
        if not target.momentum:
            return cls(kept, 0.0, (0.0,) * target.weights)
        speeds = slots + target.weights
        return cls(kept, float(skip[slots[0], speeds[0]]), tuple(map(float, skip[speeds, slots])))

    def skip(self, width: int, w: int, moves: bool) -> Float[np.ndarray, "width width"]:
        """All other features stay; moves: whether there is a v, in the slots that follow those of w."""
        result = np.eye(width)
        slots = np.arange(w, w + len(self.kept))
        result[slots, slots] = self.kept
        if moves:
            speeds = slots + len(slots)
            result[slots, speeds] = self.momentum
            result[speeds, speeds] = self.momentum
            result[speeds, slots] = self.pulled
        return result

    def wrong(self, target: Descent) -> tuple[np.ndarray, np.ndarray, float]:
        """|stored - exact| of what multiplies w in w, w in v, and v."""
        in_w, in_v = _wrong(self, target.rate, target.decay, target.intercept)
        of_v = float(abs(Fraction(self.momentum) - Fraction(target.momentum)))
        return np.array(in_w), np.array(in_v) if target.momentum else np.zeros(len(in_v)), of_v


@lru_cache(maxsize=256)
def _wrong(update: Update, rate: float, decay: float, intercept: bool) -> tuple[list[float], list[float]]:
    """|kept - (1 - rate decay)| and |pulled + rate decay|, without the decay for the intercept, the last entry."""
    pull = Fraction(rate) * Fraction(decay)
    exact = [pull] * (len(update.kept) - intercept) + [Fraction(0)] * intercept
    in_w = [float(abs(Fraction(one) - (1 - by))) for one, by in zip(update.kept, exact, strict=True)]
    return in_w, [float(abs(Fraction(one) + by)) for one, by in zip(update.pulled, exact, strict=True)]


def added_to_w(
    outputs: Sequence[float], width: int, w: int, weights: int, moves: bool
) -> Float[np.ndarray, "heads width weights"]:
    """Outputs of heads that read vectors of as many entries as w, and add so much of them to w, and to v."""
    result = np.zeros((len(outputs), width, weights))
    for start in (w, w + weights) if moves else (w,):
        result[:, start : start + weights] = np.array(outputs)[:, None, None] * np.eye(weights)
    return result
