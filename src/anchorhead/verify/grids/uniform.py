"""The paper's placement on a grid: values of f at even places, and a softmax that picks the near ones.

Weights are at least 0 and add up to 1. So for every x of the box, whatever places a_k the anchors are given,

    |r(x) - f(x)| <= max_k |v_k - f(a_k)| + sum_k w_k(x) |f(a_k) - f(x)|.

On a cell between neighbouring places along every axis the second sum is at most the smaller of

    slopes   sum_j L_j E|a_j - x_j| + q_2 osc(box)                      |difference quotients| <= L_j on block 2
    ranges   osc(block 0) + sum_R q_R (osc(block R+1) - osc(block R))   block 3: the box; block R: R cells more around

with q_R the weight of anchors beyond block R. E|a - x|^q, q = 1 or 2, on a part |x - c| <= h of a cell: with g(x) =
sum_k w_k phi_k, phi_k = |a_k - x|^q, w_k' = w_k (alpha_k - A), A = sum w alpha, V the variance of alpha,

    g' = sum w ((alpha - A) phi + phi'),    g'' = sum w (((alpha - A)^2 - V) phi + 2 (alpha - A) phi' + phi''),

so g <= g(c) + h |g'(c)| + h^2/2 sup |g''|, and w_k <= w_k(c) e^(|alpha_k - A(c)| h) on the part.

Rounding. The dtype's exponentials, divided by their exact sum, are convex weights of at most e^(2 Lambda) w_k: the
second sum grows by that. Adding n numbers errs by gamma_(n-1) of their sizes, and a number by at most itself: anchors
beyond block 2, of weight eps, cost at most 8 eps max|v|, and n is the number of anchors in the block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from anchorhead.verify.balls import above, below, exact, precision, size
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.rounding import axis_errors, upper_weights
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.programs.numbers import Range
from anchorhead.verify.programs.slopes import slopes_of
from anchorhead.verify.rounding import OWN_UNIT, SLACK, Arithmetic

BLOCKS, PARTS, MAX_PARTS = 3, 64, 8_000
UP = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Axis:
    """For each cell of an axis: bounds on E|a - x| and E(a - x)^2, and on the weight beyond the blocks 0, 1, 2."""

    places: np.ndarray
    first: np.ndarray
    second: np.ndarray
    beyond: np.ndarray


Modulus = Callable[[list[Axis]], float]
"""From what is known of weights along each axis a bound on sum_k w_k |f(a_k) - f(x)| in exact arithmetic."""
Values = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From places (n, d) to values (n,), and how far they may be off."""


def verify_even(
    grid: Grid,
    modulus: Modulus,
    values: Values,
    low: Sequence[float],
    high: Sequence[float],
    model: Arithmetic,
    stated: float,
) -> float:
    """The bound that follows, at most `stated`; raises NotVerified where it is larger."""
    grid.check()
    axes = [_axis(grid, j, float(a), float(b)) for j, (a, b) in enumerate(zip(low, high, strict=True))]
    places = np.stack(np.meshgrid(*(axis.places for axis in axes), indexing="ij"), axis=-1)
    held, (truth, off) = grid.values.reshape(-1), values(places.reshape(-1, len(axes)))
    stored = float((np.abs(held - truth) + off + 4 * OWN_UNIT * (np.abs(held) + np.abs(truth))).max())
    require(stored <= stated, f"a bound of {stated:.6g} on an even grid whose values are off by {stored:.6g}")
    return _accepted(grid, axes, low, high, modulus(axes), stored, model, stated)


def _accepted(
    grid: Grid,
    axes: list[Axis],
    low: Sequence[float],
    high: Sequence[float],
    exact_part: float,
    stored: float,
    model: Arithmetic,
    stated: float,
) -> float:
    d, u = len(axes), model.unit
    errors = [axis_errors(grid, j, np.array([low[j], high[j]]), d, model) for j in range(d)]
    most = sum(float(error.max()) for error in errors)
    most += model.exp_error + 2 * u * most + 8 * d * model.tiny
    require(most < 20, f"logits of a grid that {model.dtype} cannot hold")
    grown = math.exp(2 * most) * UP
    count = math.prod(min(len(axis.places), 2 * BLOCKS) for axis in axes)
    beyond = min(1.0, sum(float(axis.beyond[-1].max()) for axis in axes)) * grown
    largest = float(np.abs(grid.values).max())
    many, few = float(model.gamma(count + 1)), float(model.gamma(count))
    summed = (many + few) / (1 - few) * largest + 8 * beyond * largest
    lost = 8 * grid.values.size * model.tiny * (largest + 1)
    found = (grown * exact_part + stored + summed + lost) * UP
    if not found <= stated:
        raise NotVerified(f"a bound of {stated:.6g} on an even grid: only {found:.6g} is shown")
    return found


def _axis(grid: Grid, j: int, low: float, high: float) -> Axis:
    p = len(grid.axes[j][0])
    if p == 1:
        away = max(high - (low / 2 + high / 2), (low / 2 + high / 2) - low) * UP
        one = np.array([away])
        return Axis(np.array([low / 2 + high / 2]), one, one**2 * UP, np.zeros((BLOCKS, 1)))
    places = np.linspace(low, high, p)
    cells = [_cell(grid, j, places, i) for i in range(p - 1)]
    first, second, *beyond = (np.array(column) for column in zip(*cells, strict=True))
    return Axis(places, first, second, np.array(beyond))


