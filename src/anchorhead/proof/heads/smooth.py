"""Smooth heads as quotients of polynomials, which cost an operation a coefficient where softmaxes cost exponentials.

A softmax mean r of few keys is analytic up to the zeros of its denominator, which come in pairs. So quotients of
polynomials are soon close to it: about as many coefficients as it has numbers, and some for the digits. With p + q + 1
nodes, those of Chebyshev on [low, high],

    P - r Q = 0   at every node,      deg P = p, deg Q = q, q even and at most p,  Q(origin) = 1,

are linear equations, solved here in balls of many digits. With shift = P(origin) and scale the coefficient of s in
P - shift Q that is the Series

    q = (P - shift Q) / (scale Q).

The fewest coefficients are taken whose error between the nodes is within what is allowed, and `prove_sup` bounds that
error everywhere, of the coefficients as they are stored.

Rounding, on a piece of the interval (s = t - origin, |s| <= S): by Horner's rule c_j s^j has j roundings from s, j from
products, one from c_j and at most j + 1 from sums. So N and D are off by e = sum_j gamma_(3j + 2) |c_j| S^j each, and q
by (e_N + |q| e_D) / (D - e_D) and a rounding more. Where the map behind takes q, with scale and shift in its weights
and its bias, that adds 6u of |scale q| + |shift|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from flint import acb, acb_poly, arb, arb_mat

from anchorhead.heads.atom import Part
from anchorhead.language.expressions.precision import precision
from anchorhead.network.direct import Series
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic, arithmetic_of
from anchorhead.proof.enclosures.analytic import prove_sup
from anchorhead.proof.remembered import remembered

BITS = 500
"""Of the balls in which equations are solved: 40 nodes make them ill-conditioned."""
MAX_COEFFICIENTS = 40
STEEP = 100.0
"""By how much logits may differ for a head to be smooth: poles are as close as these are steep."""
WORTH = 8
"""Coefficients that take as long as the exponential of one key."""
PIECES = 400
FOLDED = 2.0**30
"""Scales outside of [1/FOLDED, FOLDED] are no heads that anybody has."""
Keys = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Slopes, offsets and values, in float64."""


