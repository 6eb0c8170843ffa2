"""A head with its own key as it is stored, and as a function: of balls, and in powers of a distance from a point.

r(s) = skip s + bias + sum_k w_k(s) (value_k + own_k s),     w_k in proportion to mass_k e^(slope_k s + offset_k)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flint import arb, arb_mat

from anchorhead.verify.balls import hull

ORDER = 10
"""The Taylor polynomials of r have coefficients up to that of t^ORDER."""
SURELY_SMALL = 30_000
"""e to minus this is small beside anything here, whatever it is multiplied by."""


def exponential(x: arb) -> arb:
    """e^x; between its values at the ends where the ball is wide, and a ball around 0 where it is next to nothing."""
    if x < -SURELY_SMALL:
        return arb(0, arb(-SURELY_SMALL).exp())
    return x.exp() if x.rad() < 0.25 else x.lower().exp().union(x.upper().exp())


@dataclass(frozen=True)
class Cell:
    """s between low and high, of one sign and on one side of 1; `scaled`: s / max(1, |s|), `unit`: 1 / max(1, |s|)."""

    ball: arb
    sign: int
    scaled: arb
    unit: arb
    near: float
    far: float

    @classmethod
    def of(cls, low: float, high: float) -> Cell:
        ball = hull(low, high)
        sign = 1 if high > 0 else -1
        near, far = sorted((abs(low), abs(high)))
        if near >= 1:
            return cls(ball, sign, arb(sign), sign / ball, near, far)
        return cls(ball, sign, ball, arb(1), near, far)


@dataclass(frozen=True)
class Mixture:
    """w_k in proportion to mass_k e^(slope_k s + offset_k); what key k holds is value_k + own_k s."""

    slopes: Sequence[float]
    offsets: Sequence[Any]
    masses: Sequence[Any]
    values: Sequence[Any]
    own: Sequence[Any]
    skip: float
    bias: float
    _relative: dict[int, tuple[list[arb], list[arb], list[arb], arb_mat]] = field(default_factory=dict, compare=False)
    _series: dict[Any, list[arb]] = field(default_factory=dict, compare=False)

    def heaviest(self, s: float) -> int:
        keys = zip(self.slopes, self.offsets, self.masses, strict=True)
        logs = [a * s + float(g) + math.log(float(m)) for a, g, m in keys]
        return logs.index(max(logs))

    def relative(self, j: int) -> tuple[list[arb], list[arb], list[arb], arb_mat]:
        """Slopes, offsets and masses less those of key j; and a_k^i / i!, the coefficients of e^(a_k t)."""
        if j not in self._relative:
            slopes = [arb(a) - self.slopes[j] for a in self.slopes]
            offsets = [arb(g) - self.offsets[j] for g in self.offsets]
            masses = [arb(m) / self.masses[j] for m in self.masses]
            rows = [[a**i / math.factorial(i) for a in slopes] for i in range(ORDER + 1)]
            self._relative[j] = slopes, offsets, masses, arb_mat(rows)
        return self._relative[j]

    def exponentials(self, s: arb, j: int) -> list[arb]:
        slopes, offsets, masses, _ = self.relative(j)
        return [m * exponential(a * s + g) for a, g, m in zip(slopes, offsets, masses, strict=True)]

    def series(self, s: arb) -> list[arb]:
        """The coefficients of r(s + t), with values less that of the heaviest key, so that nothing cancels.

        The quotient is taken term by term: Arb's own division of series lines up exponents, which here are far apart.
        """
        place = s.mid().man_exp(), s.rad().man_exp()
        if place not in self._series:
            while len(self._series) > 3:
                self._series.pop(next(iter(self._series)))
            self._series[place] = self._expanded(s)
        return self._series[place]

    def _expanded(self, s: arb) -> list[arb]:
        j = self.heaviest(float(s.mid()))
        e, expand = self.exponentials(s, j), self.relative(j)[3]
        values = [(arb(v) - self.values[j]) * w for v, w in zip(self.values, e, strict=True)]
        own = [(arb(o) - self.own[j]) * w for o, w in zip(self.own, e, strict=True)]
        total, held, scaled = ((expand * arb_mat([[one] for one in column])).entries() for column in (e, values, own))
        result: list[arb] = []
        for i in range(ORDER + 1):
            above_line = held[i] + scaled[i] * s + (scaled[i - 1] if i else 0)
            result.append((above_line - sum((total[i - k] * result[k] for k in range(i)), arb(0))) / total[0])
        slope = arb(self.skip) + self.own[j]
        result[0] += slope * s + (arb(self.bias) + self.values[j])
        result[1] += slope
        return result

    def enclosure(self, s: arb) -> arb:
        """r on a ball, by its values alone."""
        j = self.heaviest(float(s.mid()))
        e = self.exponentials(s, j)
        held = arb(0)
        for v, o, w in zip(self.values, self.own, e, strict=True):
            held += ((arb(v) - self.values[j]) + (arb(o) - self.own[j]) * s) * w
        return held / sum(e, arb(0)) + (arb(self.skip) + self.own[j]) * s + (arb(self.bias) + self.values[j])

    def held(self, cell: Cell, j: int) -> tuple[list[arb], list[arb]]:
        """What keys hold, over max(1, |s|), and how far that is from what key j holds: not as a difference of balls."""
        pairs = list(zip(self.values, self.own, strict=True))
        v, o = pairs[j]
        apart = [(arb(one) - v) * cell.unit + (arb(two) - o) * cell.scaled for one, two in pairs]
        return [one * cell.unit + two * cell.scaled for one, two in pairs], apart

    def mean(self, cell: Cell, j: int, weights: Sequence[arb], apart: Sequence[arb]) -> arb:
        """sum_k w_k times `apart` of `held`, on the cell: as such, or by Taylor's theorem for r, if that is narrower.

        Where keys of large values cancel, their weights vary together, which the first way does not see.
        """
        direct = sum((w * d for w, d in zip(weights, apart, strict=True)), arb(0))
        middle = cell.ball.mid()
        there, t, slope = self.series(middle), cell.ball - middle, arb(self.skip) + self.own[j]
        rest = self.series(cell.ball)[ORDER]
        for coefficient in reversed((there[1] - slope, *there[2:ORDER])):
            rest = rest * t + coefficient
        around = (there[0] - slope * middle - (arb(self.bias) + self.values[j]) + rest * t) * cell.unit
        return around if around.rad() < direct.rad() else direct


@dataclass(frozen=True)
class SelfKey:
    """What a head stores: registers and, last if `own`, the token's own key, whose value is s times its number."""

    slopes: Sequence[float]
    offsets: Sequence[float]
    values: Sequence[float]
    own: bool
    skip: float = 0.0
    bias: float = 0.0

    def mixture(self) -> Mixture:
        p, last = len(self.slopes), len(self.slopes) - 1 if self.own else -1
        held = [0.0 if k == last else v for k, v in enumerate(self.values)]
        own = [self.values[k] if k == last else 0.0 for k in range(p)]
        return Mixture(self.slopes, self.offsets, [1.0] * p, held, own, self.skip, self.bias)


@dataclass(frozen=True)
class Quotient:
    """(own s y^own_index + sum_k numerator_k y^k) / sum_k denominator_k y^k, y = e^(rate t), t = s clipped."""

    rate: float
    low: float
    high: float
    numerator: Sequence[float]
    denominator: Sequence[float]
    own: float
    own_index: int

    def mixture(self, skip: float, bias: float, at: float | None = None) -> Mixture:
        """With every power as a key; `at`: beyond an end of the clipped range, where t stays."""
        kept = [k for k, d in enumerate(self.denominator) if d > 0]
        slopes = [0.0 if at is not None else k * self.rate for k in kept]
        offsets: list[Any] = [arb(k) * self.rate * at if at is not None else 0.0 for k in kept]
        masses = [self.denominator[k] for k in kept]
        values = [arb(self.numerator[k]) / self.denominator[k] for k in kept]
        own = [arb(self.own) / self.denominator[k] if k == self.own_index else 0.0 for k in kept]
        return Mixture(slopes, offsets, masses, values, own, skip, bias)
