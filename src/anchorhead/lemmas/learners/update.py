"""What a step keeps of w and v, and how what heads read is added to both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from anchorhead.language.targets.descent import Descent
from anchorhead.proof.arithmetic.arithmetic import Arithmetic

Weights = Float[np.ndarray, " weights"]


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
        return cls(_floats(1 - pull), target.momentum, _floats(-pull if target.momentum else 0 * pull))

    @classmethod
    def read(cls, skip: Float[np.ndarray, "width width"], target: Descent, w: int) -> Update:
        """From the skip of the layer that writes w; w: the slot of its first entry."""
        slots = np.arange(w, w + target.weights)
        kept = _floats(skip[slots, slots])
        if not target.momentum:
            return cls(kept, 0.0, (0.0,) * target.weights)
        speeds = slots + target.weights
        return cls(kept, float(skip[slots[0], speeds[0]]), _floats(skip[speeds, slots]))

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

    def wrong(self, target: Descent, w: Weights, v: Weights) -> tuple[Weights, Weights]:
        """What is wrong with w and with v after a step, because stored factors are not the exact ones."""
        in_w, in_v, of_v = _wrong(self, target.rate, target.decay, target.momentum, target.intercept)
        return in_w * w + of_v * v, in_v * w + of_v * v

    def summed(self, added: Weights, w: Weights, v: Weights, model: Arithmetic) -> tuple[Weights, Weights, Weights]:
        """By how much the sums for w and for v are rounded, and how large w then is; added: how large what is read
        is."""
        rounded = 3 * model.unit * (1 + 4 * model.unit)
        moving = abs(self.momentum) * v + added
        kept = np.abs(self.kept) * w + moving
        return rounded * kept, rounded * (np.abs(self.pulled) * w + moving), kept


def _floats(array: np.ndarray) -> tuple[float, ...]:
    return tuple(map(float, array))


@lru_cache(maxsize=256)
def _wrong(
    update: Update, rate: float, decay: float, momentum: float, intercept: bool
) -> tuple[Weights, Weights, float]:
    """|kept - (1 - rate decay)| and |pulled + rate decay|, without the decay for the intercept, the last entry; and
    what the momentum is off by."""
    pull = Fraction(rate) * Fraction(decay)
    exact = [pull] * (len(update.kept) - intercept) + [Fraction(0)] * intercept
    in_w = [float(abs(Fraction(one) - (1 - by))) for one, by in zip(update.kept, exact, strict=True)]
    in_v = [float(abs(Fraction(one) + by)) for one, by in zip(update.pulled, exact, strict=True)]
    return np.array(in_w), np.array(in_v), float(abs(Fraction(update.momentum) - Fraction(momentum)))


def added_to_w(
    outputs: Sequence[float], width: int, w: int, weights: int, moves: bool
) -> Float[np.ndarray, "heads width weights"]:
    """Outputs of heads that read vectors of as many entries as w, and add so much of them to w, and to v."""
    result = np.zeros((len(outputs), width, weights))
    for start in (w, w + weights) if moves else (w,):
        result[:, start : start + weights] = np.array(outputs)[:, None, None] * np.eye(weights)
    return result
