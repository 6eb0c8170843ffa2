"""What is known of an expression on cells and at points, in float64 with what that may be off.

On a cell around c, of half widths h, an expression is f(c) + sum_j s_j t_j with slopes s_j in balls (`slopes`): their
middles are slopes, and their radii times h_j the spread. Where it has no slopes, it is somewhere in its range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, below, exact, precision
from anchorhead.verify.errors import require
from anchorhead.verify.grids.cover import UP, Cells, Way, Ways
from anchorhead.verify.grids.polynomial import floats
from anchorhead.verify.programs.expressions import Expression, evaluated
from anchorhead.verify.programs.numbers import POINTS, Range
from anchorhead.verify.programs.slopes import slopes_of
from anchorhead.verify.rounding import SLACK

BLOCKS = 64
"""On so many, about, of the cells that are looked at together slopes are found, in balls."""


def ways_of(function: Expression, variables: Sequence[str]) -> Ways:
    """For `cover`: by slopes, and by ranges, on blocks of cells."""

    def found(cells: Cells) -> list[Way]:
        shape, d = cells.centre.shape[:-1], len(variables)
        steps = [math.ceil(n / BLOCKS ** (1 / d)) for n in shape]
        cuts = [np.append(cut[:-1:step], cut[-1]) for cut, step in zip(cells.cuts, steps, strict=True)]
        known = np.empty((*(len(cut) - 1 for cut in cuts), 2 + 2 * d))
        with precision():
            for block in np.ndindex(*known.shape[:-1]):
                sides = (cut[i : i + 2].tolist() for cut, i in zip(cuts, block, strict=True))
                ranges, slopes = slopes_of(function, variables, [Range(exact(a), exact(b)) for a, b in sides])
                known[block] = below(ranges.low), above(ranges.high), *np.ravel(floats(np.array(slopes)))
        for axis, (step, count) in enumerate(zip(steps, shape, strict=True)):
            known = known.repeat(step, axis).take(range(count), axis)
        low, high, slopes, radii = known[..., 0], known[..., 1], known[..., 2 : 2 + d], known[..., 2 + d :]
        require(bool(np.isfinite(high - low).all()), "a function that may be undefined or without bounds on the box")
        centres = (np.moveaxis(cells.centre[..., j], j, -1).reshape(-1, n)[0] for j, n in enumerate(shape))
        with precision():
            truth, off = on_tensor(function, variables, [list(map(exact, axis.tolist())) for axis in centres])
        middle, nothing = low / 2 + high / 2, np.zeros(cells.half.shape)
        return [
            Way(truth, np.full(shape, off), slopes, radii * cells.half * UP, central=True),
            Way(middle, np.maximum(high - middle, middle - low) * UP, nothing, nothing),
        ]

    return found


def on_tensor(
    function: Expression, variables: Sequence[str], axes: Sequence[Sequence[arb]]
) -> tuple[np.ndarray, float]:
    """The function at all points of a tensor grid, (n_1, …, n_d), and how far off that may be."""
    d = len(axes)
    sides = [[-1 if i == j else 1 for i in range(d)] for j in range(d)]
    arrays = [np.array(axis, dtype=object).reshape(side) for axis, side in zip(axes, sides, strict=True)]
    balls = evaluated(function, dict(zip(variables, arrays, strict=True)), ON_ARRAYS)  # of one axis: once
    values, off = floats(np.broadcast_to(balls, tuple(map(len, axes))))
    finite = np.isfinite(values).all() and np.isfinite(off).all()
    require(bool(finite), "the function of a grid is not finite on the box")
    return values, float(off.max()) * SLACK


def _on_arrays(rule: Callable[..., arb]) -> Callable[..., Any]:
    """An operation on balls, entry by entry."""

    def found(*args: Any) -> Any:
        if args and isinstance(args[0], str | int):
            data, *rest = args
            return np.frompyfunc(partial(rule, data), len(rest), 1)(*rest)
        return np.frompyfunc(rule, len(args), 1)(*args) if args else rule()

    return found


ON_ARRAYS = {op: _on_arrays(rule) for op, rule in POINTS.items()}
for _op in ("add", "mul"):
    ON_ARRAYS[_op] = partial(lambda two, *args: reduce(two, args), ON_ARRAYS[_op])
