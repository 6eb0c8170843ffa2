"""Quotients of polynomials: those that take the values of a function at nodes, and what they round by.

With p + q + 1 nodes, those of Chebyshev on [low, high],

    P - f Q = 0   at every node,      deg P = p, deg Q = q,  Q(origin) = 1,

are linear equations, solved here in balls of many digits.

Rounding, on a piece of the interval (s = t - origin, |s| <= S): by Horner's rule c_j s^j has j roundings from s, j from
products, one from c_j and at most j + 1 from sums. So N and D are off by e = sum_j gamma_(3j + 2) |c_j| S^j each, and q
by (e_N + |q| e_D) / (D - e_D) and a rounding more. Of a sum of pieces n beside the first are rounded by gamma_(n + 2)
of all sizes: their scales, products and sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from flint import arb, arb_mat

from anchorhead.network.direct import Series
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic, arithmetic_of

PIECES = 400


def nodes(low: float, high: float, count: int) -> list[arb]:
    """Chebyshev's; those of one more lie between these."""
    middle, half = (arb(low) + arb(high)) / 2, (arb(high) - arb(low)) / 2
    return [middle + half * ((arb(2 * k + 1) * arb.pi()) / (2 * count)).cos() for k in range(count)]


def fitted(
    follow: Callable[[arb], arb], origin: float, low: float, high: float, count: int, below: int
) -> tuple[list[arb], list[arb]] | None:
    """P and Q with count + 1 numbers, so many of them below, from power 0 on; None where there are none, or many."""
    above = count - below
    rows, right = [], []
    for t in nodes(low, high, count + 1):
        value, s = follow(t), t - arb(origin)
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


def magnitude(found: Series, low: float, high: float, dtype: str) -> float:
    """A bound on |scale q| + |shift|, as computed for t in [low, high]."""
    return rounding(found, low, high, dtype)[1]


def rounding(found: Series, low: float, high: float, dtype: str) -> tuple[float, float]:
    """Bounds on how far q is off as computed, and on |scale q| + |shift|; infinite where a piece may have D = 0, or
    where a power, or a coefficient times one, is not far below the largest number of the dtype."""
    arithmetic, n = arithmetic_of(dtype), len(found.beside)
    most = float(np.finfo(dtype).max) / 8
    alone = [replace(found, **vars(one) | {"beside": ()}) for one in found.beside]
    rows = [(1.0, *_quotient(found, low, high, arithmetic, most))]
    rows += [(abs(one.scale), *_quotient(one, low, high, arithmetic, most)) for one in alone]
    sizes, offs = (sum(factor * one[k] for factor, *one in rows) for k in (0, 1))
    offs = offs + bool(n) * (float(arithmetic.gamma(n + 2)) * (sizes + offs) + 4 * n * arithmetic.tiny)
    return offs * UP, (abs(found.scale) * (sizes + offs) + abs(found.shift)) * UP


def _polynomials(found: Series) -> tuple[list[float], list[float]]:
    """The coefficients of N and of D, from power 0 on."""
    return [0.0, 1.0, *(c for _, c in found.coefficients)], [1.0, *(d for _, d in found.below)]


def _quotient(found: Series, low: float, high: float, arithmetic: Arithmetic, most: float) -> tuple[float, float]:
    """Bounds on |N / D|, and on how far it is off; most: of numbers on the way."""
    start, end = (min(max(t, found.low), found.high) for t in (low, high))
    edges = np.linspace(start, end, PIECES + 1) - found.origin
    s, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2 * (1 + 1e-9)
    far = np.abs(s) + half
    for one in _polynomials(found):
        sizes = far.max() ** np.arange(len(one))
        if not max(sizes.max(), (np.abs(one) * sizes).sum(), np.abs(one).sum()) < most:
            return math.inf, math.inf
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
