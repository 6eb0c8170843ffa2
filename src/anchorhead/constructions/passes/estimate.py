"""About how many anchors a head will take, before it is solved for.

A function that takes D more Chebyshev polynomials for every digit takes about 0.42 (1 + ln D) more anchors for it, as
was found of logarithms on [1, 2] to [1, 500], sines, Gaussians and activations. Good enough to compare forms and to
share an error; nothing else hangs on it.
"""

from __future__ import annotations

from functools import lru_cache
from math import log, log10

import numpy as np

from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.heads.atom import Part
from anchorhead.language.expressions.expression import Expression
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.enclosures.ranges import range_of
from anchorhead.proof.heads.activation_head import ActivationHead

POINTS = 256
DIGITS = 6.0
ROUNDING = 8
"""A head rounds by about so many units of the largest number that it reads."""


@lru_cache(maxsize=1024)
def anchors_for_a_digit(function: Expression, low: float, high: float) -> float:
    """By how many anchors a head grows for every digit of its error."""
    return 0.42 * (1 + log(max(_degree(function, low, high) / DIGITS, 1.0)))


def anchors_for(function: Expression, low: float, high: float, error: float) -> int:
    """About how many anchors a head takes on [low, high] within an error."""
    size = _size(function, low, high)
    digits = log10(size / error) if size > error > 0 else 0.0
    return 2 + round(anchors_for_a_digit(function, low, high) * digits)


def _values(function: Expression, low: float, high: float) -> np.ndarray:
    """At the points cos(pi j / POINTS) of the interval, brought to it."""
    x = np.cos(np.pi * np.arange(POINTS + 1) / POINTS)
    with np.errstate(all="ignore"):
        y = np.asarray(function.values({"x": low + (high - low) * (1 + x) / 2}), np.float64)
    return np.broadcast_to(np.where(np.isfinite(y), y, 0.0), x.shape)


def _size(function: Expression, low: float, high: float) -> float:
    """Half of how much the function varies."""
    return float(np.ptp(_values(function, low, high))) / 2


def _degree(function: Expression, low: float, high: float) -> int:
    """The degree up to which Chebyshev coefficients are more than 10^-DIGITS of the largest."""
    y = _values(function, low, high)
    coefficients = np.abs(np.fft.rfft(np.concatenate([y, y[-2:0:-1]])))[1:]
    seen = np.flatnonzero(coefficients > 10.0**-DIGITS * coefficients.max(initial=0.0))
    return int(seen.max(initial=0)) + 1


class Guesses(ActivationHeads):
    """Shapes as large as they are likely to be, of which nothing is solved for."""

    def _solved(
        self, activation: Expression, interval: tuple[float, float], error: float, degree: float | None
    ) -> ActivationHead:
        size = float(np.abs(range_of(activation, np.array(interval[:1]), np.array(interval[1:]))).max())
        rounding = ROUNDING * arithmetic_of(self.dtype).unit * size
        anchors = np.zeros(anchors_for(activation, *interval, error))
        part = Part.of(anchors, anchors, np.full((len(anchors), 1), size), self.dtype)
        return ActivationHead(activation, *interval, (part,), max(error - rounding, 0.0), rounding, degree=degree)