@remembered(64)
def smooth(keys: Keys, low: float, high: float, allowed: float, dtype: str) -> Series | None:
    """The shortest series of a head for t in [low, high] that errs by no more than is allowed, if there is one that is
    worth it."""
    if np.ptp(keys[0]) * (high - low) > STEEP:
        return None
    with precision(BITS):
        head = Head(keys)
        origin = head.origin(low, high, dtype)
        if origin is None:
            return None
        counts = range(4, min(MAX_COEFFICIENTS, WORTH * len(keys[0])) - 1)
        for count, below in ((count, 2 * (count // 4) - less) for count in counts for less in (0, 2)):
            found = _fitted(head, origin, low, high, count, below) if below else None
            if found is None or head.furthest(partial(_value, found), low, high, count + 1) > allowed:
                continue
            error = _error(found, keys, low, high, allowed, dtype)
            if error <= allowed:
                return replace(found, reach=min(origin - low, high - origin), error=error)
    return None


def magnitude(found: Series, low: float, high: float, dtype: str) -> float:
    """A bound on |scale q| + |shift|, as computed for t in [low, high]."""
    return rounding(found, low, high, dtype)[1]


@dataclass(frozen=True, eq=False)
class Head:
    keys: Keys

    def __call__(self, t: arb) -> arb:
        weights, _ = self._weights(t)
        read = sum((arb(v) * w for v, w in zip(self.keys[2].tolist(), weights, strict=True)), arb(0))
        return read / sum(weights, arb(0))

    def log_sum(self, t: arb) -> arb:
        """The logarithm of the sum of all exponentials."""
        weights, top = self._weights(t)
        return sum(weights, arb(0)).log() + top

    def _weights(self, t: arb) -> tuple[list[arb], float]:
        """exp of all logits less a number, and that."""
        logits = [arb(a) * t + arb(g) for a, g in zip(*(one.tolist() for one in self.keys[:2]), strict=True)]
        top = max(float(one) for one in logits)
        return [(one - top).exp() for one in logits], top

    def origin(self, low: float, high: float, dtype: str) -> float | None:
        """0, or a number of the dtype in the middle, where the head rises: scales are positive."""
        width = high - low
        places = [0.0, *(low + width * part for part in (0.5, 0.625, 0.375, 0.75, 0.25))]
        for place in (float(np.dtype(dtype).type(one)) for one in places):
            if low < place < high:
                step = arb(width * 2.0**-40)
                rise = (self(place + step) - self(place - step)) / (2 * step)
                if rise > 1 / FOLDED:
                    return place
        return None

    def furthest(self, follows: Callable[[arb], arb], low: float, high: float, count: int) -> float:
        """The largest error at so many nodes and the ends."""
        places = (arb(low), *nodes(low, high, count), arb(high))
        return max(abs(float(follows(t) - self(t))) for t in places)


def nodes(low: float, high: float, count: int) -> list[arb]:
    """Chebyshev's; those of one more lie between these."""
    middle, half = (arb(low) + arb(high)) / 2, (arb(high) - arb(low)) / 2
    return [middle + half * ((arb(2 * k + 1) * arb.pi()) / (2 * count)).cos() for k in range(count)]


def fitted(
    head: Head, origin: float, low: float, high: float, count: int, below: int
) -> tuple[list[arb], list[arb]] | None:
    """P and Q with count + 1 numbers, so many of them below, from power 0 on; None where there are none."""
    above = count - below
    rows, right = [], []
    for t in nodes(low, high, count + 1):
        value, s = head(t), t - arb(origin)
        powers = [arb(1)]
        for _ in range(max(above, below)):
            powers.append(powers[-1] * s)
        rows.append([*powers[: above + 1], *(-value * power for power in powers[1 : below + 1])])
        right.append([value])
    try:
        solved = arb_mat(rows).solve(arb_mat(right)).entries()
    except ZeroDivisionError:
        return None
    return solved[: above + 1], [arb(1), *solved[above + 1 :]]


def _fitted(head: Head, origin: float, low: float, high: float, count: int, below: int) -> Series | None:
    """None where there is none, or the denominator is not positive."""
    solved = fitted(head, origin, low, high, count, below)
    if solved is None:
        return None
    p, q = solved[0], [*solved[1], *[arb(0)] * (count - 2 * below)]
    shift = p[0].mid()
    n = [one - shift * other for one, other in zip(p, q, strict=True)]
    scale = float(n[1])
    numbers = [float(one / n[1]) for one in n[2:]], [float(one) for one in q[1 : below + 1]]
    if not 1 / FOLDED < scale < FOLDED or not np.isfinite([*numbers[0], *numbers[1]]).all():
        return None
    s = np.linspace(low, high, PIECES) - origin
    if not (np.polyval([*reversed(numbers[1]), 1.0], s) > 0).all():
        return None
    powers, others = (tuple(enumerate(one, start)) for one, start in zip(numbers, (2, 1), strict=True))
    slopes, offsets, values = (tuple(one.tolist()) for one in head.keys)
    ends = -math.inf, math.inf
    return Series(slopes, offsets, values, origin, *ends, powers, scale, float(shift), 0.0, math.inf, others)


def _polynomials(found: Series) -> tuple[list[float], list[float]]:
    """The coefficients of N and of D, from power 0 on."""
    return [0.0, 1.0, *(c for _, c in found.coefficients)], [1.0, *(d for _, d in found.below)]


def _value(found: Series, t: arb) -> arb:
    return _OnBalls(found)(acb(t)).real


@dataclass(frozen=True, eq=False)
class _OnBalls:
    """shift + scale N / D of t."""

    found: Series

    def __call__(self, t: acb) -> acb:
        above, below = (acb_poly(one)(t - self.found.origin) for one in _polynomials(self.found))
        return above / below * self.found.scale + self.found.shift

    @property
    def operations(self) -> int:
        return 2 * len(self.found.coefficients) + 4


def _error(found: Series, keys: Keys, low: float, high: float, allowed: float, dtype: str) -> float:
    """A bound on |computed - r| for every t between low and high, folding included."""
    rounded, size = rounding(found, low, high, dtype)
    rounded = (abs(found.scale) * rounded + 6 * arithmetic_of(dtype).unit * size) * UP
    if not rounded <= allowed:
        return math.inf
    part = Part.of(*keys, "float64")
    pieces = [(arb(low), arb(high), _OnBalls(found))]
    proof = prove_sup([part], 0.0, np.zeros(1), pieces, low, high, floor=(allowed - rounded) / 2)
    return (proof.bound + rounded) * UP


def rounding(found: Series, low: float, high: float, dtype: str) -> tuple[float, float]:
    """Bounds on how far q is off as computed, and on |scale q| + |shift|; infinite where a piece may have D = 0."""
    arithmetic, n = arithmetic_of(dtype), len(found.beside)
    alone = [replace(found, **vars(one) | {"beside": ()}) for one in found.beside]
    rows = [(1.0, *_quotient(found, low, high, arithmetic))]
    rows += [(abs(one.scale), *_quotient(one, low, high, arithmetic)) for one in alone]
    sizes, offs = (sum(factor * one[k] for factor, *one in rows) for k in (0, 1))
    offs = offs + bool(n) * (float(arithmetic.gamma(n + 2)) * (sizes + offs) + 4 * n * arithmetic.tiny)
    return offs * UP, (abs(found.scale) * (sizes + offs) + abs(found.shift)) * UP


def _quotient(found: Series, low: float, high: float, arithmetic: Arithmetic) -> tuple[float, float]:
    """Bounds on |N / D|, and on how far it is off."""
    start, end = (min(max(t, found.low), found.high) for t in (low, high))
    edges = np.linspace(start, end, PIECES + 1) - found.origin
    s, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2 * (1 + 1e-9)
    far = np.abs(s) + half
    (above, n_off, n_wide), (below, d_off, d_wide) = (
        _polynomial(one, s, half, far, arithmetic) for one in _polynomials(found)
    )
    least = below - d_wide - d_off
    if not (least > 0).all():
        return math.inf, math.inf
    q = (np.abs(above) + n_wide) / least
    off = (n_off + q * d_off) / least
    off = off + arithmetic.unit * (q + off) + 1e4 * arithmetic.tiny
    return float(q.max()) * UP, float(off.max()) * UP


def _polynomial(
    coefficients: Sequence[float], s: np.ndarray, half: np.ndarray, far: np.ndarray, arithmetic: Arithmetic
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At s; how far it is off as computed; how far from that it is on the piece."""
    n = len(coefficients)
    sizes = np.abs(coefficients)[:, None] * far ** np.arange(n)[:, None]
    rounded = (arithmetic.gamma(3 * np.arange(n) + 2)[:, None] * sizes).sum(axis=0)
    lost = 16 * n * arithmetic.tiny * (1 + far) ** n * (1 + np.abs(coefficients).sum())
    first = [p * c for p, c in enumerate(coefficients)][1:]
    second = [p * c for p, c in enumerate(first)][1:]
    own = 1e-14 * n
    slope = np.abs(np.polyval(first[::-1], s)) + own * np.polyval(np.abs(first)[::-1], far)
    wide = half * slope + half**2 / 2 * np.polyval(np.abs(second)[::-1], far)
    return np.polyval(coefficients[::-1], s), rounded + lost, wide + own * sizes.sum(axis=0)
