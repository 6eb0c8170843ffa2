"""What is known of functions at the corners of cells and between them, in float64 with what that may be off.

Let I interpolate along each axis of a cell of widths w_j, linearly between the corners. A function is near I f:

- If difference quotients along axis j lie within R_j of a number, |f - I f| <= sum_j R_j w_j / 2: a line along each
  axis taken off, which I keeps, f moves by at most R_j t from an end and R_j (w_j - t) from the other, whose shares are
  1 - t / w_j and t / w_j. Expressions have such slopes in balls (`programs.slopes`), and functions with a constant L_j.
- If |f(x) - f(y)| <= L |x - y|_2, it is at most L |w|_2 / 2: with the shares c of corners y that give x, sum c |x - y|
  is at most the root of sum c |x - y|^2, which is sum_j t_j (w_j - t_j).
- Along one axis, with D = f(b) - f(a), a function of the constant L is between the cones of slope L at both ends, and
  so no further than (L^2 w^2 - D^2) / (2 L w) from its chord: little where it is as steep as L allows.
- If f is between two numbers, so is I f, and they are no further apart than these.

Values of functions that are given are taken as right to VALUE_ERROR of themselves: an assumption.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, below, exact, precision
from anchorhead.verify.errors import require
from anchorhead.verify.grids.polynomial import floats
from anchorhead.verify.programs.expressions import Expression, evaluated
from anchorhead.verify.programs.numbers import POINTS, Range
from anchorhead.verify.programs.slopes import slopes_of

BLOCKS = 64
"""On so many, about, of the cells that are looked at together slopes are found, in balls."""
VALUE_ERROR = 2.0**-51
UP = 1 + 1e-9
Known = Callable[[list[np.ndarray]], tuple[np.ndarray, np.ndarray, list[np.ndarray]]]
"""From cuts along each axis to values at the corners, how far these may be off, and spreads (cells_1, …, cells_d, d),
the sum of each of which over the axes bounds |f - I f| on the cell."""
Values = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From places (n, d) to values (n,), and how far they may be off."""


def known_of(function: Expression, variables: Sequence[str]) -> Known:
    """Of an expression: by slopes and by ranges, on blocks of cells."""

    def known(cuts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        d, shape = len(cuts), [len(cut) - 1 for cut in cuts]
        steps = [math.ceil(n / BLOCKS ** (1 / d)) for n in shape]
        coarse = [np.append(cut[:-1:step], cut[-1]) for cut, step in zip(cuts, steps, strict=True)]
        found = np.empty((*(len(cut) - 1 for cut in coarse), 1 + d))
        with precision():
            for block in np.ndindex(*found.shape[:-1]):
                sides = (cut[i : i + 2].tolist() for cut, i in zip(coarse, block, strict=True))
                ranges, slopes = slopes_of(function, variables, [Range(exact(a), exact(b)) for a, b in sides])
                found[block] = above(ranges.high) - below(ranges.low), *floats(np.array(slopes))[1]
            truth, off = on_tensor(function, variables, [list(map(exact, cut.tolist())) for cut in cuts])
        for axis, (step, count) in enumerate(zip(steps, shape, strict=True)):
            found = found.repeat(step, axis).take(range(count), axis)
        require(bool(np.isfinite(found[..., 0]).all()), "a function that may be undefined or without bounds on the box")
        by_slopes = found[..., 1:] * _widths(cuts) / 2
        return truth, off, [np.where(np.isnan(by_slopes), np.inf, by_slopes) * UP, found[..., :1] * np.ones(d) / d * UP]

    return known


def on_tensor(
    function: Expression, variables: Sequence[str], axes: Sequence[Sequence[arb]]
) -> tuple[np.ndarray, np.ndarray]:
    """The function at all points of a tensor grid, (n_1, …, n_d), and how far off that may be."""
    d = len(axes)
    sides = [[-1 if i == j else 1 for i in range(d)] for j in range(d)]
    arrays = [np.array(axis, dtype=object).reshape(side) for axis, side in zip(axes, sides, strict=True)]
    balls = evaluated(function, dict(zip(variables, arrays, strict=True)), ON_ARRAYS)  # of one axis: once
    values, off = floats(np.broadcast_to(balls, tuple(map(len, axes))))
    finite = np.isfinite(values).all() and np.isfinite(off).all()
    require(bool(finite), "the function of a grid is not finite on the box")
    return values, off


def _on_arrays(rule: Callable[..., arb]) -> Callable[..., Any]:
    """An operation on balls, entry by entry."""

    def found(*args: Any) -> Any:
        if args and isinstance(args[0], str | int):
            data, *rest = args
            return np.frompyfunc(partial(rule, data), len(rest), 1)(*rest)
        return np.frompyfunc(rule, len(args), 1)(*args) if args else rule()

    return found


ON_ARRAYS = {op: _on_arrays(rule) for op, rule in POINTS.items()}
ON_ARRAYS |= {op: POINTS[op] for op in ("add", "mul", "neg", "div")}  # arrays have these operators


def _widths(cuts: list[np.ndarray]) -> np.ndarray:
    """Of cells, (cells_1, …, cells_d, d)."""
    return np.stack(np.meshgrid(*map(np.diff, cuts), indexing="ij"), axis=-1) * UP


@dataclass(frozen=True)
class Lipschitz:
    """|f(x) - f(y)| <= L |x - y|_2, or with a constant for each axis sum_j L_j |x_j - y_j|."""

    constants: tuple[float, ...]
    euclidean: bool

    def along(self, step: np.ndarray) -> np.ndarray:
        """How much f may change over steps (…, d): by the sum of these, one for each axis."""
        if not self.euclidean:
            return np.abs(step) * np.array(self.constants) * UP
        share = np.abs(step) / np.maximum(np.abs(step).max(axis=-1, keepdims=True), 1e-300)
        return (
            self.constants[0] * np.abs(step) * (share / np.sqrt((share**2).sum(axis=-1, keepdims=True) + 1e-300)) * UP
        )

    def ordered(self, ids: Sequence[int]) -> Lipschitz:
        """That of the function of its inputs in another order."""
        return self if self.euclidean else Lipschitz(tuple(self.constants[q] for q in ids), False)

    def __str__(self) -> str:
        if self.euclidean:
            return f"|f(x) - f(y)| <= {self.constants[0]:g} |x - y|"
        return f"|f(x) - f(y)| <= sum of L_j |x_j - y_j|, L = ({', '.join(f'{one:g}' for one in self.constants)})"

    def known(self, function: Values) -> Known:
        """Of a function with this constant: that it has it, and along one axis cones."""

        def known(cuts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
            d, corners = len(cuts), np.stack(np.meshgrid(*cuts, indexing="ij"), axis=-1)
            truth, off = (one.reshape(corners.shape[:-1]) for one in function(corners.reshape(-1, d)))
            rises = [np.abs(np.diff(truth, axis=axis)) - 8 * float(off.max()) for axis in range(d)]
            for axis, rise in enumerate(rises):
                most = self.along(np.diff(corners, axis=axis)).sum(axis=-1) * UP
                require(bool((rise <= most).all()), f"values of the function contradict its constant: {self}")
            spread = self.along(_widths(cuts)) / 2
            if d == 1:
                most = 2 * spread + 1e-300
                spread = (most - np.maximum(rises[0][:, None], 0.0) ** 2 / most).clip(0.0) / 2 * UP
            return truth, off, [spread]

        return known
