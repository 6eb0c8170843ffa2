"""Heads whose anchors are gentle or steep: which series computes them, and how far that is off, line by line.

    r(t) = sum_k v_k e^(z_k) / sum_k e^(z_k),      z_k = a_k t + g_k, sorted by slope

has 2 to 8 anchors, of which at most one on either side is *steep*: STEEP times as far from the others, the *gentle*
ones, as these are from each other. With D = sum e^(z_k) and R = sum v_k e^(z_k) / D of the gentle ones alone,
R(o + s) = rho_0 + rho_1 s + rho_2 s^2 + ..., o = -(g_last - g_first) / (a_last - a_first) rounded to float64, then to
the dtype. A steep anchor k crosses at c_k, where log D = z_k; there L_k = log D - z_k has the slope l_k. |R'| is at
most M = (a_last - a_first) (max v - min v) / 4 of the gentle ones: a covariance of slopes and values is no larger. The
evaluation has a series if (`_found`, in this order; else the next split into gentle and steep is tried: both sides
steep, the left, the right, none)

  gentle logits at o are within ALIKE of the first one's; rho_1 > 0;
  reach = 5/4 max |c - o|, or 5/4 without steep anchors, is at most 1 / (4 (a_last - a_first));
  with sizes_j = |rho_j| reach^j (j < ORDER) and Cauchy's tail 3.2 max|v| x^ORDER / (1 - x), x = reach (a_last -
  a_first), the terms beyond some degree <= DEGREE are at most room = u max|v| / 4. Kept are 1 and those of 2 to the
  least such degree with sizes_j > room / 16. P is rho_0 + rho_1 s + the kept;
  16 (rho_1 reach + kept sizes) + 2 |rho_0| <= max|v|;
  P takes the value v_k at a point e_k, on its side of the middle of two crossings, and clipping loses (`_lost`) no more
  than LOST u max|v|, which is what exp alone makes a softmax of such values err by.

It computes, in the dtype, with t clipped between the e_k, s = t - o, c_j = rho_j / rho_1, and e each rounded:

  q = s + sum_kept c_j s^j,

and r is taken for scale q + shift, scale = rho_1 and shift = rho_0 rounded to float64.

Lemma. |scale q + shift - r(t)| <= error(low, high) for every t of [low, high], t a number of the dtype.

Proof. Rounding: s^j has j roundings from s and j - 1 products; c_j two and its product one; every sum adds one to all:
gamma_(m_j), m_j = 2j + 2 + kept, of |c_j| |s|^j, and m_1 = 1 + kept. R - P: the terms that are not kept, with the rest
of Taylor's theorem from a ball around o, in all `rest`. Clipping: dL_k/dt is a mean of gentle slopes less a_k, which
differs from l_k by at most a_last - a_first <= |l_k| / STEEP, so |L_k| >= 0.999 |l_k| |t - c_k|. Of k and the gentle
ones together k has the share sigmoid(-L_k). With off_k = |P(e_k) - v_k|, |R(t) - v_k| <= rest + off_k + M |t - e_k|.
  - Of one steep anchor: beyond both e_k and c_k, on either side, what stands for r, R up to `rest` or v_k up to off_k,
    is off by the smaller share, at most 1/2, of R - v_k. M |t - e_k| <= M |e_k - c_k| + M |t - c_k| has at most
    M |e_k - c_k| / 2 + M BLUNT / |l_k| of that, since x sigmoid(-x) < 0.2785. Between e_k and c_k the share is at most
    1, and M |t - e_k| <= M |e_k - c_k|.
  - Of two, the one beyond the middle of their crossings is at least 0.999 |l| times half of what they are apart below
    the gentle ones, and whatever is read differs from its value by no more than the range of all.
So |P - r| <= 2 rest + 2 off + M (|e - c| / 2 + max(|e - c| / 2, BLUNT / |l|)) + range e^(-0.999 |l| (c_r - c_l) / 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, coefficient, exact, precision
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.rounding import SLACK, Arithmetic

ORDER, DEGREE, STEEP, ALIKE = 14, 5, 1000, 100
LOST, BLUNT, RISES = 8, Fraction(279, 1000), Fraction(999, 1000)
BITS = 400
Balls = list[arb]


@dataclass(frozen=True, eq=False)
class Crossing:
    """A steep anchor: where it crosses, the slope of L there, its value, and where q is clipped, before and after that
    is rounded."""

    at: arb
    slope: arb
    value: arb
    end: arb
    stored: arb


@dataclass(frozen=True, eq=False)
class Series:
    """See above; rho has all ORDER coefficients, kept the powers of P beyond 1."""

    origin: float
    rho: tuple[arb, ...]
    kept: tuple[int, ...]
    left: Crossing | None
    right: Crossing | None
    slopes: tuple[arb, ...]
    offsets: tuple[arb, ...]
    values: tuple[arb, ...]
    range: arb
    """The largest difference of values, steep ones too."""
    model: Arithmetic

    @property
    def sides(self) -> list[Crossing]:
        return [one for one in (self.left, self.right) if one is not None]

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
            return above(q + 2 * exact(self.model.tiny)) * SLACK, above(abs(self.rho[0])) * SLACK

    def error(self, low: float, high: float) -> float:
        """The lemma's, for t between low and high."""
        with precision(BITS, ORDER + 2):
            s, rho1, tiny = self._furthest(low, high), self.rho[1], exact(self.model.tiny)
            gammas = {
                j: self._gamma(1 + len(self.kept) if j == 1 else 2 * j + 2 + len(self.kept)) for j in (1, *self.kept)
            }
            terms = {j: abs(self.rho[j] / rho1) * s**j for j in (1, *self.kept)}
            tiniest = 40 * tiny * (1 + sum((abs(self.rho[j] / rho1) for j in self.kept), arb(0))) * (1 + s) ** 6
            rounded = sum((gammas[j] * terms[j] for j in terms), arb(0)) + tiniest
            rest = self._rest(s)
            stored = exact(2.0**-52) * (rho1 * sum(terms.values(), arb(0)) + abs(self.rho[0]))
            ends = [one.stored for one in self.sides]
            values = [_value(self.rho, self.kept, end - exact(self.origin)) for end in ends]
            offs = [above(abs(found - one.value)) for found, one in zip(values, self.sides, strict=True)]
            lost = _lost(self.sides, ends, _steepest(self.slopes, self.values), self.range)
            return above(rho1 * rounded + stored + 2 * rest + 2 * exact(max(offs, default=0.0)) + lost) * SLACK

    def _gamma(self, n: int) -> arb:
        return exact(float(self.model.gamma(n)) * SLACK)

    def _furthest(self, low: float, high: float) -> arb:
        """The largest |t - o| of a t that is clipped, and of the points where it is."""
        origin, ends = exact(self.origin), [abs(one.stored - exact(self.origin)) for one in self.sides]
        for t in (low, high):
            at = exact(t)
            if self.left is not None and not at > self.left.stored:
                at = self.left.stored
            if self.right is not None and not at < self.right.stored:
                at = self.right.stored
            ends.append(abs(at - origin))
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
    reach = max([abs(at - exact(origin)) for at, _ in places] or [arb(1)], key=above) * 5 / 4
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
    sides = []
    for (at, slope), k in zip(places, steep, strict=True):
        end = _where(rho, kept, v[k], at - exact(origin))
        if end is None:
            return None
        end = end + exact(origin)
        wide = 2 * unit * abs(end) + exact(model.tiny) + exact(2.0**-100) / abs(slope)
        sides.append(Crossing(at, slope, v[k], end, end + arb(0, 1) * wide))  # as it is rounded, twice
    span, ends = max(v, key=above) - min(v, key=above), [one.end for one in sides]
    middle = sum((at for at, _ in places), arb(0)) / 2
    if left and right and not (_less(ends[0], middle) and _less(middle, ends[1])):
        return None
    if not _less(_lost(sides, ends, _steepest(gentle[0], gentle[2]), span), LOST * unit * most):
        return None
    first, final = sides[0] if left else None, sides[-1] if right else None
    alike = tuple(gentle[0]), tuple(gentle[1]), tuple(gentle[2])
    return Series(origin, rho, kept, first, final, *alike, span, model)


def _steepest(slopes: Sequence[arb], values: Sequence[arb]) -> arb:
    """M, of gentle anchors."""
    return (slopes[-1] - slopes[0]) * (max(values, key=above) - min(values, key=above)) / 4


def _lost(sides: Sequence[Crossing], ends: Balls, steepest: arb, span: arb) -> arb:
    """What clipping at the ends loses, beside `rest` and `off`."""
    blunt, rises = (arb(one.numerator) / one.denominator for one in (BLUNT, RISES))
    lost = []
    for one, end in zip(sides, ends, strict=True):
        half = abs(end - one.at) / 2
        lost.append(steepest * (half + max(half, blunt / abs(one.slope), key=above)))
    most = max(lost, key=above, default=arb(0))
    if len(sides) == 2:
        slope = min((abs(one.slope) for one in sides), key=above)
        most += span * (-rises * slope * (sides[1].at - sides[0].at) / 2).exp()
    return most


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
    require(bool(lower[0] > 0), "direct: a head is asked further from the origin of its series than that reaches")
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
