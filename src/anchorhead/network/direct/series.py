"""A head on a scalar as a quotient of two polynomials: no axis of keys, and no exponential.

    r(t) = sum_k v_k softmax_k(a_k t + g_k)  =  shift + scale q(s),      s = clip(t, low, high) - origin,

    q(s) = (s + sum_j c_j s^j) / (1 + sum_j d_j s^j),

nearly. Heads with a kink are clipped, and their denominator is 1 (`saturated`). Where heads are known to compute a
function, a series follows that function itself (proof.heads.followed): on either side of a kink it may be another
quotient, each of t clipped to its own interval, and q is the sum of these. A network's derivation stores its series
(`stored_series`), from which anchorhead.verify.series derives how far they are off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """What is added to q: scale times a quotient of its own."""

    origin: float
    low: float
    high: float
    coefficients: tuple[tuple[int, float], ...]
    below: tuple[tuple[int, float], ...]
    scale: float


@dataclass(frozen=True)
class Series:
    """For a head of these keys. coefficients, below: the pairs (j, c_j), j >= 2, and (j, d_j), j >= 1.

    beside  other pieces that q is the sum of
    error   a bound on |computed - r|, or on how far it is off the function that it follows, what folding scale and
            shift into a map rounds included, for every t whose clipped t - origin is within `reach`, by which a builder
            decides what its certificate covers
    """

    slopes: tuple[float, ...]
    offsets: tuple[float, ...]
    values: tuple[float, ...]
    origin: float
    low: float
    high: float
    coefficients: tuple[tuple[int, float], ...]
    scale: float
    shift: float
    reach: float
    error: float
    below: tuple[tuple[int, float], ...] = ()
    beside: tuple[Piece, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether it is 0, and need not be computed."""
        return self.low == self.high == self.origin and self.shift == 0 and not self.beside

    @property
    def fitted(self) -> bool:
        """Whether it is made for the queries that there are, and no others."""
        return bool(self.below or self.beside) or not math.isfinite(self.reach)

    def covers(self, low: float, high: float) -> bool:
        """Whether the error is bounded for every t of an interval."""
        return self._furthest(low, high) <= self.reach

    def magnitude(self, low: float, high: float) -> float:
        """A bound on |scale q| + |shift|, as computed for the t of an interval that is covered, by one that is not
        fitted."""
        s = self._furthest(low, high)
        return (abs(self.scale) * (s + sum(abs(c) * s**j for j, c in self.coefficients)) + abs(self.shift)) * (1 + 1e-5)

    def _furthest(self, low: float, high: float) -> float:
        """The largest |t - origin|, clipped, and that of the ends themselves."""
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        clipped = [min(max(end, self.low), self.high) for end in (low, high)]
        return max(abs(end - self.origin) for end in (*ends, *clipped))
