"""Polynomials in several variables by Chebyshev coefficients, in float64: from values, and bounded.

Lemma. Let p be a polynomial on [-1, 1]^d, x_j = cos t_j, and G the tensor grid of q_j even steps from 0 to pi in t_j.
Then, with D_j = d^2 / dt_j^2 and e_j = (pi / q_j)^2 / 8,

    sup |p| <= max_G |p| + sum_j e_j sup |D_j p|.

Proof. Let I_j interpolate along axis j, linearly in t_j between the grid's points: |I_j g| <= sup |g|, and |g - I_j g|
<= e_j sup |D_j g|. With p - I_1 … I_d p = sum_j I_1 … I_(j-1) (p - I_j p) the claim follows, because |I_1 … I_d p| is
at most the largest |p| on the grid.

D_j takes a coefficient c_k of T_k1 … T_kd to -k_j^2 c_k: it is a polynomial like p, and bounded in the same way, with
the sums of the sizes of coefficients for its own second derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from flint import arb, arb_mat

from anchorhead.verify.balls import exact
from anchorhead.verify.rounding import OWN_UNIT, SLACK

MAX_POINTS = 60_000_000
SLAB = 1_000_000


def contract(tensor: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """One matrix (n_j, p_j) for each of the first axes."""
    for j, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, j)), 0, j)
    return tensor


def product(tensor: np.ndarray, matrices: Sequence[np.ndarray], allowed: float) -> tuple[np.ndarray, np.ndarray]:
    """The same with matrices of balls, and how far off that may be: in float64 if that is allowed, else in balls.

    Entries that are off by at most e_j change what is contracted by no more than the matrices |m_j| + e_j give of |t|
    beyond what |m_j| do; float64 itself loses p_j products and sums along each axis.
    """
    middles, off = zip(*map(floats, matrices), strict=True)
    narrow, wide = [np.abs(one) for one in middles], [np.abs(one) + e for one, e in zip(middles, off, strict=True)]
    own = 4 * OWN_UNIT * sum(one.shape[1] + 8 for one in middles)
    most = contract(np.abs(tensor), wide)
    wrong = most - contract(np.abs(tensor), narrow) + own * most
    if wrong.max() <= allowed:
        return contract(tensor, middles), wrong
    found = tensor.astype(object)
    for j, matrix in enumerate(matrices):
        rest = np.moveaxis(found, j, 0)
        balls = arb_mat(matrix.tolist()) * arb_mat(rest.reshape(len(rest), -1).tolist())
        found = np.moveaxis(as_array(balls).reshape(len(matrix), *rest.shape[1:]), 0, j)
    return floats(found)


def as_array(balls: arb_mat) -> np.ndarray:
    return np.fromiter(balls.entries(), object).reshape(balls.nrows(), balls.ncols())


def floats(balls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Balls as float64 numbers, and how far these may be off: the middle is rounded to a neighbour, the radius has 30
    bits."""
    middle, radius = (np.asarray(one, np.float64) for one in (balls, _RADII(balls)))
    return middle, radius + 2 * OWN_UNIT * np.abs(middle) + 1e-300


_RADII = np.frompyfunc(arb.rad, 1, 1)


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
    d, squares = p.ndim, [np.arange(float(n)) ** 2 for n in p.shape]
    bends = np.array([_total(p, squares, [j]) for j in range(d)])
    twice = np.array([[_total(p, squares, [j, i]) for i in range(d)] for j in range(d)])
    met, bound, steps, room = 0.0, _total(p, squares, []), np.array(p.shape), np.inf
    noise = sum(n + 24 for n in p.shape) * OWN_UNIT * bound
    for _ in range(6):
        if room < np.inf:  # what is met so far says how fine the grid has to be, and hardly grows
            steps = np.maximum(steps + 1, np.ceil(np.pi * np.sqrt(d * bends / (8 * room))))
        if not bound > goal > met or math.prod(steps + 1) > MAX_POINTS:
            break
        matrices = [_at_steps(int(q), n) for q, n in zip(steps, p.shape, strict=True)]
        near = (np.pi / steps) ** 2 / 8 * SLACK
        met = _met(p, matrices) + noise
        for j in range(d):
            sharper = _met(p, [one * squares[i] if i == j else one for i, one in enumerate(matrices)])
            bends[j] = min(bends[j], sharper + noise * squares[j][-1] + twice[j] @ near)
        bound = min(bound, float(met + near @ bends) * SLACK)
        room = max(0.9 * (goal - met), 1e-3 * goal)
    return met, bound, int(np.argmax(bends))


def _total(p: np.ndarray, squares: list[np.ndarray], axes: list[int]) -> float:
    """The sum of the sizes of all coefficients of p after D_j for each of some axes."""
    sizes = np.abs(p)
    for j in axes:
        sizes = sizes * squares[j].reshape([-1 if i == j else 1 for i in range(p.ndim)])
    return float(sizes.sum()) * SLACK


def _at_steps(q: int, n: int) -> np.ndarray:
    """T_k at the q + 1 points of a grid, k < n, each within 8 units of round-off."""
    return np.cos(np.outer(np.arange(q + 1), np.arange(n)) % (2 * q) * (math.pi / q))


def _met(p: np.ndarray, matrices: list[np.ndarray]) -> float:
    """The largest |p| on a grid, some of it at a time."""
    inner = np.moveaxis(contract(np.moveaxis(p, 0, -1), matrices[1:]), -1, 0).reshape(p.shape[0], -1)
    step = max(1, SLAB // len(matrices[0]))
    return max(float(np.abs(matrices[0] @ inner[:, k : k + step]).max()) for k in range(0, inner.shape[1], step))
