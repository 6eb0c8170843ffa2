"""A softmax over a tensor grid of anchors against a function of up to four variables.

Claim: for every x of the dtype in a box |computed r(x) - f(x)| <= stated.

On a box of half widths h_j let I_j interpolate along x_j at n_j Chebyshev points. Then, for f and for r,

    |g - I_1 … I_d g| <= sum_j |I_1| … |I_(j-1)| sup |g - I_j g|,      |I| <= 1 + (2/pi) ln n,
    |f - I_j f| <= 2 (h_j/2)^(n_j) sup |d_j^(n_j) f| / n_j!,           |r - I_j r| by the lemma of `head`,

the derivatives being bounded by Taylor series over the box itself (arb_series along x_j, balls for the others). The
interpolant of r - f is a polynomial that is known from values at points (`points`), and bounded (`polynomial`); it, the
rests and the rounding on the box (`rounding`) have to add up to no more than what is stated. Boxes on which that is
not shown are halved; first of all those on which the function is not smooth enough, so that a kink is met early.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, coefficient, exact, hull, precision, size
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.points import on_tensor
from anchorhead.verify.grids.polynomial import chebyshev_points, from_values, largest
from anchorhead.verify.grids.rounding import grid_rounding
from anchorhead.verify.programs.expressions import Expression, Undecided
from anchorhead.verify.rounding import OWN_UNIT, SLACK, arithmetic_of

Interval = tuple[float, float]
MAX_DEGREE, MAX_NODES = 24, 15_000
MAX_BOXES, MAX_POINTS = 2_000, 4_000_000
"""Boxes, and points in all of them."""
REST = 0.001
"""Of what is stated: what each kind of rest may add."""


def verify_grid(
    grid: Grid,
    function: Expression,
    variables: Sequence[str],
    low: Sequence[float],
    high: Sequence[float],
    dtype: str,
    stated: float,
) -> int:
    """The number of boxes that it took; raises NotVerified where the bound does not follow."""
    grid.check()
    fits = len(grid.axes) == len(variables) == len(low) == len(high)
    require(fits and all(a <= b for a, b in zip(low, high, strict=True)), "a grid and a target of other sizes")
    model, box = arithmetic_of(dtype), [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    with precision(cap=MAX_DEGREE + 2):
        cuts, rounding = grid_rounding(grid, low, high, model, 0.02 * stated)
        require(float(rounding.min()) < stated, f"a bound of {stated:.6g} on a grid whose rounding alone is larger")
        return _Proof(grid, function, list(variables), cuts, rounding, stated).cover(box)


@dataclass(frozen=True, eq=False)
class _Box:
    """counts: points along each axis. rest: what interpolation at these leaves, at most."""

    sides: list[Interval]
    counts: list[int]
    rest: float


@dataclass(eq=False)
class _Proof:
    grid: Grid
    function: Expression
    variables: list[str]
    cuts: list[np.ndarray]
    rounding: np.ndarray
    stated: float
    boxes: int = 0
    points: int = 0
    _heads: dict[tuple[int, float, float], list[float]] = field(default_factory=dict)
    _weights: dict[tuple[int, Interval, int], np.ndarray] = field(default_factory=dict)

    def cover(self, box: list[Interval]) -> int:
        waiting = self._smooth(box)
        while waiting:
            one = waiting.pop()
            worst = self._unproven(one)
            if worst is not None:
                for half in _halves(one.sides, worst):
                    waiting += self._smooth(half)
        return self.boxes

    def _smooth(self, box: list[Interval]) -> list[_Box]:
        """The box in parts on which interpolation leaves next to nothing."""
        waiting, found = [box], []
        while waiting:
            box = waiting.pop()
            counts, rest, worst = self._counts(box)
            self.boxes += 1
            if counts is None:
                waiting += _halves(box, worst)
            else:
                found.append(_Box(box, counts, rest))
                self.points += math.prod(counts)
            fits = self.boxes <= MAX_BOXES and self.points <= MAX_POINTS
            require(fits, f"a grid that takes more than {MAX_BOXES:,} boxes or {MAX_POINTS:,} points")
        return found

    def _counts(self, box: list[Interval]) -> tuple[list[int] | None, float, int]:
        """How many points along each axis, and the rest of the interpolation; or None and the axis to halve."""
        balls = [hull(*one) for one in box]
        allowed, norm, rest, counts, wanted = REST * self.stated / len(box), 1.0, 0.0, [], []
        for j, (low, high) in enumerate(box):
            half = above((exact(high) - exact(low)) / 2)
            bounds = self._derivatives(balls, j)
            heads = self._interpolated(j, low, high, 0.1 * allowed)
            errors = [
                norm * (2 * (half / 2) ** n * bound + head)
                for n, (bound, head) in enumerate(zip(bounds, heads, strict=True))
            ]
            good = [n for n, error in enumerate(errors) if n > 0 and error <= allowed]
            counts.append(good[0] if good else MAX_DEGREE)
            wanted.append(good[0] if good else 1000 + half)
            rest += errors[counts[-1]] * SLACK
            norm *= 1 + 2 / math.pi * math.log(counts[-1]) + 1e-9
        fine = max(wanted) < 1000 and math.prod(counts) <= MAX_NODES
        return (counts if fine else None), rest, int(np.argmax(wanted))

    def _interpolated(self, j: int, low: float, high: float, allowed: float) -> list[float]:
        """Bounds on |r - I_j r| for 0, 1, … points."""
        place = j, low, high
        if place not in self._heads:
            self._heads[place] = self.grid.interpolation_errors(j, low, high, allowed, MAX_DEGREE + 1)
        return self._heads[place]

    def _derivatives(self, balls: list[arb], j: int) -> list[float]:
        """Bounds on |d_j^n f| / n! on the box, n = 0, 1, …; infinite where f may not be smooth."""
        at: dict[str, arb_series | arb] = dict(zip(self.variables, balls, strict=True))
        at[self.variables[j]] = arb_series([balls[j], 1], prec=MAX_DEGREE + 2)
        try:
            found = self.function.series(at)
            return [size(coefficient(found, n)) for n in range(MAX_DEGREE + 2)]
        except Undecided:
            return [math.inf] * (MAX_DEGREE + 2)

    def _unproven(self, box: _Box) -> int | None:
        """Nothing, if the bound follows on the box; else the axis along which to halve it. Raises where it is hopeless:
        what is met at a point, and the rests and the smallest rounding, are more than what is stated."""
        axes = [chebyshev_points(*side, n) for side, n in zip(box.sides, box.counts, strict=True)]
        read, off = self.grid.at([self._weights_at(j, axis, box) for j, axis in enumerate(axes)], REST * self.stated)
        truth, more = on_tensor(self.function, self.variables, axes)
        p, error = from_values(read - truth)
        norm = math.prod(1 + 2 / math.pi * math.log(n) + 1e-9 for n in box.counts)
        sizes = float(np.abs(read).max() + np.abs(truth).max())
        error += box.rest + (off + more + 2 * OWN_UNIT * sizes) * norm
        cells = [slice(*_between(cuts, *one)) for cuts, one in zip(self.cuts, box.sides, strict=True)]
        rounding = self.rounding[tuple(cells)]
        met, bound, worst = largest(p, self.stated - (error + float(rounding.max())) * SLACK)
        shown = met + error + float(rounding.min())
        if not shown <= self.stated:
            raise NotVerified(
                f"a bound of {self.stated:.6g} on a grid: near {_shown(box.sides)} only {shown:.6g} is shown"
            )
        if (bound + error + float(rounding.max())) * SLACK <= self.stated:
            return None
        shares = [np.ptp(side) / (np.ptp(cuts) or 1.0) for side, cuts in zip(box.sides, self.cuts, strict=True)]
        return worst if bound - met > np.ptp(rounding) else int(np.argmax(shares))

    def _weights_at(self, j: int, points: list[arb], box: _Box) -> np.ndarray:
        place = j, box.sides[j], box.counts[j]
        if place not in self._weights:
            self._weights[place] = self.grid.weights(j, points)
        return self._weights[place]


def _halves(box: list[Interval], worst: int) -> list[list[Interval]]:
    low, high = box[worst]
    middle = low / 2 + high / 2
    require(low < middle < high, f"the function of a grid is not known to be smooth near {_shown(box)}")
    return [[*box[:worst], half, *box[worst + 1 :]] for half in ((low, middle), (middle, high))]


def _between(cuts: np.ndarray, low: float, high: float) -> tuple[int, int]:
    """The cells that touch an interval."""
    first = int(np.searchsorted(cuts, low, side="left")) - 1
    last = int(np.searchsorted(cuts, high, side="right"))
    return max(0, first), min(len(cuts) - 1, max(last, 1))


def _shown(box: Sequence[Interval]) -> str:
    return ", ".join(f"[{one[0]:.6g}, {one[-1]:.6g}]" for one in box)
