"""One softmax whose logits are affine in one number t, as it is stored, and how far off it may be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.rounding import OWN_UNIT, SILENT, Arithmetic, dot_error, power_of_two

SAME = "slopes", "offsets", "values", "sizes", "exact_sizes", "terms"
OFF = "wrong", "wrong_slope", "value_error"
"""The arrays of a Part: what a softmax is, and how far that may be off."""


@dataclass(frozen=True)
class Claim:
    """alpha f(scale t + shift) + beta, and more of these, all added up; function None: f is the identity."""

    function: Expression | None
    scale: float
    shift: float
    alpha: float
    beta: float
    more: tuple[Claim, ...] = ()


@dataclass(frozen=True, eq=False)
class Part:
    """One softmax: logits slopes t + offsets, read with values.

    sizes, exact_sizes, terms   of the constant products that make up each offset: the sum of their absolute values, of
                                those that round nothing, and how many they are
    wrong, wrong_slope          how far logits may be off beyond the rounding of their own sums: wrong + wrong_slope |t|
    whole                       whether `wrong` has that rounding too
    lean                        how far t itself may be off in this part
    value_error                 how far values may be off
    own                         what keys hold beside their values: key k holds v_k + own_k t, own_k t rounded once
    direct                      how far it is off what it is in exact arithmetic where it is computed otherwise than as
                                a softmax, and a bound on the sizes of the numbers that take its place in sums
    series                      a function that is then computed in its place, and that `direct` says how far it is off
    """

    slopes: np.ndarray
    offsets: np.ndarray
    values: np.ndarray
    sizes: np.ndarray
    exact_sizes: np.ndarray
    terms: np.ndarray
    wrong: np.ndarray
    wrong_slope: np.ndarray
    value_error: np.ndarray
    model: Arithmetic
    whole: bool = False
    lean: float = 0.0
    direct: tuple[float, float] = (0.0, 0.0)
    own: np.ndarray | None = None
    series: Claim | None = None

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in (*SAME, *OFF)}

    def only(self, keys: np.ndarray) -> Part:
        own = None if self.own is None else self.own[keys]
        return replace(self, own=own, **{name: array[keys] for name, array in self.arrays.items()})

    def key(self) -> tuple:
        """All but how far things may be off."""
        return (*(self.arrays[name].tobytes() for name in SAME), self.whole, self.series)

    def worse(self, other: Part) -> Part:
        """The same softmax, as far off as this one or the other."""
        wrong = {name: np.maximum(self.arrays[name], other.arrays[name]) for name in OFF}
        direct = max(self.direct[0], other.direct[0]), max(self.direct[1], other.direct[1])
        return replace(self, lean=max(self.lean, other.lean), direct=direct, **wrong)

    def covers(self, other: Part) -> bool:
        """Whether the other is nowhere further off."""
        wide = self.lean >= other.lean and all(a >= b for a, b in zip(self.direct, other.direct, strict=True))
        return wide and all((self.arrays[name] >= other.arrays[name]).all() for name in OFF)

    def most(self, sign: int) -> float:
        """A bound on sign times what it reads, however it is computed."""
        held = float((sign * self.values + self.value_error).max())
        return (held if self.series is None else max(held, self.direct[1])) + self.direct[0]

    def logit_error(self, t: np.ndarray, logits: np.ndarray) -> np.ndarray:
        """Delta_k for |t| and |logit| at most these, (..., 1) and (..., keys)."""
        steep = (np.abs(self.slopes) + self.wrong_slope) * t
        exactly = np.where(power_of_two(self.slopes) & (self.wrong_slope == 0), steep, 0.0) + self.exact_sizes
        own = (self.slopes != 0) | (self.wrong_slope != 0)
        own = own + self.terms
        summed = 0.0 if self.whole else dot_error(steep + self.sizes, exactly, own, logits, self.model)
        return summed + self.wrong + self.wrong_slope * t


def silent(part: Part, intervals: Sequence[tuple[float, float]], model: Arithmetic) -> np.ndarray:
    """Keys whose computed weight is 0 wherever t is: their logit is always SILENT below another one's."""
    at = [part.slopes * end + part.offsets for ends in intervals for end in ends]
    reach = max(max(abs(a), abs(b)) for a, b in intervals)
    size = np.abs(part.slopes) * reach + part.sizes + np.abs(part.offsets)
    wrong = part.logit_error(np.array(reach), size) + 8 * OWN_UNIT * size
    least = np.minimum.reduce(at) - wrong
    most = np.maximum.reduce(at) + wrong
    return least.max() - most >= SILENT * (1 + 1e-6)
