"""The function that the heads of a neuron compute together, as a sum of quotients, each of t clipped to a stretch.

In the units of the query t of a shape (`activation_head`), its parts add up to

    g(t) = (phi(in_scale t + in_shift) - out_shift) / out_scale,

up to their error. The evaluation "direct" need not follow the heads: it has the same certificate if it follows g as
closely as they do, and g has less to follow. Between its kinks g is analytic, and quotients of polynomials are soon
close to it. With R_i that of the stretch from c_(i-1) to c_i, and the cuts at the kinks,

    g(t) = shift + sum over stretches of R_i(clip(t, c_(i-1), c_i)),

nearly: left of its stretch R_i counts as R_i(c_(i-1)), right of it as R_i(c_i), and shift takes these away. A stretch
on which g hardly changes has no piece. A function that is steep in the middle of a wide interval is cut in three, so
that the tails take few coefficients, however wide they are.

Each stretch gets the shortest quotient, or polynomial, that follows it within a share of what is allowed. What is
proven is the sum as it is stored, with its rounding (`quotients`); where the map behind takes q, with scale and shift
in its weights and its bias, that adds 6u of |scale q| + |shift|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise, zip_longest

import numpy as np
from flint import acb, acb_poly, arb

from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets.scalar import ScalarTarget
from anchorhead.network.direct import Piece, Series
from anchorhead.proof.arithmetic.arithmetic import UP, arithmetic_of
from anchorhead.proof.enclosures.balls import largest_jump
from anchorhead.proof.enclosures.supremum import Span, Supremum
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.head import ExpressionOnBalls
from anchorhead.proof.heads.quotients import fitted, nodes, rounding
from anchorhead.proof.remembered import remembered

BITS = 500
"""Of the balls in which equations are solved: 40 nodes make them ill-conditioned."""
ARGUMENTS = 64
"""Bits of arguments beyond those that values need."""
MAX_COEFFICIENTS = 40
SHORT = 24
"""Coefficients of a whole interval that nobody would cut."""
SHARES = (0.4, 0.1)
"""Of what is allowed: what each stretch may be off before anything is rounded; the first that will do."""
POLYNOMIAL = 8
"""The most coefficients for which a polynomial is tried."""
TAILS = (1, 5, 9)
"""Coefficients that tails may have."""
STEPS = 12
"""Of the bisection for where a tail begins."""
OVERHEAD = 3
"""What clipping and adding a piece costs, in coefficients."""
LEAST = 2.0**-20
"""Less of a slope is none to scale by."""
FOLDED = 2.0**30
"""Scales outside of [1/FOLDED, FOLDED] are of no function that anybody has."""
NOTHING = 2.0**-100
"""Of its scale: less of a shift is what the equations are off by."""
Keys = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Slopes, offsets and values, in float64."""


@dataclass(frozen=True, eq=False)
class Curve:
    """g of a shape, on its interval; shifted: whether its lines are (`followed`)."""

    shape: ActivationHead
    shifted: bool

    @cached_property
    def target(self) -> ScalarTarget:
        return ScalarTarget((self.shape.activation,), self.shape.low, self.shape.high)

    def __call__(self, t: arb) -> arb:
        (phi,) = self.target.ball(arb(self.shape.in_scale) * t + self.shape.in_shift)
        return (phi - self.shape.out_shift) / self.shape.out_scale

    @property
    def pieces(self) -> list[tuple[arb, arb, ExpressionOnBalls]]:
        """Between which t an analytic function of s is phi, from left to right."""
        found = [
            (*sorted((self._asks(one.left), self._asks(one.right)), key=float), one.expression)
            for one in self.target.pieces.pieces
        ]
        return [
            (left, right, ExpressionOnBalls(one, self.target.variable)) for left, right, one in sorted(found, key=_left)
        ]

    def cuts(self, low: float, high: float, dtype: str) -> list[float]:
        """low, high, and kinks between these, as numbers of the dtype."""
        kinks = (self._asks(kink.at) for kink in self.target.pieces.kinks if not (kink.smooth or kink.end))
        inside = {float(np.dtype(dtype).type(float(kink.mid()))) for kink in kinks}
        return [low, *sorted(cut for cut in inside if low < cut < high), high]

    def off(self, on_balls: ExpressionOnBalls, t: acb, follows: acb) -> acb:
        """What is off g at t where phi is that function."""
        phi = on_balls(t * self.shape.in_scale + self.shape.in_shift)
        return follows - (phi - self.shape.out_shift) / self.shape.out_scale

    def _asks(self, s: arb) -> arb:
        return (s - self.shape.in_shift) / self.shape.in_scale


def _left(piece: tuple) -> float:
    return float(piece[0])


