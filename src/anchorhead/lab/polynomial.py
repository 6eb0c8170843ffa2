"""The best polynomial in the sup norm, by Remez's exchange on a fixed set of points.

On p + 1 reference points the polynomial with p coefficients whose error alternates, +E, -E, +E, ..., is found
by solving p + 1 linear equations. By de la Vallée Poussin no polynomial errs by less than |E| on all points.
The extrema of its error, one from each run of one sign, are the next reference, until the largest is |E|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy.polynomial import chebyshev

_EXCHANGES = 100
_CLOSE = 1e-6  # how far above the lower bound the error may end

_SKEW = 0.1  # on a symmetric reference, even targets have E = 0, and no next reference follows


@dataclass(frozen=True)
class BestPolynomial:
    """error: the largest on the points; least: no polynomial with as many coefficients errs by less."""

    error: float
    least: float


def best_polynomial(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], coefficients: int) -> BestPolynomial:
    """The best polynomial with so many coefficients for values y at ascending points x of [-1, 1]."""
    if coefficients == 1:
        return BestPolynomial(float(np.ptp(y)) / 2, float(np.ptp(y)) / 2)
    basis = chebyshev.chebvander(x, coefficients - 1)
    spread = -np.cos(np.pi * np.arange(coefficients + 1) / coefficients)
    spread += _SKEW * (1 - spread**2)
    reference = np.unique(np.abs(x[:, None] - spread).argmin(axis=0))
    signs = (-1.0) ** np.arange(coefficients + 1)
    error, least = float(np.abs(y).max()), 0.0
    for _ in range(_EXCHANGES):
        if len(reference) <= coefficients:
            break
        equations = np.column_stack([basis[reference], signs])
        *found, level = np.linalg.lstsq(equations, y[reference], rcond=None)[0]
        residual = y - basis @ np.array(found)
        error, least = min(error, float(np.abs(residual).max())), max(least, abs(float(level)))
        if error <= (1 + _CLOSE) * least:
            break
        reference = _extrema(residual, coefficients + 1)
    return BestPolynomial(error, least)


def _extrema(residual: Float[np.ndarray, " n"], count: int) -> Int[np.ndarray, " k"]:
    """Alternating extrema, `count` of them around the largest; fewer where the sign changes less often."""
    runs = np.split(np.arange(len(residual)), np.flatnonzero(np.diff(np.sign(residual)) != 0) + 1)
    places = np.array([run[np.abs(residual[run]).argmax()] for run in runs])
    while len(places) > count:
        sizes = np.abs(residual[places])
        if len(places) > count + 1:
            # an inner extremum goes together with its smaller neighbour, so that signs still alternate
            k = int(sizes.argmin())
            if 0 < k < len(places) - 1:
                places = np.delete(places, [k, k - 1 if sizes[k - 1] < sizes[k + 1] else k + 1])
                continue
        places = places[1:] if sizes[0] < sizes[-1] else places[:-1]
    return places
