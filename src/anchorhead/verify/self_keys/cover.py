"""The largest |g| on an interval, from g's Taylor polynomial and its last coefficient on the whole interval; covers.

For x = c + t, |t| <= r, Taylor's theorem gives g(x) = sum_(k<n) g_k t^k + R t^n, where g_k = g^(k)(c) / k! and R lies
in the enclosure of g^(n) / n! on the whole interval (arb_series over a ball). The quadratic part is bounded at its ends
and its vertex, the others by |g_k| r^k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, hull
from anchorhead.verify.errors import NotVerified

MAX_CELLS = 200_000


def taylor_bound(series: Callable[[arb], Any], low: float, high: float, order: int) -> float:
    """A bound on |g| on [low, high]; series(s): at least order + 1 coefficients of g(s + t), s a point or a ball."""
    centre = low / 2 + high / 2
    r = (arb(high) - centre).max(arb(centre) - low)
    rest = series(hull(low, high))[order]
    if not rest.is_finite():
        return math.inf
    near = series(arb(centre))
    total = abs(rest) * r**order
    for k in range(3, order):
        total += abs(near[k]) * r**k
    return (above(total) + quadratic(near[0], near[1], near[2], r)) * (1 + 1e-15)


def quadratic(a: arb, b: arb, c: arb, r: arb) -> float:
    """A bound on |a + b t + c t^2| for |t| <= r: at an end, or where the slope vanishes."""
    whole, ends = above(abs(a) + abs(b) * r + abs(c) * r**2), above(abs(a + c * r**2) + abs(b) * r)
    if c.contains(0):
        return whole
    return min(whole, ends if abs(b) > 2 * abs(c) * r else max(ends, above(abs(a - b**2 / (4 * c)))))


def cover(
    bound: Callable[[float, float], float], cells: Sequence[tuple[float, float]], stated: float, dtype: str
) -> int:
    """Halves cells until bound(low, high) <= stated on each; their number. Raises where that does not come about.

    Only numbers of the dtype count: where a cell holds no more than two, they are taken one by one.
    """
    left, done = list(cells), 0
    while left:
        low, high = left.pop()
        done += 1
        found = bound(low, high)
        if found <= stated:
            continue
        middle = low / 2 + high / 2
        few = _numbers_in(low, high, dtype)
        hopeless = done % 16 == 0 and few is None and bound(middle, middle) > stated
        if hopeless or done > MAX_CELLS or (few is not None and any((found := bound(s, s)) > stated for s in few)):
            raise NotVerified(
                f"a bound of {stated:.6g} does not follow: on [{low:.17g}, {high:.17g}] only {found:.6g} can be shown"
            )
        if few is None:
            left += list(pairwise([low, *(_powers_of_two(low, high) or [middle]), high]))
    return done


def _numbers_in(low: float, high: float, dtype: str) -> list[float] | None:
    """The numbers of the dtype in a cell, if there are at most two."""
    kind = np.dtype(dtype).type
    first, last = kind(low), kind(high)
    first = np.nextafter(first, kind(np.inf)) if float(first) < low else first
    last = np.nextafter(last, kind(-np.inf)) if float(last) > high else last
    if last > np.nextafter(first, kind(np.inf)):
        return None
    return sorted({float(x) for x in (first, last) if low <= float(x) <= high})


def _powers_of_two(low: float, high: float) -> list[float]:
    """Those inside an interval of one sign whose ends differ by a factor above 4: it spans scales."""
    if low * high <= 0 or 0.25 <= low / high <= 4:
        return []
    least, most = sorted((abs(low), abs(high)))
    powers = [2.0**k for k in range(math.frexp(least)[1], math.frexp(most)[1])]
    return sorted(math.copysign(x, low) for x in powers if least < x < most)
