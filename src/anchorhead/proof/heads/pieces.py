"""Heads with kinks and long tails as sums of quotients, each of t clipped to a stretch of the interval.

Where slopes are far apart, keys come in clusters: on a stretch between two crossings one cluster outweighs all others,
and the head is the mean R of that cluster alone, which is smooth. At a cut c, where R of one stretch is R of the next,

    r(t) = shift + sum over stretches of R_i(clip(t, c_(i-1), c_i)),

nearly: left of its stretch R_i counts as R_i(c_(i-1)), right of it as R_i(c_i), and shift takes these away. A stretch
on which R hardly changes has no piece. A smooth head that is steep in the middle of a wide interval is cut in three,
so that the tails take few coefficients, however wide they are.

Each stretch gets the shortest quotient, or polynomial, that follows it within a share of what is allowed (`smooth`).
What is proven is the sum as it is stored, against the whole head: `prove_sup` on each stretch, and rounding as in
`smooth`, of which n pieces beside the first are rounded by gamma_(n + 2) of all sizes: their scales, products and sums.
Where clusters cross, the head turns within a few logits, and the sum has a kink. These turns are proven apart: a head
is close to its function there, as a rule, and may be off by more (`direct`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from flint import acb, acb_poly, arb

from anchorhead.heads.atom import Part
from anchorhead.language.expressions.precision import precision
from anchorhead.network.direct import Piece, Series
from anchorhead.proof.arithmetic.arithmetic import UP, arithmetic_of
from anchorhead.proof.enclosures.analytic import prove_sup
from anchorhead.proof.heads.smooth import BITS, FOLDED, MAX_COEFFICIENTS, Head, Keys, fitted, rounding
from anchorhead.proof.remembered import remembered

SHARES = (0.4, 0.1)
"""Of what is allowed: what each stretch may be off before anything is rounded; the first that will do."""
APART = 1000.0
"""By how much logits of two clusters differ on the interval: cutting where they cross is cutting at a kink."""
POLYNOMIAL = 8
"""The most coefficients for which a polynomial is tried."""
TAILS = (1, 5, 9)
"""Coefficients that tails may have."""
STEPS = 12
"""Of the bisection for where a tail begins."""
OVERHEAD = 3
"""What clipping and adding a piece costs, in coefficients."""
TURNS = 64.0
"""Logits by which clusters are apart where no turn is felt."""
LEAST = 2.0**-20
"""Less of a slope is none to scale by."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """What the head nearly is for t between two numbers."""

    head: Head
    left: float
    right: float


@dataclass(frozen=True, eq=False)
class Fit:
    """scale N / D + constant of t - origin, N beginning with s; scale 0: a constant."""

    constant: arb
    scale: arb
    origin: float = 0.0
    above: tuple[tuple[int, float], ...] = ()
    below: tuple[tuple[int, float], ...] = ()

    @property
    def coefficients(self) -> int:
        return len(self.above) + len(self.below) + 1 if self.scale != 0 else 0

    def quotient(self, t: arb) -> arb:
        """N / D."""
        return _Quotient(self, arb(0), arb(1))(acb(t)).real


@dataclass(frozen=True, eq=False)
class _Quotient:
    """constant + scale N / D of t."""

    fit: Fit
    constant: arb
    scale: arb

    def __call__(self, t: acb) -> acb:
        if self.fit.scale == 0:
            return acb(self.constant)
        s = t - self.fit.origin
        above, below = (_dense(start, powers) for start, powers in ((1, self.fit.above), (0, self.fit.below)))
        return acb_poly(above)(s) / acb_poly(below)(s) * self.scale + self.constant

    @property
    def operations(self) -> int:
        return 2 * self.fit.coefficients + 4


def _dense(start: int, powers: Sequence[tuple[int, float]]) -> list[float]:
    return [*[0.0] * start, 1.0, *(c for _, c in powers)]


@remembered(64)
def pieces(keys: Keys, low: float, high: float, allowed: float, dtype: str) -> Series | None:
    """A series of pieces of a head for t in [low, high] that errs by no more than is allowed, if one is found."""
    with precision(BITS):
        stretches = _stretches(keys, low, high, dtype)
        for share in SHARES:
            plans = [stretches] if len(stretches) > 1 else _with_tails(stretches[0], share * allowed, dtype)
            best: tuple[Sequence[Stretch], list[Fit]] | None = None
            for plan in plans:
                fits = [_shortest(one, share * allowed) for one in plan]
                known = [fit for fit in fits if fit is not None]
                if len(known) == len(fits) and (best is None or _cost(known) < _cost(best[1])):
                    best = plan, known
            found = None if best is None else _proven(keys, *best, allowed, dtype)
            if found is not None:
                return found
        return None


def _cost(fits: Sequence[Fit]) -> int:
    return sum(fit.coefficients + OVERHEAD for fit in fits if fit.coefficients)


def _stretches(keys: Keys, low: float, high: float, dtype: str) -> list[Stretch]:
    """Clusters of keys, from left to right, with the cuts between those that count between low and high."""
    order = np.argsort(keys[0], kind="stable")
    gaps = np.diff(keys[0][order]) * (high - low) > APART
    clusters = [Head((keys[0][k], keys[1][k], keys[2][k])) for k in np.split(order, np.flatnonzero(gaps) + 1)]
    found: list[Stretch] = []
    left = low
    for one, other in pairwise(clusters):
        cut = _cut(one, other, low, high, dtype)
        if cut >= high:
            return [*found, Stretch(one, left, high)]
        if cut > left:
            found.append(Stretch(one, left, cut))
            left = cut
    return [*found, Stretch(clusters[-1], left, high)]


def _cut(one: Head, other: Head, low: float, high: float, dtype: str) -> float:
    """Where two clusters weigh the same, and, next to it, where their means are the same: a number of the dtype."""
    start, end = arb(low), arb(high)
    if one.log_sum(start) < other.log_sum(start):
        return low
    if one.log_sum(end) > other.log_sum(end):
        return high
    for _ in range(200):
        middle = ((start + end) / 2).mid()
        start, end = (middle, end) if one.log_sum(middle) > other.log_sum(middle) else (start, middle)
    at = start
    step = arb((high - low) * 2.0**-60)
    for _ in range(8):
        apart = one(at) - other(at)
        tilt = ((one(at + step) - other(at + step)) - apart) / step
        if abs(tilt) < LEAST:
            break
        at = (at - apart / tilt).mid()
    nearby = abs(at - start) < (high - low) / 100
    return float(np.dtype(dtype).type(float(at if nearby else start)))


def _with_tails(whole: Stretch, share: float, dtype: str) -> list[list[Stretch]]:
    """A smooth head as a middle, whole or in two, with tails that few coefficients follow, as long as these are."""
    head, low, high = whole.head, whole.left, whole.right
    plans: list[list[Stretch]] = []
    for count in TAILS:
        ends = []
        for end, other in ((low, high), (high, low)):
            near, far = end, other
            for _ in range(STEPS):
                middle = float(np.dtype(dtype).type((near + far) / 2))
                tail = Stretch(head, *sorted((end, middle)))
                short = _shortest(tail, share, count) is not None
                near, far = (middle, far) if short else (near, middle)
            ends.append(near)
        left, right = ends
        if not low < left < right < high:
            continue
        middle = 0.0 if left < 0 < right else float(np.dtype(dtype).type((left + right) / 2))
        for cuts in ((low, left, right, high), (low, left, middle, right, high)):
            plans.append([Stretch(head, a, b) for a, b in pairwise(cuts)])
    return plans


def _shortest(stretch: Stretch, allowed: float, most: int = MAX_COEFFICIENTS) -> Fit | None:
    """The fewest coefficients that follow a stretch within what is allowed, up to so many."""
    head, left, right = stretch.head, stretch.left, stretch.right
    ends = [head(arb(left)), head(arb(right))]
    middle = (ends[0] + ends[1]) / 2
    if head.furthest(lambda t: middle, left, right, 8) <= allowed:
        return Fit(middle, arb(0))
    origin = _origin(stretch)
    for count in range(1, most + 1):
        belows = [0] * (count <= POLYNOMIAL) + [b for b in (2 * (count // 4), 2 * (count // 4) - 2) if b > 0]
        for below in belows:
            solved = fitted(head, origin, left, right, count, below)
            fit = None if solved is None else _normalised(origin, *solved)
            if fit is not None and _positive(fit, left, right):
                follows = _Quotient(fit, fit.constant, fit.scale)
                if head.furthest(lambda t, f=follows: f(acb(t)).real, left, right, 4 * count + 8) <= allowed:
                    return fit
    return None


def _origin(stretch: Stretch) -> float:
    """0 where that is within the stretch, or nearly, else the cut that is next to it: there the piece is 0, and so is
    what has to be taken away again elsewhere."""
    near = (stretch.right - stretch.left) / 1000
    inside = stretch.left - near <= 0 <= stretch.right + near
    return 0.0 if inside else min(stretch.left, stretch.right, key=abs)


def _normalised(origin: float, p: Sequence[arb], q: Sequence[arb]) -> Fit | None:
    """P / Q as constant + scale N / D, coefficients rounded to float64."""
    constant = p[0].mid()
    n = [one - constant * other for one, other in zip(p, [*q, *[arb(0)] * (len(p) - len(q))], strict=True)]
    if not abs(n[1]) > LEAST:
        return None
    above, below = [float(one / n[1]) for one in n[2:]], [float(one) for one in q[1:]]
    if not np.isfinite([*above, *below]).all():
        return None
    return Fit(constant, n[1].mid(), origin, tuple(enumerate(above, 2)), tuple(enumerate(below, 1)))


def _positive(fit: Fit, left: float, right: float) -> bool:
    """Whether the denominator is, at many places."""
    s = np.linspace(left, right, 400) - fit.origin
    return bool((np.polyval(_dense(0, fit.below)[::-1], s) > 0).all())


def _proven(keys: Keys, plan: Sequence[Stretch], fits: Sequence[Fit], allowed: float, dtype: str) -> Series | None:
    """The series of these fits, the first of which rises; None where it errs by more than is allowed."""
    live = [k for k, fit in enumerate(fits) if fit.scale != 0]
    rising = [k for k in live if 1 / FOLDED < fits[k].scale < FOLDED]
    if not rising:
        return None
    first = min(rising, key=lambda k: fits[k].coefficients)
    scale = float(fits[first].scale)
    factors = [1.0 if k == first else float(fits[k].scale / scale) for k in range(len(fits))]
    size = [arb(scale) * arb(factor) for factor in factors]

    def at_rest(k: int, where: int) -> arb:
        """What piece k is beside its stretch, on stretch `where`."""
        return size[k] * fits[k].quotient(arb(plan[k].right if k < where else plan[k].left))

    shift = float(fits[first].constant - sum((at_rest(k, first) for k in live if k != first), arb(0)))
    constants = [
        arb(shift) + sum((at_rest(k, where) for k in live if k != where), arb(0)) for where in range(len(fits))
    ]
    low, high = plan[0].left, plan[-1].right
    clips = [
        (-math.inf if k == 0 else one.left, math.inf if k == len(plan) - 1 else one.right) for k, one in enumerate(plan)
    ]
    beside = tuple(
        Piece(fits[k].origin, *clips[k], fits[k].above, fits[k].below, factors[k]) for k in live if k != first
    )
    slopes, offsets, values = (tuple(one.tolist()) for one in keys)
    main, (start, end), unknown = fits[first], clips[first], math.inf
    found = Series(
        slopes, offsets, values, main.origin, start, end, main.above, scale, shift, unknown, unknown, main.below, beside
    )
    rounded, most = rounding(found, low, high, dtype)
    rounded = (scale * rounded + 6 * arithmetic_of(dtype).unit * most) * UP
    if not rounded < allowed:
        return None
    spans = [
        (arb(one.left), arb(one.right), _Quotient(fit, constant, size[k]))
        for k, (one, fit, constant) in enumerate(zip(plan, fits, constants, strict=True))
    ]

    def error(start: float, end: float) -> float:
        """Between two numbers."""
        some = [(max(a, arb(start)), min(b, arb(end)), f) for a, b, f in spans if a < end and b > start]
        floor = (allowed - rounded) / 2
        proof = prove_sup([Part.of(*keys, "float64")], 0.0, np.zeros(1), some, start, end, floor=floor)
        return (proof.bound + rounded) * UP

    turns = _turns(plan, low, high)
    edges = [low, *(end for turn in turns for end in turn), high]
    calm = 0.0
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        calm = max(calm, error(start, end)) if calm <= allowed else calm
    if not calm <= allowed:
        return None
    return replace(found, error=calm, turns=tuple((start, end, error(start, end)) for start, end in turns))


def _turns(plan: Sequence[Stretch], low: float, high: float) -> list[tuple[float, float]]:
    """Where clusters cross, as far as it is felt; none where that is most of a stretch."""
    found = []
    for one, other in pairwise(plan):
        gap = float(other.head.keys[0].min() - one.head.keys[0].max())
        near = TURNS / gap if gap > 0 else math.inf
        if low < one.right - near and one.right + near < high:
            found.append((one.right - near, one.right + near))
    return [] if any(b >= c for (_, b), (c, _) in pairwise(found)) else found
