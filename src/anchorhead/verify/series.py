"""Heads whose anchors are gentle or steep: which series computes them, and how far that is off, line by line.

    r(t) = sum_k v_k e^(z_k) / sum_k e^(z_k),      z_k = a_k t + g_k, sorted by slope

has 2 to 8 anchors, of which at most one on either side is *steep*: STEEP times as far from the others, the *gentle*
ones, as these are from each other. With D = sum e^(z_k) and R = sum v_k e^(z_k) / D of the gentle ones alone,
R(o + s) = rho_0 + rho_1 s + rho_2 s^2 + ..., o = -(g_last - g_first) / (a_last - a_first) rounded to float64, then to
the dtype. A steep anchor k crosses at c_k, where log D = z_k; there L = log D - z_k has the slope l_k, and
width_k = GAP / |l_k|. The evaluation has a series if (`_found`, in this order; else the next split into gentle and
steep is tried: both sides steep, the left, the right, none)

  gentle logits at o are within ALIKE of the first one's; rho_1 > 0; width^2 >= SMALLEST;
  reach = 5/4 max(|c - o| + 2 width), or 5/4 without steep anchors, is at most 1 / (4 (a_last - a_first));
  with sizes_j = |rho_j| reach^j (j < ORDER) and Cauchy's tail 3.2 max|v| x^ORDER / (1 - x), x = reach (a_last -
  a_first), the terms beyond some degree <= DEGREE are at most room = u max|v| / 4. Kept are 1 and those of 2 to the
  least such degree with sizes_j > room / 16. P is rho_0 + rho_1 s + the kept;
  16 (rho_1 reach + kept sizes) + 2 |rho_0| <= max|v|;
  P takes the value v_k at a point e_k within width/2 of c_k; width >= 400 u |c_k|; c + 2 width on the left is below
  c - 2 width on the right.

It computes, in the dtype, with s = t - o, c_j = rho_j / rho_1, e, c, l, V = (v - rho_0) / rho_1 each rounded:

  q = s + sum_kept c_j s^j           with t clipped between the e_k,    unless (t - c)^2 < (NEAR width)^2: there
  q = V + (s + sum c_j s^j - V) w    with t as it is, w the second of softmax(0, (t - c) l),

and r is taken for scale q + shift, scale = rho_1 and shift = rho_0 rounded to float64.

Lemma. |scale q + shift - r(t)| <= error(low, high) for every t of [low, high], t a number of the dtype.

Proof. dL/dt is a mean of gentle slopes less a_k: it differs from l by at most a_last - a_first <= |l| / STEEP. So
|L| >= 0.999 |l| |t - c| everywhere, and beyond a width, which is where q is not mended (NEAR leaves room for the
rounding of c and of the test), the anchors that q leaves out weigh less than e^(-0.999 GAP) each: `left_out`.
  - s^j has j roundings from s and j - 1 products; c_j two and its product one; every sum adds one to all: gamma_(m_j),
    m_j = 2j + 2 + kept, of |c_j| |s|^j, and m_1 = 1 + kept.
  - R - P: the terms that are not kept, with the rest of Taylor's theorem from a ball around o. Clipped: |P(e) - v|.
  - Near c, with Q = (R - rho_0) / rho_1: q - (V + (Q - V) sigmoid(L)) is made of the errors of s + sum c_j s^j and of
    V, times w; of |Q - V| times the relative error of w; of |Q - V| times what sigmoid changes by from L to the
    computed (t - c) l, off by delta. log sigmoid' has slopes below 1, so that is at most delta e^delta sigmoid'(L);
    and |Q - V| <= |Q(c) - V| + M |t - c|, M = sup |Q'|; and |x| sigmoid'(x) < 0.2240, sigmoid' <= 1/4. log D is as
    good as its tangent up to (a_last - a_first)^2 / 8 (t - c)^2, since (log D)'' is a variance of gentle slopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, coefficient, exact, precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.rounding import SLACK, Arithmetic

ORDER, DEGREE, STEEP, ALIKE = 14, 5, 1000, 100
GAPS, SMALLEST = {"float32": 44, "float64": 68}, {"float32": 2.0**-50, "float64": 2.0**-400}
NEAR = 1.01
BITS = 400
Balls = list[arb]


@dataclass(frozen=True, eq=False)
class Crossing:
    """A steep anchor: where it crosses, the slope of L there, its width, its value, and where q is clipped."""

    at: arb
    slope: arb
    width: arb
    value: arb
    end: arb
    off: float
    """A bound on |P(end) - value|, end as rounded."""


@dataclass(frozen=True, eq=False)
class Series:
    """See above; rho has all ORDER coefficients, kept the powers of P beyond 1."""

    origin: float
    rho: tuple[arb, ...]
    kept: tuple[int, ...]
    spread: arb
    left: Crossing | None
    right: Crossing | None
    slopes: tuple[arb, ...]
    offsets: tuple[arb, ...]
    values: tuple[arb, ...]
    range: float
    """The largest difference of values, steep ones too."""
    model: Arithmetic

    @property
    def scale(self) -> float:
        return float(self.rho[1])

    @property
    def shift(self) -> float:
        return float(self.rho[0])

    def magnitude(self, low: float, high: float) -> tuple[float, float]:
        """Bounds on |scale q|, as computed, and |shift|."""
        with precision(BITS):
            s, unit = self._furthest(low, high), exact(self.model.unit)
            q = sum((abs(self.rho[j]) * s**j for j in (1, *self.kept)), arb(0)) * (1 + 64 * unit)
            sides = [
                abs(one.value - self.rho[0]) * (1 + 64 * unit) for one in (self.left, self.right) if one is not None
            ]
            largest = max([q + 2 * exact(self.model.tiny), *sides], key=above)
            return above(largest) * SLACK, above(abs(self.rho[0])) * SLACK

    def error(self, low: float, high: float) -> float:
        """The lemma's, for t between low and high."""
        with precision(BITS, ORDER + 2):
            unit, tiny = exact(self.model.unit), exact(self.model.tiny)
            s, rho1 = self._furthest(low, high), self.rho[1]
            gammas = {
                j: self._gamma(1 + len(self.kept) if j == 1 else 2 * j + 2 + len(self.kept)) for j in (1, *self.kept)
            }
            terms = {j: abs(self.rho[j] / rho1) * s**j for j in (1, *self.kept)}
            lost = 40 * tiny * (1 + sum((abs(self.rho[j] / rho1) for j in self.kept), arb(0))) * (1 + s) ** 6
            rounded = sum((gammas[j] * terms[j] for j in terms), arb(0)) + lost
            rest = self._rest(s)
            stored = exact(2.0**-52) * (rho1 * sum(terms.values(), arb(0)) + abs(self.rho[0]))
            left_out = 8 * exact(self.range) * (-(exact(0.999) * GAPS[self.model.dtype])).exp()
            ends = [one for one in (self.left, self.right) if one is not None]
            off = max([one.off for one in ends], default=0.0)
            far = rho1 * rounded + stored + rest + exact(off) + left_out
            near = [self._near(one, rounded + rest / rho1, unit, tiny) * rho1 + 2 * stored + left_out for one in ends]
            return max(map(above, [far, *near])) * SLACK

    def _near(self, one: Crossing, total: arb, unit: arb, tiny: arb) -> arb:
        """Of q within NEAR widths of a crossing, its polynomial being off by `total`."""
        gap, slope, apart = exact(GAPS[self.model.dtype]), abs(one.slope), exact(1.02) * one.width
        value = (one.value - self.rho[0]) / self.rho[1]
        here = self._mean(one.at, arb(1), 2)
        fall = abs((here[0] - self.rho[0]) / self.rho[1] - value)
        around = self._mean(one.at + arb(0, 1) * apart, arb(1), 2)
        steep = abs(around[1] / self.rho[1])
        delta = self._gamma(5) * exact(1.03) * gap + exact(2.1) * unit * slope * abs(one.at)
        delta = delta + (self.spread * apart) ** 2 / 8 + 4 * tiny * (slope + 1)
        turned = delta * delta.exp() * (fall / 4 + steep * exact(0.2245) / slope)
        difference = fall + steep * apart
        weight = 2 * exact(self.model.exp_error) + 8 * unit
        wrong = (total + 2 * unit * abs(value) + 2 * tiny) * exact(1.001)
        whole = abs(value) + difference + wrong
        return (
            2 * unit * abs(value)
            + wrong
            + turned * exact(1.001)
            + difference * (weight + 4 * unit)
            + 2 * unit * whole
            + 8 * tiny
        )

    def _gamma(self, n: int) -> arb:
        return exact(float(self.model.gamma(n)) * SLACK)

    def _furthest(self, low: float, high: float) -> arb:
        """The largest |t - o| of a t that is clipped, or mended."""
        origin, ends = exact(self.origin), []
        for t in (low, high):
            at = exact(t)
            if self.left is not None and not at > self.left.end:
                at = self.left.end
            if self.right is not None and not at < self.right.end:
                at = self.right.end
            ends.append(abs(at - origin))
        for one in (self.left, self.right):
            if one is not None:
                ends.append(abs(one.at - origin) + exact(1.02) * one.width)
        return exact(max(map(above, ends)))

    def _mean(self, t: arb, step: arb, order: int) -> arb_series:
        return _mean(list(self.slopes), list(self.offsets), list(self.values), t, step, order)

    def _rest(self, s: arb) -> arb:
        """|R - P| for |t - o| <= s."""
        dropped = sum((abs(self.rho[j]) * s**j for j in range(2, ORDER) if j not in self.kept), arb(0))
        around = self._mean(exact(self.origin) + arb(0, 1) * s, s, ORDER + 1)
        return dropped + abs(coefficient(around, ORDER))


