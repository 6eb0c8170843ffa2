"""Polynomials in several variables by Chebyshev coefficients, in float64: from values, on parts of a box, bounded.

Lemma. Let p be a polynomial on [-1, 1]^d and G the tensor grid of q_j even steps along axis j, ends included. Then

    sup |p| <= max_G |p| + sum_j (2 / q_j)^2 / 8 sup |d^2 p / dx_j^2|.

Proof. Let I_j interpolate along axis j, linearly between the grid's points: |I_j g| <= sup |g|, and |g - I_j g| <=
(step^2 / 8) sup |d_j^2 g|. With p - I_1 … I_d p = sum_j I_1 … I_(j-1) (p - I_j p) the claim follows, because |I_1 …
I_d p| is at most the largest |p| on the grid. Second derivatives are bounded by sums of their coefficients' sizes.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from flint import arb, arb_mat
from numpy.polynomial import chebyshev

from anchorhead.verify.balls import exact, precision
from anchorhead.verify.rounding import OWN_UNIT, SLACK

MAX_POINTS, MAX_HALVINGS = 300_000, 64
Interval = tuple[float, float]


def contract(tensor: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    """One matrix (n_j, p_j) for each of the first axes."""
    for j, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, j)), 0, j)
    return tensor


@lru_cache(maxsize=64)
def cosines(n: int) -> np.ndarray:
    """cos(i pi (k + 1/2) / n), i, k < n, each within 8 units of round-off: angles are reduced to a period first."""
    angles = np.outer(np.arange(n), 2 * np.arange(n) + 1) % (4 * n)
    return np.cos(angles * (math.pi / (2 * n)))


def from_values(values: np.ndarray, axes: int) -> tuple[np.ndarray, float]:
    """Coefficients from values (n_1, …, n_d, m) at the zeros of T_(n_j), and a bound on the sum of their errors.

    A row of the transform adds up to at most 2 in size, and a coefficient passes one of n_j terms for each axis.
    """
    counts = values.shape[:axes]
    matrices = [cosines(n) * (np.where(np.arange(n) > 0, 2.0, 1.0) / n)[:, None] for n in counts]
    found = contract(values, matrices)
    error = sum(n + 24 for n in counts) * OWN_UNIT * 2.0**axes * float(np.abs(values).max()) * found[..., 0].size
    return found, error * SLACK


def on_part(p: np.ndarray, axis: int, box: Interval, part: Interval) -> tuple[np.ndarray, float]:
    """Coefficients on a part of the box along one axis, and how much they may be off in all."""
    matrix = part_matrix(p.shape[axis], box, part)
    found = np.moveaxis(np.tensordot(matrix, p, axes=(1, axis)), 0, axis)
    sizes = np.tensordot(np.abs(matrix), np.abs(p), axes=(1, axis))
    return found, (p.shape[axis] + 8) * OWN_UNIT * float(sizes.sum()) * SLACK


@lru_cache(maxsize=4096)
def part_matrix(n: int, box: Interval, part: Interval) -> np.ndarray:
    """T_k of the box, k < n: column k holds its coefficients on the part, rounded once."""
    if box == part or n == 1:
        return np.eye(n)
    with precision():
        half, centre = (exact(box[1]) - exact(box[0])) / 2, (exact(box[1]) + exact(box[0])) / 2
        inner, middle = (exact(part[1]) - exact(part[0])) / 2, (exact(part[1]) + exact(part[0])) / 2
        angles = [arb.pi() * (2 * k + 1) / (2 * n) for k in range(n)]
        rows = []
        for angle in angles:
            x = (middle + inner * angle.cos() - centre) / half
            row = [arb(1), x]
            while len(row) < n:
                row.append(2 * x * row[-1] - row[-2])
            rows.append(row)
        transform = arb_mat([[(angle * i).cos() * (2 if i else 1) / n for angle in angles] for i in range(n)])
        return np.array([float(x) for x in (transform * arb_mat(rows)).entries()]).reshape(n, n)


def added(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The difference of two tensors of coefficients, of other degrees."""
    shape = tuple(max(pair) for pair in zip(first.shape, second.shape, strict=True))
    result = np.zeros(shape)
    result[tuple(slice(n) for n in first.shape)] += first
    result[tuple(slice(n) for n in second.shape)] -= second
    return result


def largest(p: np.ndarray, goal: float) -> float:
    """A bound on |p| over [-1, 1]^d: at most `goal`, or what the first part shows for which that cannot be had.

    The lemma with ever finer grids; where they would have too many points, on the two halves along the axis that bends
    most.
    """
    waiting, best = [(p, 0.0)], 0.0
    while waiting:
        p, lost = waiting.pop()
        bound, bends = _on_grids(p, lost, goal)
        if bound > goal and bends is not None and len(waiting) < MAX_HALVINGS:
            j = int(np.argmax(bends))
            for half in ((-1.0, 0.0), (0.0, 1.0)):
                part, more = on_part(p, j, (-1.0, 1.0), half)
                waiting.append((part, lost + more))
            continue
        best = max(best, bound)
        if bound > goal:
            break
    return best


def _on_grids(p: np.ndarray, lost: float, goal: float) -> tuple[float, list[float] | None]:
    """A bound on |p|, coefficients being off by `lost`; and what bends it, where finer grids would be too large."""
    d, total = p.ndim, float(np.abs(p).sum()) * SLACK + lost
    if total <= goal or not goal > 0:
        return total, None
    bends = [float(np.abs(chebyshev.chebder(p, 2, axis=j)).sum()) if p.shape[j] > 2 else 0.0 for j in range(d)]
    noise = sum(n * n + 8 for n in p.shape) * OWN_UNIT * total + lost
    best, room = total, goal / 3
    for _ in range(6):
        steps = [max(1, math.ceil(math.sqrt(d * bend / (2 * room)))) for bend in bends]
        if math.prod(q + 1 for q in steps) > MAX_POINTS:
            return best, bends
        axes = [np.linspace(-1, 1, q + 1) for q in steps]
        values = contract(p, [chebyshev.chebvander(x, n - 1) for x, n in zip(axes, p.shape, strict=True)])
        found = float(np.abs(values).max()) + noise
        best = min(best, (found + sum(b / (2 * q * q) for b, q in zip(bends, steps, strict=True))) * SLACK)
        if best <= goal or found >= goal:
            return best, None
        room = (goal - found) * 0.95
    return best, None
