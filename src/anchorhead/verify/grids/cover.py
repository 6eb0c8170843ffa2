"""A softmax over a grid against a function that need not be smooth, cell by cell.

Lemma. On a cell |t_j| <= h_j around c let |f(c + t) - value - sum_j slope_j t_j| <= unsure + sum_j spread_j. Then

    |f - r| <= |value - r(c)| + sum_j |slope_j - d_j r(c)| h_j + 1/2 sum_jl h_j h_l sup |d_j d_l r| + unsure + spread.

Proof. Taylor's theorem for r. Along one axis w_k' = w_k (a_k - A), A = sum w a, A' the variance V of the slopes, so
w_k'' = w_k ((a_k - A)^2 - V); weights of different axes are factors of their own. With U_k >= w_k on the cell
(`upper_weights`), |a_k - A| <= |a_k - A(c)| + h V and V <= sum U (a - A(c))^2,

    sup |d_j^2 r| <= sum_k U_k ((a_k - A)^2 + V) |v_k - v'| <= |(a - A)^2 + V| |v - v'|,
    sup |d_j d_l r| <= sum_k U_k |a_k - A| |b_k - B| |v_k - v'| <= |(a - A) (b - B)| |v - v'|

in the norm |g|^2 = sum_k U_k g_k^2, for any constant v', which derivatives of sum_k w_k v_k = v' + sum_k w_k (v_k - v')
do not see. All sums over anchors are contractions, one axis after the other.

What is known of f on cells, in one way or in several, the caller says (`slopes`, `lipschitz`). A box is looked at in
some cells; the smallest box around those on which the bound does not follow is halved, along the axis that adds most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.polynomial import contract
from anchorhead.verify.grids.rounding import spread, upper_weights
from anchorhead.verify.rounding import OWN_UNIT

CELLS = {1: 4096, 2: 200, 3: 24, 4: 10}
"""Of a box, along each of so many axes."""
MAX_CELLS = 2_000_000
UP = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells between cuts along each axis: their centres and half widths, (cells_1, …, cells_d, d)."""

    cuts: list[np.ndarray]
    centre: np.ndarray
    half: np.ndarray


@dataclass(frozen=True, eq=False)
class Way:
    """The lemma's numbers, slope and spread (…, d). central: whether the value is that at the centre, up to unsure."""

    value: np.ndarray
    unsure: np.ndarray
    slope: np.ndarray
    spread: np.ndarray
    central: bool = False