def series_of(slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, model: Arithmetic) -> Series | None:
    """The series of a head, sorted by slope; None: it has none. Refused where that cannot be told."""
    count = len(slopes)
    if not 2 <= count <= 8:
        return None
    with precision(BITS, ORDER + 2):
        for left, right in product((1, 0), (1, 0)):
            if count - left - right >= 2:
                found = _found(slopes, offsets, values, left, right, model)
                if found is not None:
                    return found
    return None


def _found(
    slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, left: int, right: int, model: Arithmetic
) -> Series | None:
    a, g, v = ([exact(x) for x in array] for array in (slopes, offsets, values))
    last = len(a) - right
    gentle = a[left:last], g[left:last], v[left:last]
    spread = gentle[0][-1] - gentle[0][0]
    beyond = [a[left] - a[0]] * left + [a[-1] - a[last - 1]] * right
    if _less(spread, arb(0)) or any(_less(step, STEEP * spread) and step != STEEP * spread for step in beyond):
        return None
    unit, most = exact(model.unit), max((abs(one) for one in gentle[2]), key=above)
    origin = _rounded(-_fraction(offsets[last - 1], offsets[left]) / _fraction(slopes[last - 1], slopes[left]), model)
    heights = [b * exact(origin) + h for b, h in zip(*gentle[:2], strict=True)]
    if not all(_less(abs(one - heights[0]), arb(ALIKE)) for one in heights):
        return None
    mean = _mean(*gentle, exact(origin), arb(1), ORDER)
    rho = tuple(coefficient(mean, j) for j in range(ORDER))
    if _less(rho[1], arb(0)):
        return None
    steep = [0] * left + [len(a) - 1] * right
    places = [_crossing(gentle[0], gentle[1], a[k], g[k], origin) for k in steep]
    gap = exact(GAPS[model.dtype])
    widths = [gap / abs(slope) for _, slope in places]
    if not all(_less(exact(SMALLEST[model.dtype]), width**2) for width in widths):
        return None
    apart = [abs(at - exact(origin)) + 2 * width for (at, _), width in zip(places, widths, strict=True)]
    reach = max(apart or [arb(1)], key=above) * 5 / 4
    if not _less(4 * reach * spread, arb(1)):
        return None
    part = reach * spread
    tail = arb("3.2") * most * part**ORDER / (1 - part)
    room = unit * most / 4
    sizes = [abs(one) * reach**j for j, one in enumerate(rho)]
    degree = next((d for d in range(1, DEGREE + 1) if _less(sum(sizes[d + 1 :], tail), room)), None)
    if degree is None:
        return None
    kept = tuple(j for j in range(2, degree + 1) if not _less(sizes[j], room / 16))
    if not _less(16 * sum((sizes[j] for j in kept), sizes[1]) + 2 * sizes[0], most):
        return None
    crossings = []
    for (at, slope), width, k in zip(places, widths, steep, strict=True):
        end = _where(rho, kept, v[k], at - exact(origin))
        if end is None or not _less(abs(end + exact(origin) - at), width / 2) or not _less(400 * unit * abs(at), width):
            return None
        end = end + exact(origin)
        wide = 2 * unit * abs(end) + exact(model.tiny) + exact(2.0**-100) * width
        end = end + arb(0, 1) * wide  # as it is rounded, twice
        off = abs(_value(rho, kept, end - exact(origin)) - v[k])
        crossings.append(Crossing(at, slope, width, v[k], end, above(off)))
    if left and right and not _less(places[0][0] + 2 * widths[0], places[1][0] - 2 * widths[1]):
        return None
    largest = above(max(v, key=above) - min(v, key=above))
    first, final = crossings[0] if left else None, crossings[-1] if right else None
    alike = tuple(gentle[0]), tuple(gentle[1]), tuple(gentle[2])
    return Series(origin, rho, kept, spread, first, final, *alike, largest, model)


