"""Differences of logits in twice float64's precision."""

from __future__ import annotations

import numpy as np

from anchorhead.verify.rounding import OWN_UNIT


def gaps(slopes: np.ndarray, offsets: np.ndarray, t: np.ndarray, top: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a_top - a_k) t + g_top - g_k in twice float64's precision, and bounds on its error: where slopes are steep,
    logits are so large that float64 says nothing of their differences.

    Sums and products are split into what float64 holds and the exact rest (Knuth, Dekker); rests are summed plainly.
    """
    a, g = (np.broadcast_to(one, np.broadcast_shapes(one.shape, t.shape)) for one in (slopes, offsets))
    heaviest = top[..., None]
    rise, rise_rest = exact_sum(np.take_along_axis(a, heaviest, axis=-1), -a)
    lift, lift_rest = exact_sum(np.take_along_axis(g, heaviest, axis=-1), -g)
    steep, steep_rest = _product(rise, t)
    total, rest = exact_sum(steep, lift)
    gap = total + (rest + (steep_rest + lift_rest + rise_rest * t))
    size = np.abs(steep) + np.abs(lift) + np.abs(a * t) + np.abs(g)
    return gap, 8 * OWN_UNIT * (np.abs(gap) + 8 * OWN_UNIT * size) + 2.0**-1000


def exact_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + b as a float64 and the exact rest."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a b as a float64 and the exact rest, where nothing over- or underflows."""
    total = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return total, ((a1 * b1 - total) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a as a sum of two numbers of 26 bits."""
    scaled = a * 134_217_729.0
    high = scaled - (scaled - a)
    return high, a - high
