"""The error of a head over a grid against a function of which values and a Lipschitz constant are known.

The box is covered by even cells. On one with centre c and half widths h_j, with g = dr/dx at c and M_jl a bound on the
second derivatives of r on the box (grid_derivatives),

    |f - r| <= |f(c) - r(c)| + L(h) + sum_j |g_j| h_j + sum_jl M_jl h_j h_l / 2,

L(h) what f may change by over h (targets.lipschitz). Centres make a tensor grid, so that r and g are contractions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.conditions import AssumedLipschitz
from anchorhead.heads.grids.grid_atom import GridAtom, contract
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets.lipschitz import Lipschitz
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.grids.grid_derivatives import second_derivatives
from anchorhead.proof.grids.grid_head import PRECISION, head_on_grid, rounded, weights
from anchorhead.proof.grids.proven_grid import ProvenGrid
from anchorhead.terms import Term

VALUE_ERROR = 2.0**-51
"""Values of f are taken as right to this part of themselves, 2 units in the last place of float64."""
_CHUNK = 1 << 16


def prove_cover(
    atom: GridAtom,
    function: Callable[[np.ndarray], np.ndarray],
    lipschitz: Lipschitz,
    low: Sequence[float],
    high: Sequence[float],
    counts: Sequence[int],
    rounding: float,
    tell_share: Callable[[float], None] | None = None,
) -> ProvenGrid:
    """A bound for every x of the box, from f (n, d) -> (n, m) at the centres of counts_1 x … x counts_d cells.

    rounding   what is proven of the rounding on the box
    `tell_share` is told the share of the cells that is done.
    """
    start, stop = np.asarray(low, np.float64), np.asarray(high, np.float64)
    axes, half = zip(*(_centres(a, b, n) for a, b, n in zip(start, stop, counts, strict=True)), strict=True)
    reach = np.array(half)
    bend = float(reach @ second_derivatives(atom, start, stop) @ reach) / 2
    with precision(PRECISION):
        matrices = [
            rounded(weights(*axis, float(origin), [arb(float(x)) for x in centres]))
            for axis, origin, centres in zip(atom.axes, atom.origins, axes, strict=True)
        ]
    slack = float(lipschitz.apart(reach)) + bend
    rows = max(1, _CHUNK // prod(counts[1:]))
    bound, found, at = 0.0, 0.0, tuple(float(axis[0]) for axis in axes)
    for first in range(0, counts[0], rows):
        some = [matrices[0][first : first + rows], *matrices[1:]]
        head, error = head_on_grid(atom, some)
        points = [axes[0][first : first + rows], *axes[1:]]
        x = np.stack(np.meshgrid(*points, indexing="ij"), axis=-1)
        truth = np.moveaxis(function(x.reshape(-1, len(axes))).reshape(*x.shape[:-1], -1), -1, 0)
        check_neighbours(truth, points, lipschitz)
        gap = np.abs(truth - head)
        off = gap + np.abs(truth) * VALUE_ERROR + error.reshape(-1, *[1] * len(axes)) + 1e-15 * gap
        place = np.unravel_index(int(gap.argmax()), gap.shape)
        if gap[place] > found:
            found, at = float(gap[place]), tuple(float(x) for x in x[place[1:]])
        bound = max(bound, float((off + _moved(atom, some, reach)).max()) + slack)
        if tell_share:
            tell_share(min(first + rows, counts[0]) / counts[0])
    terms = (Term("approximation", found, "centres"), Term("approximation", bound * UP - found, "cells"))
    method = (
        f"for every x of the box: a solved grid of {' x '.join(map(str, atom.sides))} anchors, compared at "
        f"the centres of {prod(counts):,} cells that cover the box"
    )
    conditions = (AssumedLipschitz(lipschitz.constants),)
    return ProvenGrid(atom, start, stop, terms, rounding, method, found, at, conditions)


def steepest(atom: GridAtom, low: Sequence[float], high: Sequence[float]) -> Float[np.ndarray, " d"]:
    """About the largest |dr/dx_j|, from a few points along each axis: to choose cells by."""
    points = [np.linspace(a, b, 24 if atom.variables < 4 else 10) for a, b in zip(low, high, strict=True)]
    matrices = [atom.weights(j, x) for j, x in enumerate(points)]
    return np.array([np.abs(_slope(atom, matrices, j)).max() for j in range(atom.variables)])


def cell_counts(
    lipschitz: Lipschitz, lengths: Float[np.ndarray, " d"], slopes: Float[np.ndarray, " d"], room: float
) -> tuple[int, ...]:
    """So many cells along each axis that f and a head of these slopes change by at most `room` from a centre."""
    along = lipschitz.along
    if lipschitz.euclidean:
        rate = np.full(len(lengths), along[0] * np.sqrt(len(lengths)) + slopes.sum())
    else:
        rate = len(lengths) * (along + slopes)
    return tuple(max(1, ceil(min(n, 1e15))) for n in lengths * rate / (2 * room))


def check_neighbours(
    values: Float[np.ndarray, "..."], axes: Sequence[Float[np.ndarray, " n"]], lipschitz: Lipschitz
) -> None:
    """Refuses a constant that values (m, n_1, …, n_d) at neighbouring points of a tensor grid contradict."""
    for j, points in enumerate(axes):
        if len(points) < 2:
            continue
        gaps = np.abs(np.diff(values, axis=j + 1))
        step = np.zeros((len(points) - 1, len(axes)))
        step[:, j] = np.diff(points)
        allowed = lipschitz.apart(step) * UP + 4 * VALUE_ERROR * np.abs(values).max()
        over = gaps > allowed.reshape([-1 if i == j + 1 else 1 for i in range(values.ndim)])
        if over.any():
            place = np.unravel_index(int((gaps * over).argmax()), gaps.shape)[1:]
            x = np.array([axis[i] for axis, i in zip(axes, place, strict=True)])
            y = x.copy()
            y[j] = points[place[j] + 1]
            raise lipschitz.contradicted(x, y, float((gaps * over).max()))


def _centres(low: float, high: float, count: int) -> tuple[Float[np.ndarray, " n"], float]:
    """Centres of even cells, and a half width with which they cover the interval."""
    cuts = np.linspace(low, high, count + 1)
    centres = cuts[:-1] + np.diff(cuts) / 2
    half = float(np.maximum(centres - cuts[:-1], cuts[1:] - centres).max())
    return centres, half * UP + 4 * 2.0**-52 * max(abs(low), abs(high))


def _slope(atom: GridAtom, matrices: Sequence[np.ndarray], axis: int) -> Float[np.ndarray, "..."]:
    """dr/dx_j on a tensor grid, (n_1, …, n_d, m): w_k' = w_k (slope_k - the mean slope)."""
    slopes = atom.axes[axis][0].astype(np.float64)
    w = matrices[axis]
    leaning = w * (slopes - (w @ slopes)[:, None])
    return contract(atom.values.astype(np.float64), [leaning if j == axis else m for j, m in enumerate(matrices)])


def _moved(atom: GridAtom, matrices: Sequence[np.ndarray], half: Float[np.ndarray, " d"]) -> Float[np.ndarray, "..."]:
    """sum_j |dr/dx_j| h_j on a tensor grid, (m, n_1, …, n_d), not rounded down: slopes err by gamma_p of their range
    times the largest value."""
    total = np.zeros(1)
    for j, width in enumerate(half):
        slopes = atom.axes[j][0].astype(np.float64)
        noise = 16 * (sum(atom.sides) + 16) * 2.0**-53 * float(np.abs(slopes).max() + np.ptp(slopes)) * atom.max_value
        total = total + (np.abs(_slope(atom, matrices, j)) + noise) * width
    return np.moveaxis(total, -1, 0)
