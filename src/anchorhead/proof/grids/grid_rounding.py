"""How far a dtype's evaluation of a grid head may be from exact arithmetic, over a whole box: two bounds.

For any values. Every axis is cut into cells, on which weights are bounded (proof.heads.on_cells), and
heads.grid_rounding turns upper bounds on the weights of each axis into a bound for every product of cells.

For values v_k near f(a_k), at places a_k near x. The dtype's exponentials are those of other weights,
w_k exp(lambda_k) with |lambda_k| <= Lambda, up to a factor that all share; divided by their exact sum they are a convex
combination too, of weights at most G w_k, G = exp(2 Lambda). So a bound on sum_k w_k |f(a_k) - f(x)| grows by G, and no
more. Adding n numbers errs by gamma_(n-1) of their sizes, whatever the order, and a number by at most itself: so
anchors beyond block 2, of weight eps together, cost no more than 8 eps max|v|, and n is the number of anchors in the
block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.heads.grids.grid_rounding import asked_error, axis_log_errors, grid_read_error
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.grids.uniform_grid_weights import REACH, AxisSpread
from anchorhead.proof.heads.on_cells import softmax_on_cells

MAX_CELLS = 150_000
FINE = 0.02  # cells on which logits move by no more than this, if there are not too many of them
LARGEST_LOGIT = 1e6


def prove_grid_rounding(
    atom: GridAtom,
    low: Float[np.ndarray, " d"],
    high: Float[np.ndarray, " d"],
    arithmetic: Arithmetic,
    more: Sequence[Float[np.ndarray, " p"]] | None = None,
) -> float:
    """A bound on |computed r(x) - r(x)|, bias aside, for every real x of the box, however it is rounded to the dtype
    first, if what is asked with errs by no more than asked_error.

    more   by how much logits may be wrong beyond that, for the anchors of each axis; what the axes add is added up
    """
    few = max(1, int(MAX_CELLS ** (1 / atom.variables)))
    require_logits(atom, low, high, LARGEST_LOGIT)
    uppers, errors = [], []
    for j, ((slopes, offsets), left, right) in enumerate(zip(atom.axes, low, high, strict=True)):
        slopes, offsets = slopes.astype(np.float64), offsets.astype(np.float64)
        count = min(few, max(1, math.ceil(float(np.ptp(slopes)) * (right - left) / 2 / FINE)))
        cuts = np.linspace(left, right, count + 1)
        uppers.append(upper_weights(slopes, offsets, float(atom.origins[j]), cuts))
        errors.append(log_errors(atom, j, left, right, cuts, arithmetic))
    if more is not None:
        # subtracting the largest logit rounds by u times how far logits are off, twice
        errors = [one + own * (1 + 4 * arithmetic.unit) for one, own in zip(errors, more, strict=True)]
    return float(grid_read_error(atom, uppers, errors, arithmetic).max())


def prove_mean_rounding(
    atom: GridAtom,
    spreads: Sequence[AxisSpread],
    low: Float[np.ndarray, " d"],
    high: Float[np.ndarray, " d"],
    arithmetic: Arithmetic,
    exact: float,
) -> float:
    """What rounding adds to a bound `exact` on sum_k w_k |f(a_k) - f(x)|; infinite where logits are too large."""
    most = arithmetic.exp_error
    for j, (a, b) in enumerate(zip(low, high, strict=True)):
        most += float(log_errors(atom, j, a, b, np.array([a, b]), arithmetic).max())
    most = most * (1 + 4 * arithmetic.unit) * UP
    if not most <= 20:
        return math.inf
    grown = math.exp(2 * most) * UP
    count = math.prod(min(side, 2 * REACH) for side in atom.sides)
    eps = min(sum(spread.outside[-1] for spread in spreads), 1.0) * grown
    size = atom.max_value
    many, few = float(arithmetic.gamma(count + 1)), float(arithmetic.gamma(count))
    summed = (many + few) / (1 - few) * size + 8 * eps * size
    underflow = 8 * atom.anchors * arithmetic.tiny * (size + 1)
    return float(((grown - 1) * exact + summed + underflow) * UP)


def require_logits(atom: GridAtom, low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"], most: float) -> None:
    """Refuses logits beyond which nothing is proven."""
    for (slopes, offsets), origin, a, b in zip(atom.axes, atom.origins, low, high, strict=True):
        reach = max(abs(float(a) - float(origin)), abs(float(b) - float(origin))) * UP
        size = float((np.abs(slopes.astype(np.float64)) * reach + np.abs(offsets.astype(np.float64))).max())
        if not size <= most:
            raise AnchorheadError(
                f"the logits of the grid reach {size:.3g}: nothing is proven beyond {most:g}; use fewer anchors along "
                "an axis, or a larger error"
            )


def log_errors(
    atom: GridAtom, axis: int, low: float, high: float, cuts: Float[np.ndarray, " cuts"], arithmetic: Arithmetic
) -> Float[np.ndarray, "cells p"]:
    """By how much logits along an axis may err between neighbouring cuts, for x of the whole of [low, high]."""
    origin = float(atom.origins[axis])
    moved = np.full(len(cuts) - 1, asked_error(low, high, origin, arithmetic))
    return axis_log_errors(*atom.axes[axis], origin, cuts[:-1], cuts[1:], moved, atom.variables, arithmetic)


def upper_weights(
    slopes: Float[np.ndarray, " p"], offsets: Float[np.ndarray, " p"], origin: float, cuts: Float[np.ndarray, " cuts"]
) -> Float[np.ndarray, "cells p"]:
    """Upper bounds on softmax_k(slopes (x - origin) + offsets) for x between neighbouring cuts."""
    left, right = np.nextafter(cuts[:-1] - origin, -np.inf), np.nextafter(cuts[1:] - origin, np.inf)
    return softmax_on_cells(slopes, offsets, np.zeros(len(slopes)), 0.0, left, right).weights
