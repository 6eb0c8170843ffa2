"""A head whose anchors are gentle or steep, without an axis of keys: which series it is, and how far that is off.

    r(t) = sum_k v_k e^(z_k) / sum_k e^(z_k),      z_k = a_k t + g_k,

has slopes that are nearly equal, the *gentle* anchors, and at most one much steeper one on either side. A ReLU has two
gentle anchors and, on the left, one steep one. With D = sum e^(z_k) and R = (sum v_k e^(z_k)) / D of the gentle alone,

    r = v_l + (R - v_l) sigmoid(log D - z_l)      (and the same once more with the steep anchor on the right).

R is evaluated by its power series about a point o, as exp is inside any library, because gentle logits hardly differ:
R(o + s) = shift + scale (s + c_2 s^2 + ...). The sigmoid turns from 0 to 1 where log D = z_l, and so fast that r is R
at t clipped to [low, high], the points at which R takes the values of the steep anchors. What that loses around a
crossing must be less than exp's rounding makes a softmax of gentle anchors err by, 8 u max |v|; it is a thirtieth of
that for a ReLU.

`error` is a simpler and larger bound than that of anchorhead.verify.series. It adds up
  - the terms of the series that are not evaluated, and what the value of a steep anchor is off R where t is clipped;
  - rounding: s = fl(t - o) errs by u |s|, its powers and sums by no more than 8 u of sum |c_j| reach^j, coefficients,
    which the dtype rounds, by u. Where reads are handed on as q alone, with scale and shift in the weights and the bias
    behind them, these are rounded once more: 16 u of the bulk and 2 u |shift| in all;
  - what clipping loses at crossings: see `_lost`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np

from anchorhead.network.direct.series import Series

Numbers = list[Decimal]

DIGITS = 60
"""Of the arithmetic that finds the series: values of 1e5 that cancel leave enough of them."""
ORDER = 14
"""Terms of the series that are looked at; Cauchy's bound is for the others."""
DEGREE = 5
"""The most terms that are evaluated: more cost as much as exponentials."""
ALIKE = 100
"""Gentle logits differ by no more at the origin, or there is no series."""
STEEP = 1000
"""A steep slope is that many times further from the gentle ones than they are from each other."""
UNITS = {"float32": Decimal(2) ** -24, "float64": Decimal(2) ** -53}
LOST = 8
"""Units of the largest gentle value that clipping may lose."""
BLUNT = Decimal("0.279")
"""More than x sigmoid(-x) is anywhere, with the 0.1% by which log D - z may rise less than at its crossing."""


def saturated(slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, dtype: str) -> Series | None:
    """The series of a head with these anchors, sorted by slope; None where it has no gentle anchors, or others."""
    count = len(slopes)
    if not 2 <= count <= 8:
        return None
    with localcontext() as context:
        context.prec = DIGITS
        a, g, v = (list(map(Decimal, np.asarray(one, np.float64).tolist())) for one in (slopes, offsets, values))
        for left, right in product((1, 0), (1, 0)):
            if count - left - right >= 2:
                found = _found(a, g, v, left, right, dtype)
                if found is not None:
                    return found
    return None


def _found(a: Numbers, g: Numbers, v: Numbers, left: int, right: int, dtype: str) -> Series | None:
    """The series with the first or the last anchor, or both, taken for steep; None where these are not."""
    last = len(a) - right
    gentle = slice(left, last)
    spread = a[last - 1] - a[left]
    beyond = [a[left] - a[0]] * left + [a[-1] - a[last - 1]] * right
    if spread <= 0 or any(step < STEEP * spread for step in beyond):
        return None
    unit, most = UNITS[dtype], max(abs(one) for one in v[gentle])
    place = (Fraction(g[left]) - Fraction(g[last - 1])) / (Fraction(a[last - 1]) - Fraction(a[left]))
    origin = Decimal(float(np.dtype(dtype).type(float(place))))
    heights = [slope * origin + offset for slope, offset in zip(a[gentle], g[gentle], strict=True)]
    if any(abs(height - heights[0]) > ALIKE for height in heights):
        return None
    mean = _Mean(a[gentle], g[gentle], v[gentle], origin)
    series = mean.series()
    if series[1] <= 0:
        return None
    steep = [0] * left + [-1] * right
    places = [mean.crossing(a[k], g[k]) for k in steep]
    reach = max([abs(at - origin) for at, _ in places] or [Decimal(1)]) * Decimal("1.25")
    tail = mean.tail(reach)
    if tail is None:
        return None
    room = unit * most / 4
    sizes = [abs(rho) * reach**j for j, rho in enumerate(series)]
    rests = [sum(sizes[degree + 1 :], tail) for degree in range(DEGREE + 1)]
    degree = next((degree for degree in range(1, DEGREE + 1) if rests[degree] <= room), None)
    if degree is None:
        return None
    kept = [j for j in range(2, degree + 1) if sizes[j] > room / 16]
    bulk = sum((sizes[j] for j in kept), sizes[1])
    if 16 * bulk + 2 * sizes[0] > most:  # a softmax errs by a few u of that
        return None
    dropped = rests[degree] + sum((sizes[j] for j in range(2, degree + 1) if j not in kept), Decimal(0))
    ends = [_where(series, kept, v[k], at - origin) for (at, _), k in zip(places, steep, strict=True)]
    if any(end is None for end in ends):
        return None
    ends = [end + origin for end in ends if end is not None]
    middle = sum((at for at, _ in places), Decimal(0)) / 2
    if right and left and not ends[0] <= middle <= ends[1]:
        return None
    if _lost(places, ends, mean.steepest, max(v) - min(v)) > LOST * unit * most:
        return None
    ends = [Decimal(_stored(end, dtype)) for end in ends]
    apart = [abs(_value(series, kept, end - origin) - v[k]) for end, k in zip(ends, steep, strict=True)]
    clipped = 2 * max(apart, default=Decimal(0)) + _lost(places, ends, mean.steepest, max(v) - min(v))
    error = 2 * dropped + clipped + 16 * unit * bulk + 2 * unit * sizes[0]
    keys = (tuple(map(float, one)) for one in (a, g, v))
    return Series(
        *keys,
        origin=float(origin),
        low=float(ends[0]) if left else -math.inf,
        high=float(ends[-1]) if right else math.inf,
        coefficients=tuple((j, float(series[j] / series[1])) for j in kept),
        scale=float(series[1]),
        shift=float(series[0]),
        reach=float(reach) * (1 - 1e-12),
        error=float(error) * (1 + 1e-9),
    )