def _less(a: arb, b: arb) -> bool:
    """Whether a <= b; refused where it is closer than any two ways to compute it need agree."""
    if a == b:
        return True
    margin = (abs(a) + abs(b)) * exact(2.0**-150)
    if a + margin < b:
        return True
    if a > b + margin:
        return False
    raise NotVerified("direct: a head of which cannot be told whether it has a series")


def _fraction(a: float, b: float) -> Fraction:
    return Fraction(float(a)) - Fraction(float(b))


def _rounded(number: Fraction, model: Arithmetic) -> float:
    """To float64, then to the dtype."""
    return float(np.dtype(model.dtype).type(float(number)))


def _mean(a: Balls, g: Balls, v: Balls, t: arb, step: arb, order: int) -> arb_series:
    """sum v e^z / sum e^z, z = a (t + step x) + g, as a series in x; relative to the middle slope, the first value."""
    middle = (a[0] + a[-1]) / 2
    upper, lower = [arb(0)] * order, [arb(0)] * order
    for slope, offset, value in zip(a, g, v, strict=True):
        term = ((slope - middle) * t + offset - g[0]).exp()
        for j in range(order):
            if j:
                term = term * (slope - middle) * step / j
            lower[j] += term
            upper[j] += (value - v[0]) * term
    return arb_series(upper, prec=order) / arb_series(lower, prec=order) + v[0]