Ways = Callable[[Cells], list[Way]]
Values = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From places (n, d) to values (n,), and how far they may be off."""
Rounding = Callable[[Cells, np.ndarray], np.ndarray]
"""Of the head on cells, on which it moves by at most so much."""


def cover(
    grid: Grid,
    ways: Ways,
    rounding: Rounding,
    low: Sequence[float],
    high: Sequence[float],
    stated: float,
) -> int:
    """The number of cells that it took to show |computed r - f| <= stated on a box; raises NotVerified where that does
    not follow."""
    grid.check()
    waiting, spent = [list(zip(map(float, low), map(float, high), strict=True))], 0
    while waiting:
        box = waiting.pop()
        cuts = [np.linspace(a, b, 1 + (CELLS[len(box)] if a < b else 1)) for a, b in box]
        spent += math.prod(len(one) - 1 for one in cuts)
        require(spent <= MAX_CELLS, f"the bound {stated:.6g} on a grid does not follow within {MAX_CELLS:,} cells")
        bound, least, along = _on_cells(grid, ways, rounding, cuts)
        if not float(least.max()) <= stated:
            raise NotVerified(f"a bound of {stated:.6g} does not follow on a grid: it is off by {least.max():.6g}")
        wide = ~(bound <= stated)
        if wide.any():
            axis = int(along[np.unravel_index(int(np.where(wide, bound, 0.0).argmax()), bound.shape)].argmax())
            left = [(cut[n.min()], cut[n.max() + 1]) for cut, n in zip(cuts, np.nonzero(wide), strict=True)]
            a, b = left[axis]
            require(bool(a < a / 2 + b / 2 < b), f"a bound of {stated:.6g} does not follow on a grid near {left}")
            waiting += [[*left[:axis], half, *left[axis + 1 :]] for half in ((a, a / 2 + b / 2), (a / 2 + b / 2, b))]
    return spent


def _on_cells(grid: Grid, ways: Ways, rounding: Rounding, cuts: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The lemma with the rounding, the least that an error surely is at the centre, and what each axis adds."""
    axes = [_axis(grid, j, one) for j, one in enumerate(cuts)]
    half, centre = (
        np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1)
        for columns in ([axis.half for axis in axes], [axis.centre for axis in axes])
    )
    values, weights, upper = grid.values, [a.weights for a in axes], [a.upper for a in axes]
    size, apart = np.abs(values), spread(grid, upper) * UP
    own = 8 * (sum(grid.values.shape) + 17) * OWN_UNIT
    lost = sum(float(axis.off.max()) for axis in axes) + own
    require(lost < 1, "keys of a grid that float64 cannot hold")
    read = contract(values, weights)
    there = contract(size, weights) * own
    for j, axis in enumerate(axes):
        there = there + contract(size, _with(weights, {j: axis.weights * axis.off}))
    there = there * (1 + 2 * lost)  # for errors of several axes at once
    slopes, unsure, bends = (np.zeros(half.shape) for _ in range(3))
    for j, axis in enumerate(axes):
        slopes[..., j] = contract(values, _with(weights, {j: axis.weights * axis.lean}))
        off = axis.off + (lost - float(axis.off.max()))
        leaning = axis.weights * (axis.wide * off + axis.lean_off)
        unsure[..., j] = contract(size, _with(weights, {j: leaning})) * (1 + 2 * lost)
        bends[..., j] += apart * _norm(upper, {j: axis.wide**2 + axis.variance}) * half[..., j] ** 2 / 2
        for i in range(j):
            bends[..., j] += apart * _norm(upper, {j: axis.wide, i: axes[i].wide}) * half[..., j] * half[..., i]
    moved = ((np.abs(slopes) + unsure) * half + bends * UP).sum(axis=-1) * UP
    best, least, adds = np.full(read.shape, np.inf), np.zeros(read.shape), np.full(half.shape, np.inf)
    for way in ways(Cells(cuts, centre, half)):
        away = np.abs(way.value - read)
        around = there + way.unsure + 4 * OWN_UNIT * (np.abs(way.value) + np.abs(read))
        turned = np.abs(way.slope - slopes) + unsure + 4 * OWN_UNIT * (np.abs(way.slope) + np.abs(slopes))
        along = (turned * half + way.spread + bends * UP) * UP
        bound = (away + around + along.sum(axis=-1)) * UP
        adds = np.where((bound <= best)[..., None], along, adds)
        best, least = np.fmin(best, bound), np.fmax(least, away - around * UP if way.central else 0.0)
    return best + rounding(Cells(cuts, centre, half), moved), least, adds


@dataclass(frozen=True, eq=False)
class _Axis:
    """Of cells (n,) and anchors: lean = a - A(c), up to lean_off; wide >= |a - A| and variance >= V on the cell."""

    centre: np.ndarray
    half: np.ndarray
    weights: np.ndarray
    upper: np.ndarray
    off: np.ndarray
    lean: np.ndarray
    lean_off: np.ndarray
    wide: np.ndarray
    variance: np.ndarray


def _axis(grid: Grid, j: int, cuts: np.ndarray) -> _Axis:
    slopes = grid.axes[j][0]
    centre, half, w, upper, _, off = upper_weights(grid, j, cuts)
    steep = slopes - slopes[w.argmax(axis=1)][:, None]  # what all slopes share is no error of a - A
    lean = steep - (w * steep).sum(axis=1, keepdims=True)
    lean_off = (w * (off + (len(slopes) + 8) * OWN_UNIT) * np.abs(steep)).sum(axis=1, keepdims=True) * UP
    lean_off = lean_off + 4 * OWN_UNIT * np.abs(steep)
    variance = (upper * (np.abs(lean) + lean_off) ** 2).sum(axis=1, keepdims=True) * UP
    wide = np.abs(lean) + lean_off + half * variance
    return _Axis(centre[:, 0], half[:, 0], w, upper, off, lean, lean_off, wide, variance)


def _norm(upper: list[np.ndarray], factors: dict[int, np.ndarray]) -> np.ndarray:
    """|g| on each cell of a product g of factors of some axes."""
    sums = [(one * factors[j] ** 2 if j in factors else one).sum(axis=1) for j, one in enumerate(upper)]
    return np.sqrt(reduce(np.multiply.outer, sums)) * UP


def _with(matrices: list[np.ndarray], changed: dict[int, np.ndarray]) -> list[np.ndarray]:
    return [changed.get(j, one) for j, one in enumerate(matrices)]
