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

    kept, pulled   1 - rate decay and -rate decay; without momentum there is no v, and nothing is pulled. These, like
                   the momentum, are numbers as they are stored
    """

    kept: tuple[float, ...]
    momentum: float
    pulled: tuple[float, ...]

    @classmethod
    def of(cls, target: Descent, dtype: str) -> Update:
        pull = target.rate * target.decays
        kept, pulled = ((1 - pull).astype(dtype), (-pull if target.momentum else 0 * pull).astype(dtype))
        return cls(_floats(kept), float(np.dtype(dtype).type(target.momentum)), _floats(pulled))

    def skip(self, width: int, w: Sequence[int], v: Sequence[int]) -> Float[np.ndarray, "width width"]:
        """All other features stay."""
        w, v, result = list(w), list(v), np.eye(width)
        result[w, w] = self.kept
        if v:
            result[w, v] = result[v, v] = self.momentum
            result[v, w] = self.pulled
        return result

    def wrong(self, target: Descent, w: Weights, v: Weights) -> tuple[Weights, Weights]:
        """What is wrong with w and with v after a step, because stored factors are not the exact ones."""
        in_w, in_v, of_v = _wrong(self, target.rate, target.decay, target.momentum, target.intercept)
        return in_w * w + of_v * v, in_v * w + of_v * v

    def summed(
        self, added: Weights, heads: int, w: Weights, v: Weights, model: Arithmetic
    ) -> tuple[Weights, Weights, Weights]:
        """By how much the sums for w and for v are rounded, and how large w then is.

        added   how large what so many heads read is; a product, and then w, v and what each reads, in any order
        """
        rounded = float(model.gamma(1 + heads + (self.momentum != 0)))
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
    outputs: Sequence[float], width: int, w: Sequence[int], v: Sequence[int]
) -> Float[np.ndarray, "heads width weights"]:
    """Outputs of heads that read vectors of as many entries as w, and add so much of them to w, and to v."""
    result = np.zeros((len(outputs), width, len(w)))
    for slots in (w, v) if v else (w,):
        result[:, list(slots)] = np.array(outputs)[:, None, None] * np.eye(len(w))
    return result
