"""The largest |p| on a box, p the polynomial in several variables through given values at tensor Chebyshev points.

With n_j the degree in x_j, p = sum_i a_i T_i. Coefficients that are small are dropped: |p - p'| <= sum of the dropped
|a_i|, which leaves degrees m_j, far lower where p stems from cautious remainders. By Ehlich and Zeller's theorem (see
ellipse.py), used for one variable after the other,

    sup |p'| <= max |p'| / cos(pi / (2K))^d,     the maximum over the tensor grid of cos(i pi / (K m_j)).

Rounding. Cosines are right to u = 2^-53. A coefficient is a sum over axes of matrices (2/n) h_i h_k cos(i k pi / n),
whose rows add up to at most 2 in absolute value; it errs by at most e = 1.01 sum_j (n_j + 12) u 2^d max |values|.
Evaluating p' errs by at most 1.01 sum_j (m_j + 8) u sum_i |a_i|, in any order of summation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.heads.grids.grid_atom import contract
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.ellipse import cosines, transform

MAX_FINE = 100_000_000
NEGLIGIBLE = (0.002, 0.006, 0.02, 0.05)
"""Shares of the largest value that dropped coefficients may add up to: the more, the finer a grid is affordable."""
_OVERSAMPLING = (4, 6, 8, 11, 16)
_SLAB = 2_000_000
_UNIT = 2.0**-53


@dataclass(frozen=True)
class Largest:
    """bound: |p| <= bound on the box.  found: |p| is at least this at the point `at` of [-1, 1]^d, rounded.
    points: at how many p was evaluated for it."""

    bound: float
    found: float
    at: tuple[float, ...]
    points: int


def largest_on_box(values: Float[np.ndarray, "..."], degrees: Sequence[int], enough: float = 0.0) -> Largest:
    """The largest |p|, from values (n_1 + 1, …, n_d + 1) at cos(k pi / n_j); no finer than to be below `enough`."""
    d, size = len(degrees), float(np.abs(values).max())
    coefficients = contract(values, [transform(n) for n in degrees])
    error = 1.01 * sum(n + 12 for n in degrees) * _UNIT * 2.0**d * size
    sizes = np.abs(coefficients)
    total = float(sizes.sum())
    _, kept, dropped = min(
        (_loose(kept, size) + dropped, kept, dropped)
        for share in NEGLIGIBLE
        for kept in [tuple(_kept(sizes, j, share * size / d) for j in range(d))]
        for dropped in [max(total - float(sizes[_low(kept)].sum()), 0.0) + 1e-12 * total]
    )
    rounding = coefficients.size * error + 1.01 * sum(m + 8 for m in kept) * _UNIT * total

    def largest(oversampling: int) -> Largest:
        found, place = _on_grid(coefficients[_low(kept)], [cosines(m, oversampling) for m in kept])
        bound = (found + rounding) / math.cos(math.pi / (2 * oversampling)) ** d + dropped + rounding
        at = tuple(math.cos(i * math.pi / (oversampling * m)) for i, m in zip(place, kept, strict=True))
        return Largest(bound * UP, (found - dropped - rounding) / UP, at, _points(kept, oversampling))

    rough = largest(_OVERSAMPLING[0])
    if rough.bound <= enough:
        return rough
    return min(rough, largest(_finest(kept)), key=lambda one: one.bound)


def _low(degrees: Sequence[int]) -> tuple[slice, ...]:
    """The coefficients up to these degrees."""
    return tuple(slice(m + 1) for m in degrees)


def _finest(degrees: Sequence[int]) -> int:
    """The finest oversampling that is affordable."""
    return next((k for k in reversed(_OVERSAMPLING) if _points(degrees, k) <= MAX_FINE), _OVERSAMPLING[0])


def _loose(degrees: Sequence[int], size: float) -> float:
    """By about how much a bound exceeds the largest value."""
    return size * (math.cos(math.pi / (2 * _finest(degrees))) ** -len(degrees) - 1)


def _kept(sizes: np.ndarray, axis: int, allowed: float) -> int:
    """The lowest degree, at least 1, beyond which the coefficients along an axis add up to no more than allowed."""
    along = sizes.sum(axis=tuple(i for i in range(sizes.ndim) if i != axis))
    beyond = np.cumsum(along[::-1])[::-1]
    large = np.flatnonzero(beyond > allowed)
    return max(1, int(large[-1]) if len(large) else 0)


def _points(degrees: Sequence[int], oversampling: int) -> int:
    return math.prod(oversampling * m + 1 for m in degrees)


def _on_grid(coefficients: np.ndarray, matrices: Sequence[np.ndarray]) -> tuple[float, tuple[int, ...]]:
    """The largest |value| and its indices, a slab at a time."""
    inner = contract(np.moveaxis(coefficients, 0, -1), matrices[1:])
    flat, last = inner.reshape(-1, inner.shape[-1]), np.ascontiguousarray(matrices[0].T)
    step = max(1, _SLAB // last.shape[1])
    best, place = -1.0, (0, 0)
    for start in range(0, len(flat), step):
        slab = np.abs(flat[start : start + step] @ last)
        row, column = np.unravel_index(int(slab.argmax()), slab.shape)
        if slab[row, column] > best:
            best, place = float(slab[row, column]), (start + int(row), int(column))
    others = np.unravel_index(place[0], inner.shape[:-1])
    return best, (place[1], *(int(i) for i in others))