def _lost(places: Sequence[tuple[Decimal, Decimal]], ends: Numbers, steepest: Decimal, span: Decimal) -> Decimal:
    """What clipping loses at crossings, beside what R differs by from the steep anchors' values at the ends.

    Elsewhere that is at most R's steepest slope times |t - end| more, weighed by the share that the smaller of D and
    e^(z_l) has of their sum, sigmoid(-slope |t - at|), where t is not between end and crossing; x sigmoid(-x) < BLUNT.
    Of two steep anchors one is on the other side of the middle, and no more than `span` away.
    """
    halves = [(abs(end - at) / 2, BLUNT / abs(slope)) for (at, slope), end in zip(places, ends, strict=True)]
    lost = steepest * max((half + max(half, blunt) for half, blunt in halves), default=Decimal(0))
    if len(places) == 2:
        (left, one), (right, other) = places
        lost += span * (Decimal("0.999") * min(abs(one), abs(other)) * (left - right) / 2).exp()
    return lost


@dataclass(frozen=True)
class _Mean:
    """The gentle anchors' softmax mean R about a point."""

    a: Numbers
    g: Numbers
    v: Numbers
    origin: Decimal

    def series(self) -> Numbers:
        """The coefficients of R(origin + s): those of the numerator over those of the denominator."""
        middle = (self.a[0] + self.a[-1]) / 2
        heights = [a * self.origin + g for a, g in zip(self.a, self.g, strict=True)]
        weights = [(height - heights[0]).exp() for height in heights]
        below = [Decimal(0)] * ORDER
        above = [Decimal(0)] * ORDER
        for a, v, weight in zip(self.a, self.v, weights, strict=True):
            term = weight
            for j in range(ORDER):
                below[j] += term
                above[j] += v * term
                term = term * (a - middle) / (j + 1)
        found: Numbers = []
        for j in range(ORDER):
            earlier = sum((below[i] * found[j - i] for i in range(1, j + 1)), Decimal(0))
            found.append((above[j] - earlier) / below[0])
        return found

    @property
    def steepest(self) -> Decimal:
        """A bound on |R'|, the covariance of slopes and values: their ranges' product over 4."""
        return (self.a[-1] - self.a[0]) * (max(self.v) - min(self.v)) / 4

    def tail(self, reach: Decimal) -> Decimal | None:
        """Cauchy's bound on the terms from ORDER on, for |s| <= reach: on |s| = rho, where logits differ by at most 1/2
        from those at the origin, |R| <= max |v| e / cos(1/2) < 3.2 max |v|."""
        rho = 1 / (self.a[-1] - self.a[0])
        if 4 * reach > rho:
            return None
        ratio = reach / rho
        return Decimal("3.2") * max(map(abs, self.v)) * ratio**ORDER / (1 - ratio)

    def crossing(self, slope: Decimal, offset: Decimal) -> tuple[Decimal, Decimal]:
        """Where log D is the logit of another anchor, and the slope of their difference there."""
        t, tilt = self.origin, Decimal(0)
        for _ in range(12):
            heights = [a * t + g for a, g in zip(self.a, self.g, strict=True)]
            weights = [(height - max(heights)).exp() for height in heights]
            total = sum(weights, Decimal(0))
            tilt = sum((a * w for a, w in zip(self.a, weights, strict=True)), Decimal(0)) / total - slope
            t = t - (total.ln() + max(heights) - slope * t - offset) / tilt
        return t, tilt


def _value(series: Numbers, kept: Sequence[int], s: Decimal) -> Decimal:
    return series[0] + series[1] * s + sum((series[j] * s**j for j in kept), Decimal(0))


def _where(series: Numbers, kept: Sequence[int], value: Decimal, s: Decimal) -> Decimal | None:
    """Where the series takes a value, near s."""
    for _ in range(8):
        slope = series[1] + sum((j * series[j] * s ** (j - 1) for j in kept), Decimal(0))
        if not slope > series[1] / 2:
            return None
        s = s - (_value(series, kept, s) - value) / slope
    return s


def _stored(number: Decimal, dtype: str) -> float:
    return float(np.dtype(dtype).type(float(number)))