@dataclass(frozen=True, eq=False)
class Fit:
    """scale N / D + constant of t - origin between left and right, N beginning with s; scale 0: a constant."""

    left: float
    right: float
    constant: arb
    scale: arb
    origin: float = 0.0
    above: tuple[tuple[int, float], ...] = ()
    below: tuple[tuple[int, float], ...] = ()

    @property
    def coefficients(self) -> int:
        return len(self.above) + len(self.below) + 1 if self.scale != 0 else 0

    def quotient(self, t: acb) -> acb:
        """N / D; 0 for a constant."""
        if self.scale == 0:
            return acb(0)
        above, below = (
            acb_poly([*[0.0] * k, 1.0, *(c for _, c in one)]) for k, one in ((1, self.above), (0, self.below))
        )
        s = t - self.origin
        return above(s) / below(s)

    def __call__(self, t: arb) -> arb:
        return self.quotient(acb(t)).real * self.scale + self.constant

    @property
    def positive(self) -> bool:
        """Whether the denominator is, at many places."""
        s = np.linspace(self.left, self.right, 400) - self.origin
        return bool((np.polyval([*(d for _, d in reversed(self.below)), 1.0], s) > 0).all())


@remembered(64)
def followed(
    shape: ActivationHead, keys: Keys, allowed: float, most: int, dtype: str, shifted: bool = True
) -> Series | None:
    """A series, in the place of a head of these keys, that is all that the parts of a shape compute together, for the
    queries of its interval, errs by no more than is allowed and costs no more than so many coefficients; None: no such
    series is found. shifted: whether lines begin where they count, which rounds less, and takes an operation more."""
    with precision(BITS):
        curve, (low, high) = Curve(shape, shifted), shape.queries
        cuts = curve.cuts(low, high, dtype)
        for share in SHARES:
            within = share * allowed
            known = [_all(curve, cuts, within, most, dtype)]
            if len(cuts) == 2 and most > SHORT and (known[0] is None or _cost(known[0]) > SHORT):
                plans = _with_tails(curve, low, high, within, dtype)
                known += [_all(curve, one, within, most, dtype) for one in plans]
            fits = min((one for one in known if one is not None), key=_cost, default=None)
            found = None if fits is None or _cost(fits) > most else _proven(curve, keys, fits, allowed, dtype)
            if found is not None:
                return found
        return None


def nothing(keys: Keys) -> Series:
    """In the place of a head, where another computes all of the function: 0."""
    return Series(*_listed(keys), 0.0, 0.0, 0.0, (), 1.0, 0.0, math.inf, 0.0)


def _listed(keys: Keys) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    slopes, offsets, values = (tuple(one.tolist()) for one in keys)
    return slopes, offsets, values


def _cost(fits: Sequence[Fit]) -> int:
    return sum(fit.coefficients + OVERHEAD for fit in fits if fit.coefficients)


def _all(curve: Curve, cuts: Sequence[float], allowed: float, most: int, dtype: str) -> list[Fit] | None:
    """The shortest fits between these; None where one has none."""
    fits: list[Fit] = []
    for left, right in pairwise(cuts):
        one = _shortest(curve, left, right, allowed, min(most, MAX_COEFFICIENTS), dtype)
        if one is None:
            return None
        fits.append(one)
    return fits


def _with_tails(curve: Curve, low: float, high: float, share: float, dtype: str) -> list[list[float]]:
    """Cuts: a middle, whole or in two, and tails that few coefficients follow, as long as these are."""
    plans: list[list[float]] = []
    for count in TAILS:
        ends = []
        for end, other in ((low, high), (high, low)):
            near, far = end, other
            for _ in range(STEPS):
                middle = float(np.dtype(dtype).type((near + far) / 2))
                left, right = sorted((end, middle))
                short = _shortest(curve, left, right, share, count, dtype) is not None
                near, far = (middle, far) if short else (near, middle)
            ends.append(near)
        left, right = ends
        if not low < left < right < high:
            continue
        middle = 0.0 if left < 0 < right else float(np.dtype(dtype).type((left + right) / 2))
        plans += [[low, left, right, high], [low, left, middle, right, high]]
    return plans


