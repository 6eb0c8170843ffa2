"""Polynomials in several variables by Chebyshev coefficients, in float64: from values, and bounded.

Lemma. Let p be a polynomial on [-1, 1]^d and G the tensor grid of q_j even steps along axis j, ends included. Then

    sup |p| <= max_G |p| + sum_j (2 / q_j)^2 / 8 sup |d^2 p / dx_j^2|.

Proof. Let I_j interpolate along axis j, linearly between the grid's points: |I_j g| <= sup |g|, and |g - I_j g| <=
(step^2 / 8) sup |d_j^2 g|. With p - I_1 … I_d p = sum_j I_1 … I_(j-1) (p - I_j p) the claim follows, because |I_1 …
I_d p| is at most the largest |p| on the grid. Second derivatives are bounded by sums of their coefficients' sizes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb
from numpy.polynomial import chebyshev

from anchorhead.verify.balls import exact
from anchorhead.verify.rounding import OWN_UNIT, SLACK

MAX_POINTS = 1_000_000


def contract(tensor: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    """One matrix (n_j, p_j) for each of the first axes."""
    for j, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, j)), 0, j)
    return tensor


def floats(balls: Any) -> tuple[np.ndarray, np.ndarray]:
    """Balls as float64 numbers, and how far these may be off."""
    middle = np.asarray(_MIDDLES(balls), np.float64)
    return middle, np.asarray(np.asarray(_RADII(balls), np.float64) + 2 * OWN_UNIT * np.abs(middle))


_MIDDLES = np.frompyfunc(lambda ball: float(ball.mid()), 1, 1)
_RADII = np.frompyfunc(lambda ball: float(ball.rad()), 1, 1)  # of 30 bits


def chebyshev_points(low: float, high: float, n: int) -> list[arb]:
    """The zeros of T_n on an interval."""
    centre, half = (exact(low) + exact(high)) / 2, (exact(high) - exact(low)) / 2
    return [centre + half * (arb.pi() * (2 * k + 1) / (2 * n)).cos() for k in range(n)]


@lru_cache(maxsize=64)
def cosines(n: int) -> np.ndarray:
    """cos(i pi (k + 1/2) / n), i, k < n, each within 8 units of round-off: angles are reduced to a period first."""
    angles = np.outer(np.arange(n), 2 * np.arange(n) + 1) % (4 * n)
    return np.cos(angles * (math.pi / (2 * n)))


def from_values(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients from values (n_1, …, n_d) at the zeros of T_(n_j), and a bound on the sum of their errors.

    A row of the transform adds up to at most 2 in size, and a coefficient passes one of n_j terms for each axis.
    """
    counts = values.shape
    matrices = [cosines(n) * (np.where(np.arange(n) > 0, 2.0, 1.0) / n)[:, None] for n in counts]
    found = contract(values, matrices)
    error = sum(n + 24 for n in counts) * OWN_UNIT * 2.0 ** len(counts) * float(np.abs(values).max()) * found.size
    return found, error * SLACK


def largest(p: np.ndarray, goal: float) -> tuple[float, float, int]:
    """The largest |p| that is met on a grid, a bound on |p| over [-1, 1]^d, and the axis along which p bends most.

    The lemma with ever finer grids, until the bound is at most `goal`, or more than that is met, or a grid would have
    too many points.
    """
    d, total = p.ndim, float(np.abs(p).sum()) * SLACK
    bends = [float(np.abs(chebyshev.chebder(p, 2, axis=j)).sum()) if p.shape[j] > 2 else 0.0 for j in range(d)]
    most, bound, room, worst = 0.0, total, goal / 3, int(np.argmax(bends))
    noise = sum(n * n + 8 for n in p.shape) * OWN_UNIT * total
    for _ in range(8):
        if not bound > goal > most:
            break
        steps = [max(1, math.ceil(math.sqrt(d * bend / (2 * room)))) for bend in bends]
        if math.prod(q + 1 for q in steps) > MAX_POINTS:
            break
        axes = [np.linspace(-1, 1, q + 1) for q in steps]
        values = contract(p, [chebyshev.chebvander(x, n - 1) for x, n in zip(axes, p.shape, strict=True)])
        most = float(np.abs(values).max()) + noise
        bound = min(bound, (most + sum(b / (2 * q * q) for b, q in zip(bends, steps, strict=True))) * SLACK)
        room = min(0.95 * (goal - most), room / 2)
    return most, bound, worst
