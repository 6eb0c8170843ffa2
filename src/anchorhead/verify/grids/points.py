"""A function at many points, in balls, and from there in float64 with what that may be off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.balls import exact, precision
from anchorhead.verify.errors import require
from anchorhead.verify.grids.polynomial import floats
from anchorhead.verify.grids.uniform import Values
from anchorhead.verify.programs.expressions import Expression, evaluated
from anchorhead.verify.programs.numbers import POINTS
from anchorhead.verify.rounding import SLACK


def values_of(function: Expression, variables: Sequence[str]) -> Values:
    """The function of places (n, d)."""

    def found(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with precision():
            return _at(
                function,
                variables,
                [np.array(list(map(exact, column)), dtype=object) for column in x.T.tolist()],
                (len(x),),
            )

    return found


def on_tensor(
    function: Expression, variables: Sequence[str], axes: Sequence[Sequence[arb]]
) -> tuple[np.ndarray, float]:
    """The function at all points of a tensor grid, (n_1, …, n_d), and how far off that may be."""
    d = len(axes)
    sides = [[-1 if i == j else 1 for i in range(d)] for j in range(d)]
    arrays = [np.array(axis, dtype=object).reshape(side) for axis, side in zip(axes, sides, strict=True)]
    values, off = _at(function, variables, arrays, tuple(map(len, axes)))
    return values, float(off.max())


def _at(
    function: Expression, variables: Sequence[str], arrays: Sequence[np.ndarray], shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Of arrays of balls that are broadcast: what depends on one axis is done once."""
    balls = evaluated(function, dict(zip(variables, arrays, strict=True)), ON_ARRAYS)
    values, off = floats(np.broadcast_to(balls, shape))
    finite = np.isfinite(values).all() and np.isfinite(off).all()
    require(bool(finite), "the function of a grid is not finite on the box")
    return values, off * SLACK


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