def _crossing(a: Balls, g: Balls, slope: arb, offset: arb, start: float) -> tuple[arb, arb]:
    """Where log D is slope t + offset, and what their difference rises by there: Newton's steps, then a ball around
    the last of them that is wide enough, because L rises by at least |its least slope| everywhere."""

    def difference(t: arb) -> tuple[arb, arb]:
        heights = [b * t + h for b, h in zip(a, g, strict=True)]
        top = max(heights, key=above)
        weights = [(height - top).exp() for height in heights]
        total = sum(weights, arb(0))
        tilt = sum((b * w for b, w in zip(a, weights, strict=True)), arb(0)) / total - slope
        return total.log() + top - slope * t - offset, tilt

    t = exact(start)
    for _ in range(12):
        value, tilt = difference(t)
        t = (t - value / tilt).mid()
    value, _ = difference(t)
    least = min((abs(b - slope) for b in a), key=above)
    t = t + arb(0, 1) * (abs(value) / least)
    return t, difference(t)[1]


def _value(rho: tuple[arb, ...], kept: tuple[int, ...], s: arb) -> arb:
    return rho[0] + rho[1] * s + sum((rho[j] * s**j for j in kept), arb(0))


def _where(rho: tuple[arb, ...], kept: tuple[int, ...], value: arb, s: arb) -> arb | None:
    """Where P takes a value, near s: Newton's steps; None where P does not rise by half of rho_1 on the way."""
    for _ in range(8):
        s = s.mid()
        rise = rho[1] + sum((j * rho[j] * s ** (j - 1) for j in kept), arb(0))
        if _less(rise, rho[1] / 2):
            return None
        s = s - (_value(rho, kept, s) - value) / rise
    return s
