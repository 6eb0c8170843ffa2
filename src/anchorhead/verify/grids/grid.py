"""A softmax over a tensor grid of anchors against functions of up to four variables.

Claim: for every x of the dtype in a box, in every output, |computed r(x) - f(x)| <= stated.

On a box of half widths h_j let I_j f interpolate f along x_j at n_j Chebyshev points. Then

    |f - I_1 … I_d f| <= sum_j |I_1| … |I_(j-1)| 2 (h_j/2)^(n_j) sup |d_j^(n_j) f| / n_j!,     |I| <= 1 + (2/pi) ln n,

the derivatives being bounded by Taylor series over the box itself (arb_series along x_j, balls for the others). Boxes
on which that is too much are halved. Each is cut into parts on which the head is a polynomial up to a known rest
(grid_head); there the difference is a polynomial, bounded on a grid of points (grid_polynomial), and it, the rests and
the rounding of the part (grid_rounding) have to add up to no more than what is stated.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, exact, hull, precision, size
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grids.head import Expanded, Grid
from anchorhead.verify.grids.polynomial import Interval, added, from_values, largest, on_part
from anchorhead.verify.grids.rounding import grid_rounding
from anchorhead.verify.programs.expressions import BALLS, Expression, Undecided, evaluated
from anchorhead.verify.rounding import OWN_UNIT, SLACK, arithmetic_of
from anchorhead.verify.self_keys.cover import coefficients

MAX_DEGREE, MAX_NODES = 24, 40_000
MAX_BOXES, MAX_PARTS = 20_000, 200_000
REST = 0.001
"""Of what is stated: what each kind of rest may add."""


def verify_grid(
    grid: Grid,
    functions: Sequence[Expression],
    variables: Sequence[str],
    low: Sequence[float],
    high: Sequence[float],
    dtype: str,
    stated: float,
) -> int:
    """The number of parts that it took; raises NotVerified where the bound does not follow."""
    grid.check()
    fits = len(grid.axes) == len(variables) == len(low) == len(high) and len(functions) == len(grid.bias)
    require(fits and all(a <= b for a, b in zip(low, high, strict=True)), "a grid and a target of other sizes")
    model = arithmetic_of(dtype)
    cuts, rounding = grid_rounding(grid, low, high, model, 0.02 * stated)
    require(float(rounding.min()) < stated, f"a bound of {stated:.6g} on a grid whose rounding alone is larger")
    with precision(cap=MAX_DEGREE + 2):
        proof = _Proof(grid, list(functions), list(variables), cuts, rounding, stated)
        return proof.cover([(float(a), float(b)) for a, b in zip(low, high, strict=True)])


class _Lossy(Exception):
    """Sums over anchors lose too much in float64: they are to be taken in balls."""


@dataclass(eq=False)
class _Proof:
    grid: Grid
    functions: list[Expression]
    variables: list[str]
    cuts: list[np.ndarray]
    rounding: np.ndarray
    stated: float
    parts: int = 0

    def cover(self, box: list[Interval]) -> int:
        waiting, boxes = [box], 0
        while waiting:
            box, boxes = waiting.pop(), boxes + 1
            counts, rest, worst = self._counts(box)
            if counts is not None:
                self._box(box, counts, rest)
                continue
            low, high = box[worst]
            middle = low / 2 + high / 2
            if boxes > MAX_BOXES or not low < middle < high:
                raise NotVerified(f"functions of a grid are not known to be smooth near {_shown(box)}")
            waiting += [[*box[:worst], half, *box[worst + 1 :]] for half in ((low, middle), (middle, high))]
        return self.parts

    def _counts(self, box: list[Interval]) -> tuple[list[int] | None, float, int]:
        """How many points along each axis, and the rest of the interpolation; or None and the axis to halve."""
        balls = [hull(*one) for one in box]
        allowed, norm, rest, counts, wanted = REST * self.stated / len(box), 1.0, 0.0, [], []
        for j, (low, high) in enumerate(box):
            half = above((exact(high) - exact(low)) / 2)
            bounds = self._derivatives(balls, j)
            errors = [2 * (half / 2) ** n * bound * norm for n, bound in enumerate(bounds)]
            good = [n for n, error in enumerate(errors) if n > 0 and error <= allowed]
            counts.append(good[0] if good else MAX_DEGREE)
            wanted.append(good[0] if good else 1000 + half)
            if good:
                rest += errors[good[0]] * SLACK
            norm *= 1 + 2 / math.pi * math.log(counts[-1]) + 1e-9
        fine = max(wanted) < 1000 and math.prod(counts) <= MAX_NODES
        return (counts if fine else None), rest, int(np.argmax(wanted))

    def _derivatives(self, balls: list[arb], j: int) -> list[float]:
        """Bounds on |d_j^n f| / n! on the box, n = 0, 1, …; infinite where a function may not be smooth."""
        at: dict[str, arb_series | arb] = dict(zip(self.variables, balls, strict=True))
        at[self.variables[j]] = arb_series([balls[j], 1], prec=MAX_DEGREE + 2)
        most = [0.0] * (MAX_DEGREE + 2)
        for function in self.functions:
            try:
                found = function.series(at)
            except Undecided:
                return [math.inf] * len(most)
            most = [max(pair) for pair in zip(most, map(size, coefficients(found, len(most))), strict=True)]
        return most

    def _box(self, box: list[Interval], counts: list[int], rest: float) -> None:
        values, off = self._values(box, counts)
        found, error = from_values(values, len(box))
        norm = math.prod(1 + 2 / math.pi * math.log(n) + 1e-9 for n in counts)
        most = float(np.abs(self.grid.values).max())
        for kind in (np.float64, object):
            with contextlib.suppress(_Lossy):
                start = Expanded(self.grid.values.astype(kind), 0, 0.0)
                return self._part(box, [], found, rest + off * norm + error, start, most)
        raise NotVerified(f"sums of a grid cancel too much near {_shown(box)}")

    def _values(self, box: list[Interval], counts: list[int]) -> tuple[np.ndarray, float]:
        """f at the Chebyshev points of the box, and how far off they may be."""
        axes = [_nodes(*one, n) for one, n in zip(box, counts, strict=True)]
        places = [[-1 if i == j else 1 for i in range(len(axes))] for j in range(len(axes))]
        grids = [np.array(axis, dtype=object).reshape(place) for axis, place in zip(axes, places, strict=True)]
        values = np.empty((*counts, len(self.functions)))
        off = 0.0
        for i, function in enumerate(self.functions):
            balls = evaluated(function, dict(zip(self.variables, grids, strict=True)), ON_ARRAYS)
            middle = np.asarray(_MIDDLE(balls), np.float64)
            values[..., i] = middle
            off = max(off, float((np.asarray(_RADIUS(balls), np.float64) + 2 * OWN_UNIT * np.abs(middle)).max()))
        if not np.isfinite(values).all() or not off < math.inf:
            raise NotVerified(f"functions of a grid are not finite near {_shown(box)}")
        return values, off * SLACK

    def _part(
        self, box: list[Interval], part: list[Interval], f: np.ndarray, rest: float, head: Expanded, most: float
    ) -> None:
        """Along one axis after the other: the parts of the box, with f and the head expanded on each."""
        j = len(part)
        if j == len(box):
            return self._leaf(part, f, rest, head)
        low, high = box[j]
        allowed = 0.1 * REST * self.stated / len(box)
        for piece in self.grid.pieces(j, low, high):
            matrix, rounded, left = self.grid.coefficients(j, *piece, allowed / max(most, 1e-300))
            matrix = matrix if head.tensor.dtype == object else rounded
            within, lost = on_part(f, j, box[j], piece)
            more = head.along_next(matrix, left, most, allowed)
            self._part(box, [*part, piece], within, rest + lost, more, most)
        return None

    def _leaf(self, part: list[Interval], f: np.ndarray, rest: float, head: Expanded) -> None:
        if head.error > 3 * REST * self.stated:
            raise _Lossy
        self.parts += 1
        require(self.parts <= MAX_PARTS, f"a grid that takes more than {MAX_PARTS:,} parts")
        tensor = head.tensor.astype(np.float64)
        error = (
            rest
            + head.error
            + head.radii
            + 2 * OWN_UNIT * float(np.abs(tensor).sum() + np.abs(f).sum() + np.abs(self.grid.bias).max())
        )
        cells = [slice(*_between(cuts, *one)) for cuts, one in zip(self.cuts, part, strict=True)]
        goal = self.stated - (error + float(self.rounding[tuple(cells)].max())) * SLACK
        for i, bias in enumerate(self.grid.bias):
            p = added(f[..., i], tensor[..., i])
            p.flat[0] -= bias
            bound = largest(p, goal)
            if not bound <= goal:
                shown = self.stated + bound - goal
                raise NotVerified(
                    f"a bound of {self.stated:.6g} on a grid: near {_shown(part)} only {shown:.6g} is shown"
                )


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
_MIDDLE = np.frompyfunc(lambda ball: float(ball.mid()), 1, 1)
_RADIUS = np.frompyfunc(lambda ball: above(ball.rad()), 1, 1)


def _nodes(low: float, high: float, n: int) -> list[arb]:
    centre, half = (exact(low) + exact(high)) / 2, (exact(high) - exact(low)) / 2
    return [centre + half * (arb.pi() * (2 * k + 1) / (2 * n)).cos() for k in range(n)]


def _between(cuts: np.ndarray, low: float, high: float) -> tuple[int, int]:
    """The cells that touch an interval."""
    first = int(np.searchsorted(cuts, low, side="left")) - 1
    last = int(np.searchsorted(cuts, high, side="right"))
    return max(0, first), min(len(cuts) - 1, max(last, 1))


def _shown(box: Sequence[Interval]) -> str:
    return ", ".join(f"[{one[0]:.6g}, {one[-1]:.6g}]" for one in box)