def _shortest(curve: Curve, left: float, right: float, allowed: float, most: int, dtype: str) -> Fit | None:
    """The fewest coefficients that follow a stretch within what is allowed, up to so many."""
    middle = (curve(arb(left)) + curve(arb(right))) / 2
    fit = Fit(left, right, middle, arb(0))
    if _furthest(curve, fit, 8) <= allowed:
        return fit
    around = _origin(curve, left, right, dtype)
    for count in range(1, most + 1):
        origin = around if curve.shifted or count > 1 else 0.0
        belows = [0] * (count <= POLYNOMIAL) + [1] * (count == 2)
        for below in (*belows, *(b for b in (2 * (count // 4), 2 * (count // 4) - 2) if b > 0)):
            solved = fitted(curve, origin, left, right, count, below)
            found = None if solved is None else _normalised(left, right, origin, *solved)
            if found is not None and found.positive and _furthest(curve, found, 4 * count + 8) <= allowed:
                return found
    return None


def _furthest(curve: Curve, fit: Fit, count: int) -> float:
    """The largest error at so many nodes and the ends."""
    places = (arb(fit.left), *nodes(fit.left, fit.right, count), arb(fit.right))
    return max(abs(float(fit(t) - curve(t))) for t in places)


def _origin(curve: Curve, left: float, right: float, dtype: str) -> float:
    """0 where that is within the stretch, or nearly, else the cut that is next to it: there the piece is 0, and so is
    what has to be taken away again elsewhere. Where g hardly changes there, one of a few places where it does."""
    width = right - left
    near, step = width / 1000, width * 2.0**-40
    inside = left - near <= 0 <= right + near
    places = (0.0 if inside else min(left, right, key=abs), *(left + width * part for part in (0.5, 0.75, 0.25)))
    for place in places:
        a, b = arb(max(left, place - step)), arb(min(right, place + step))
        if abs(curve(b) - curve(a)) > LEAST * (b - a):
            return float(np.dtype(dtype).type(place))
    return places[0]


def _normalised(left: float, right: float, origin: float, p: Sequence[arb], q: Sequence[arb]) -> Fit | None:
    """P / Q as constant + scale N / D, coefficients rounded to float64."""
    constant = p[0].mid()
    n = [one - constant * other for one, other in zip_longest(p, q, fillvalue=arb(0))]
    if not abs(n[1]) > LEAST:
        return None
    above, below = [float(one / n[1]) for one in n[2:]], [float(one) for one in q[1:]]
    if not np.isfinite([*above, *below]).all():
        return None
    return Fit(left, right, constant, n[1].mid(), origin, tuple(enumerate(above, 2)), tuple(enumerate(below, 1)))


def _proven(curve: Curve, keys: Keys, fits: Sequence[Fit], allowed: float, dtype: str) -> Series | None:
    """The series of these fits, the first of which rises; None where it errs by more than is allowed."""
    live = [k for k, fit in enumerate(fits) if fit.scale != 0]
    rising = [k for k in live if 1 / FOLDED < fits[k].scale < FOLDED]
    if not rising:
        return None
    first = min(rising, key=lambda k: (fits[k].coefficients, -float(fits[k].scale)))
    scale = float(fits[first].scale)
    factors = [1.0 if k == first else float(fits[k].scale / scale) for k in range(len(fits))]

    def resting(where: int) -> arb:
        """What all other pieces add up to on a stretch."""
        ends = [(k, fits[k].right if k < where else fits[k].left) for k in live if k != where]
        return sum((arb(scale) * factors[k] * fits[k].quotient(acb(end)).real for k, end in ends), arb(0))

    shift = float(fits[first].constant - resting(first))
    shift = shift if abs(shift) > NOTHING * scale else 0.0
    last = len(fits) - 1
    clips = [(-math.inf if k == 0 else fits[k].left, math.inf if k == last else fits[k].right) for k in range(last + 1)]
    beside = tuple(
        Piece(fits[k].origin, *clips[k], fits[k].above, fits[k].below, factors[k]) for k in live if k != first
    )
    main, unknown = fits[first], math.inf
    found = Series(
        *_listed(keys), main.origin, *clips[first], main.above, scale, shift, unknown, unknown, main.below, beside
    )
    rounded, most = rounding(found, *curve.shape.queries, dtype)
    rounded = (scale * rounded + 6 * arithmetic_of(dtype).unit * most) * UP
    if not rounded < allowed:
        return None
    sup = Supremum(0.02, (allowed - rounded) / 2)
    for k, fit in enumerate(fits):
        constant, size = arb(shift) + resting(k), arb(scale) * factors[k]
        for left, right, phi in curve.pieces:
            outer = left.lower().max(arb(fit.left)), right.upper().min(arb(fit.right))
            if outer[0] <= outer[1]:
                inner = left.upper().max(arb(fit.left)), right.lower().min(arb(fit.right))
                off = partial(_off, curve, phi, fit, constant, size)
                sup.cover([Span(*outer, inner, off, 2 * fit.coefficients + phi.operations + 4)], most, ARGUMENTS, ())
    jump = largest_jump(curve.target.pieces) / curve.shape.out_scale
    error = (sup.bound + jump + rounded) * UP
    return replace(found, error=error) if error <= allowed else None


def _off(curve: Curve, phi: ExpressionOnBalls, fit: Fit, constant: arb, size: arb, t: acb) -> acb:
    return curve.off(phi, t, fit.quotient(t) * size + constant)
