"""A head whose anchors are gentle or steep, without an axis of keys: which series it is, and how far that is off.

    r(t) = sum_k v_k e^(z_k) / sum_k e^(z_k),      z_k = a_k t + g_k,

has slopes that are nearly equal, the *gentle* anchors, and at most one much steeper one on either side. A ReLU has two
gentle anchors and, on the left, one steep one. With D = sum e^(z_k) and R = (sum v_k e^(z_k)) / D of the gentle alone,

    r = v_l + (R - v_l) sigmoid(log D - z_l)      (and the same once more with the steep anchor on the right).

R is evaluated by its power series about a point o, as exp is inside any library, because gentle logits hardly differ:
R(o + s) = shift + scale (s + c_2 s^2 + ...). The sigmoid is 0 or 1, but for less than e^-GAP, unless t is within
width = GAP / slope of the crossing, where log D = z_l. There log D is as good as its tangent, so the argument is
slope (t - crossing). So elsewhere r is R at t clipped to [low, high], the points at which R takes the values of the
steep anchors; a test of the smallest (t - crossing)^2 of every block of entries finds the blocks in which it is not.

Which heads have a series, and what it computes, is a function of their numbers alone: anchorhead.verify.series
states it, and derives line by line how far it is off. `error` is a simpler and larger bound on |computed - r|, for
every t whose clipped t - o is within `reach`, by which a builder decides what its certificate covers. It adds up
  - the terms of the series that are not evaluated, and what the value of a steep anchor is off R where t is clipped;
  - rounding: s = fl(t - o) errs by u |s|, its powers and sums by no more than 8 u of sum |c_j| reach^j, coefficients,
    which the dtype rounds, by u. Where reads are handed on as q alone, with scale and shift in the weights and the bias
    behind them, these are rounded once more: 16 u of the bulk and 2 u |shift| in all;
  - what is left out beyond a width, e^-GAP of what values differ by, for each side;
  - what the sigmoid adds within a width: see `_near`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np

Series = list[Decimal]

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
GAPS = {"float32": Decimal(44), "float64": Decimal(68)}
"""Logits that are so much smaller than another's are left out; e^-44 is 8e-20, e^-68 3e-30."""
UNITS = {"float32": Decimal(2) ** -24, "float64": Decimal(2) ** -53}
SMALLEST = {"float32": 2.0**-50, "float64": 2.0**-400}
"""The square of a width must be a number with all its digits."""
SIGMOID_ULPS = 64
"""The relative error that a sigmoid is granted, in units u: a softmax of two logits takes less than 20 (exp within
4 ulp twice, a difference, a sum, a quotient). It is weighted by how little r changes within a width."""


@dataclass(frozen=True)
class Crossing:
    """Where a steep anchor takes over: sigmoid(slope (t - at)) is the weight of what is on the right."""

    at: float
    slope: float
    width: float
    value: float
    """The steep anchor's value, as (v - shift) / scale."""


@dataclass(frozen=True)
class Saturated:
    """r(t) = shift + scale q(clip(t, low, high) - origin) away from crossings, q(s) = s + sum_j coefficients_j s^j."""

    origin: float
    low: float
    high: float
    coefficients: tuple[tuple[int, float], ...]
    scale: float
    shift: float
    reach: float
    left: Crossing | None
    right: Crossing | None
    error: float

    def covers(self, low: float, high: float) -> bool:
        """Whether the error is bounded for every t of an interval."""
        return self._furthest(low, high) <= self.reach

    def magnitude(self, low: float, high: float) -> float:
        """A bound on |scale q| + |shift|, as computed for the t of an interval that is covered."""
        s = self._furthest(low, high)
        return (abs(self.scale) * (s + sum(abs(c) * s**j for j, c in self.coefficients)) + abs(self.shift)) * (1 + 1e-5)

    def _furthest(self, low: float, high: float) -> float:
        """The largest |t - origin| of what is clipped, or is near a crossing."""
        near = [abs(one.at - self.origin) + 2 * one.width for one in (self.left, self.right) if one is not None]
        ends = max(low, self.low) - self.origin, min(high, self.high) - self.origin
        return max(*map(abs, ends), *near)


def saturated(slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, dtype: str) -> Saturated | None:
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