def _cell(grid: Grid, j: int, places: np.ndarray, i: int) -> tuple[float, ...]:
    """One cell between places i and i + 1, in parts."""
    slopes = grid.axes[j][0]
    cuts = np.linspace(places[i], places[i + 1], PARTS + 1)
    centre, half, w, upper, mean, off = upper_weights(grid, j, cuts)
    away = places - centre
    lean = slopes - mean
    variance = (upper * (np.abs(lean) + 1e-9 * np.abs(slopes).max()) ** 2).sum(axis=1, keepdims=True)
    mean_off = (w * off * np.abs(lean)).sum(axis=1, keepdims=True) + 1e-14 * np.abs(slopes).max()
    wide = np.abs(lean) + half * variance + mean_off
    side = np.where(np.arange(len(places)) <= i, 1.0, -1.0)
    found = []
    for power in (1, 2):
        phi = np.abs(away) ** power
        slope = side if power == 1 else -2 * away
        most = (np.abs(away) + half) ** power
        steep = 1.0 if power == 1 else 2 * (np.abs(away) + half)
        value = (w * phi * (1 + off)).sum(axis=1)
        turn = np.abs((w * (lean * phi + slope)).sum(axis=1))
        turn += (w * off * (np.abs(lean) * phi + np.abs(slope))).sum(axis=1) + (w * phi * mean_off).sum(axis=1)
        bend = (upper * ((wide**2 + variance) * most + 2 * wide * steep + 2 * (power == 2))).sum(axis=1)
        found.append(float((value + half[:, 0] * turn + half[:, 0] ** 2 / 2 * bend).max()) * UP)
    heavy = upper.max(axis=0)
    k = np.arange(len(places))
    beyond = [float(heavy[(k < i - r) | (k > i + 1 + r)].sum()) * UP for r in range(BLOCKS)]
    return (*found, *(min(one, 1.0) for one in beyond))


def modulus_of(function: Expression, variables: Sequence[str], box: Sequence[tuple[float, float]]) -> Modulus:
    """By slopes or by ranges."""

    def found(axes: list[Axis]) -> float:
        ends = [a.places if len(a.places) > 1 else np.array(side) for a, side in zip(axes, box, strict=True)]
        with precision():
            return _modulus(axes, *_ranges(function, variables, ends, tuple(len(one) - 1 for one in ends)))

    return found


def _modulus(axes: list[Axis], low: np.ndarray, high: np.ndarray, steep: list[np.ndarray]) -> float:
    """sup over all cells, of ranges and slopes on each."""
    whole = float(high.max() - low.min()) * SLACK
    require(math.isfinite(whole), "a function that may be unbounded on the box")
    blocks = [_blocks(low, high, steep, r) for r in range(BLOCKS)]
    worst = 0.0
    for cell in np.ndindex(*low.shape):
        beyond = [min(1.0, sum(float(a.beyond[r][i]) for a, i in zip(axes, cell, strict=True))) for r in range(BLOCKS)]
        oscillations = [float(block[0][cell]) for block in blocks]
        steps = zip(oscillations, [*oscillations[1:], whole], beyond, strict=True)
        ranges = oscillations[0] + sum(max(b - a, 0.0) * q for a, b, q in steps)
        slopes = [float(a.first[i]) * float(s[cell]) for a, i, s in zip(axes, cell, blocks[-1][1], strict=True)]
        found = min(ranges, sum(slopes) + beyond[-1] * whole)
        worst = max(worst, found if math.isfinite(found) else ranges)
    return worst * UP


def _ranges(
    function: Expression, variables: Sequence[str], ends: list[np.ndarray], shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The range of f on each cell, and its steepest slopes, from parts of the cell."""
    parts = max(1, min(PARTS, int((MAX_PARTS / math.prod(shape)) ** (1 / len(shape)))))
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    steep = [np.zeros(shape) for _ in variables]
    for cell in np.ndindex(*shape):
        cuts = [np.linspace(e[i], e[i + 1], parts + 1) for e, i in zip(ends, cell, strict=True)]
        for part in product(range(parts), repeat=len(shape)):
            sides = [Range(exact(c[i]), exact(c[i + 1])) for c, i in zip(cuts, part, strict=True)]
            values, slopes = slopes_of(function, variables, sides)
            low[cell], high[cell] = min(low[cell], below(values.low)), max(high[cell], above(values.high))
            for along, one in zip(steep, slopes, strict=True):
                along[cell] = max(along[cell], size(one) if one.is_finite() else math.inf)
    return low, high, steep


def _blocks(
    low: np.ndarray, high: np.ndarray, steep: list[np.ndarray], reach: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Oscillation and steepest slopes over the cells up to `reach` away."""

    def over(array: np.ndarray, by: Callable[..., np.ndarray], fill: float) -> np.ndarray:
        for axis in range(array.ndim):
            around = [(reach, reach) if j == axis else (0, 0) for j in range(array.ndim)]
            wide = np.pad(array, around, constant_values=fill)
            array = by(np.lib.stride_tricks.sliding_window_view(wide, 2 * reach + 1, axis=axis), axis=-1)
        return array

    spread = (over(high, np.max, -np.inf) - over(low, np.min, np.inf)) * SLACK
    return spread, [over(one, np.max, 0.0) for one in steep]
