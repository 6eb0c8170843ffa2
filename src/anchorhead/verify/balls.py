"""Arb's balls, and the way from and to float64: every float is taken exactly, every bound is rounded outwards."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flint import arb, arb_series, ctx

from anchorhead.verify.errors import require

PRECISION = 128
"""Bits of every ball. Logits of 1e12 and weights of 1e-30 leave 60 bits and more of what is compared."""
_LOCK = threading.RLock()


@contextmanager
def precision(bits: int = PRECISION, cap: int = 16) -> Iterator[None]:
    """Balls of so many bits and series of at most `cap` coefficients inside; python-flint has one setting for all."""
    with _LOCK:
        before = ctx.prec, ctx.cap
        ctx.prec, ctx.cap = bits, cap
        try:
            yield
        finally:
            ctx.prec, ctx.cap = before


def coefficient(series: arb_series, n: int) -> arb:
    """Coefficient n, which must be known: python-flint gives 0 for those that it has cut off."""
    require(series.prec > n, f"a series was cut off before coefficient {n}")
    return series[n]


def exact(value: float) -> arb:
    """A float64 as the number that it is."""
    return arb(float(value))


def hull(low: float, high: float) -> arb:
    """A ball that holds [low, high]."""
    return arb(float(low)).union(arb(float(high)))


def above(ball: arb) -> float:
    """A float64 that no number of the ball exceeds; infinite where nothing is known."""
    if not ball.is_finite():
        return math.inf
    return math.nextafter(float(ball.upper()), math.inf)


def below(ball: arb) -> float:
    """A float64 that no number of the ball falls below."""
    if not ball.is_finite():
        return -math.inf
    return math.nextafter(float(ball.lower()), -math.inf)


def size(ball: arb) -> float:
    """A float64 that bounds the absolute value of every number of the ball."""
    return max(above(ball), -below(ball))