def _found(a: Series, g: Series, v: Series, left: int, right: int, dtype: str) -> Saturated | None:
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
    places = [mean.crossing(a[k], g[k]) for k in ([0] * left + [-1] * right)]
    gap = GAPS[dtype]
    widths = [gap / abs(slope) for _, slope in places]
    if any(width**2 < Decimal(SMALLEST[dtype]) for width in widths):
        return None
    needed = max([abs(at - origin) + 2 * width for (at, _), width in zip(places, widths, strict=True)] or [Decimal(1)])
    reach = needed * Decimal("1.25")
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
    ends, crossings, off, apart = [], [], Decimal(0), []
    for (at, slope), width, k in zip(places, widths, [0] * left + [-1] * right, strict=True):
        end = _where(series, kept, v[k], at - origin)
        if end is None or abs(end + origin - at) > width / 2 or width < 400 * unit * abs(at):
            return None
        end = Decimal(float(np.dtype(dtype).type(float(end + origin))))
        off = max(off, abs(_value(series, kept, end - origin) - v[k]))
        value = float(np.dtype(dtype).type(float((v[k] - series[0]) / series[1])))
        crossings.append(Crossing(_stored(at, dtype), _stored(slope, dtype), float(width), value))
        ends.append(float(end))
        apart.append(abs(end - at))
    if left and right and not places[0][0] + 2 * widths[0] < places[1][0] - 2 * widths[1]:
        return None
    near = [_near(*one, series[1], spread, dropped + off, unit, gap) for one in zip(places, widths, apart, strict=True)]
    rounding = 16 * unit * bulk + 2 * unit * sizes[0]
    left_out = 8 * (-gap).exp() * (max(v) - min(v))
    error = dropped + off + rounding + left_out + max(near, default=Decimal(0))
    return Saturated(
        origin=float(origin),
        low=ends[0] if left else -math.inf,
        high=ends[-1] if right else math.inf,
        coefficients=tuple((j, float(series[j] / series[1])) for j in kept),
        scale=float(series[1]),
        shift=float(series[0]),
        reach=float(reach) * (1 - 1e-12),
        left=crossings[0] if left else None,
        right=crossings[-1] if right else None,
        error=float(error) * (1 + 1e-9),
    )


def _near(
    place: tuple[Decimal, Decimal],
    width: Decimal,
    apart: Decimal,
    scale: Decimal,
    spread: Decimal,
    off: Decimal,
    unit: Decimal,
    gap: Decimal,
) -> Decimal:
    """What the sigmoid adds within (twice) the width of a crossing, where r is between v and R.

    |R - v| is at most 2 scale |t - end| + off, the end being where they meet, `apart` from the crossing. The sigmoid's
    own relative error is weighted by that. So is what its argument L = slope (t - at) makes of its error (the slope,
    the crossing and the difference are rounded; a tangent stands for log D): with |L| sigmoid'(L) <= 1/4, and sigmoid'
    at most 3 times as large nearby, by 3/4 (2 scale (1 / slope + apart) + off).
    """
    at, slope = place[0], abs(place[1])
    argument = 8 * unit * gap + 2 * unit * slope * abs(at) + (2 * spread * width) ** 2
    step = 2 * scale * (2 * width + apart) + off
    return step * SIGMOID_ULPS * unit + argument * (2 * scale * (1 / slope + apart) + off) * 3 / 4


@dataclass(frozen=True)
class _Mean:
    """The gentle anchors' softmax mean R about a point."""

    a: Series
    g: Series
    v: Series
    origin: Decimal

    def series(self) -> Series:
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
        found: Series = []
        for j in range(ORDER):
            earlier = sum((below[i] * found[j - i] for i in range(1, j + 1)), Decimal(0))
            found.append((above[j] - earlier) / below[0])
        return found

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


def _value(series: Series, kept: Sequence[int], s: Decimal) -> Decimal:
    return series[0] + series[1] * s + sum((series[j] * s**j for j in kept), Decimal(0))


def _where(series: Series, kept: Sequence[int], value: Decimal, s: Decimal) -> Decimal | None:
    """Where the series takes a value, near s."""
    for _ in range(8):
        slope = series[1] + sum((j * series[j] * s ** (j - 1) for j in kept), Decimal(0))
        if not slope > series[1] / 2:
            return None
        s = s - (_value(series, kept, s) - value) / slope
    return s


def _stored(number: Decimal, dtype: str) -> float:
    return float(np.dtype(dtype).type(float(number)))
