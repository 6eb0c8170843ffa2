"""Softmaxes that are confined to an interval by gates.

A gate at k is one more anchor with a slope A steeper than the others and as heavy as all of them together
at k:

    logit_gate(s) = log sum_j exp z_j(k) + (mean slope at k -+ A)(s - k),   value g(k).

Beyond k it takes all the weight, and the head is constant there. The others keep their gauge, so A may be
huge; the error is about 0.28 |g'(k)| / A. Steep as a gate is, its rounding multiplies |g(s) - g(k)|, which
is small where it has weight.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anchorhead.heads.atom import Arrays
from anchorhead.heads.solver.pieces import Term

_BLUR = 0.1  # the most that rounding may move the logit of a gate at its own place
_SHARE = 0.02  # the part of the error allowed that a gate may cost


def steepness(rise: Callable[[np.ndarray], np.ndarray], width: float, allowed: float) -> float:
    """The smallest A with rise(d) exp(-A d) <= allowed for every distance d up to the width."""
    d = width * np.geomspace(1e-15, 1.0, 300)
    with np.errstate(divide="ignore"):
        needed = np.log(rise(d) / allowed) / d
    return float(max(needed.max(), 10 / width))


def sharpness(term: Term, at_low: bool, allowed: float) -> float:
    """How steep the gate at an end of the term has to be."""
    place, side = (term.low, 1.0) if at_low else (term.high, -1.0)

    def rise(d: np.ndarray) -> np.ndarray:
        return np.abs(term.g(place + side * d) - term.g(np.array([place]))).max(axis=1)

    return steepness(rise, term.high - term.low, _SHARE * allowed)


def read_at(arrays: Arrays, t: float) -> tuple[float, float, np.ndarray]:
    """log sum_j exp z_j(t), and the mean slope and the mean value there."""
    slopes, offsets, values = arrays
    z = slopes * t + offsets
    w = np.exp(z - z.max())
    return float(z.max() + np.log(w.sum())), float(w @ slopes / w.sum()), w @ values / w.sum()


def gated(inner: Arrays, term: Term, origin: float, allowed: float, cap: float, u: float) -> Arrays:
    """The inner anchors (for g less some constant, which the gates find from them) with the term's gates.

    The rounding of a gate's own logit, 2 u A |k - origin|, has to stay well below 1: where gate and anchors
    balance, a bound that knows each anchor alone multiplies it by their values.
    """
    slopes, offsets, values = inner
    out_slopes, out_offsets, out_values = list(slopes), list(offsets), list(values)
    for at_low, wanted in ((True, term.left), (False, term.right)):
        if not wanted:
            continue
        place = term.low if at_low else term.high
        level, mean, value = read_at(inner, place - origin)
        finest = _BLUR / (u * max(abs(place - origin), 1e-300))
        steep = min(sharpness(term, at_low, allowed), cap, finest)
        slope = mean - steep if at_low else mean + steep
        out_slopes.append(slope)
        out_offsets.append(level - slope * (place - origin))
        out_values.append(value)
    return np.array(out_slopes), np.array(out_offsets), np.array(out_values)
