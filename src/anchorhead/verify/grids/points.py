"""Functions and grids at the points of a tensor grid, in balls: what is compared, and a first look at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.balls import precision
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.polynomial import chebyshev_points, floats
from anchorhead.verify.programs.expressions import BALLS, Expression, evaluated
from anchorhead.verify.rounding import SLACK

Interval = tuple[float, float]
FIRST_LOOK = 2_500
"""Points of a box at which functions are compared before anything is proven."""


def values_at(
    functions: Sequence[Expression], variables: Sequence[str], axes: Sequence[Sequence[arb]]
) -> tuple[np.ndarray, float]:
    """Functions at all points of a tensor grid, (n_1, …, n_d, m), and how far off they may be."""
    sides = [[-1 if i == j else 1 for i in range(len(axes))] for j in range(len(axes))]
    grids = [np.array(axis, dtype=object).reshape(side) for axis, side in zip(axes, sides, strict=True)]
    values = np.empty((*map(len, axes), len(functions)))
    off = 0.0
    for i, function in enumerate(functions):
        balls = evaluated(function, dict(zip(variables, grids, strict=True)), ON_ARRAYS)
        values[..., i], wrong = floats(balls)
        off = max(off, float(wrong.max()))
    require(bool(np.isfinite(values).all()) and off < np.inf, "functions of a grid are not finite on the box")
    return values, off * SLACK


def look(
    grid: Grid, functions: Sequence[Expression], variables: Sequence[str], box: Sequence[Interval], stated: float
) -> None:
    """Refuses a bound that does not hold at some points: what is hopeless takes no time."""
    most = int(FIRST_LOOK ** (1 / len(box)))
    with precision():
        counts = [min(most, 4 * len(slopes)) for slopes, _ in grid.axes]
        axes = [chebyshev_points(*one, n) for one, n in zip(box, counts, strict=True)]
        read, off = grid.at([grid.weights(j, points) for j, points in enumerate(axes)], stated)
        truth, more = values_at(functions, variables, axes)
    seen = float(np.abs(read - truth).max()) - off - more
    if seen > stated:
        raise NotVerified(f"a bound of {stated:.6g} on a grid that is off by {seen:.6g} in places")


def _on_arrays(rule: Callable[..., arb]) -> Callable[..., Any]:
    """An operation on balls, entry by entry of arrays that are broadcast: what depends on one axis is done once."""

    def found(*args: Any) -> Any:
        if args and isinstance(args[0], str | int):
            data, *rest = args
            return np.frompyfunc(partial(rule, data), len(rest), 1)(*rest)
        return np.frompyfunc(rule, len(args), 1)(*args) if args else rule()

    return found


ON_ARRAYS = {op: _on_arrays(rule) for op, rule in BALLS.items()}
for _op in ("add", "mul"):
    ON_ARRAYS[_op] = partial(lambda two, *args: reduce(two, args), ON_ARRAYS[_op])
