"""Between what a function lies, in balls: on a box, on the pieces of an interval, on each of many intervals at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import inf, isfinite

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.pieces import Pieces, analyse
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.balls import lower, upper
from anchorhead.proof.remembered import remembered

PRECISION = 192
MAX_CELLS, ROUNDS = 4_000, 24
LOOSE, NEXT_TO_NOTHING = 0.01, 1e-12
CUT = (2.0**-12, 2.0**-20, 2.0**-28, 2.0**-36, 2.0**-44, 2.0**-52)
"""Parts of an interval that are cut off next to where a slope is not bounded."""
Interval = tuple[arb | float, arb | float]
Cell = tuple[tuple[arb, arb], ...]
Ends = Float[np.ndarray, " n"]


def range_on_box(f: Expression, box: Mapping[str, Interval]) -> tuple[float, float]:
    """Numbers below and above all values of f on a box, by balls on cells that are halved along one axis or another."""
    low, high = inf, -inf
    done: list[tuple[float, float]] = []
    wide: list[tuple[Cell, float, float]] = []
    names = tuple(box)
    with precision(PRECISION):
        cells: list[Cell] = [tuple((arb(a), arb(b)) for a, b in box.values())]
        for turn in range(ROUNDS * len(names)):
            found = []
            for cell in cells:
                at = f.ball({name: ((a + b) / 2).mid() for name, (a, b) in zip(names, cell, strict=True)})
                ball = f.ball({name: a.union(b) for name, (a, b) in zip(names, cell, strict=True)})
                low, high = min(low, upper(at)), max(high, lower(at))
                found.append((cell, lower(ball), upper(ball)))
            least = low - LOOSE * abs(low) - NEXT_TO_NOTHING * abs(high)
            most = high + LOOSE * abs(high) + NEXT_TO_NOTHING * abs(low)
            wide = [one for one in found if not (least <= one[1] and one[2] <= most)]
            done += [one[1:] for one in found if least <= one[1] and one[2] <= most]
            if not wide or 2 * len(wide) > MAX_CELLS:
                break
            cells = [half for cell, *_ in wide for half in _halves(cell, turn % len(names))]
    done += [one[1:] for one in wide]
    return min(one[0] for one in done), max(one[1] for one in done)


def _halves(cell: Cell, axis: int) -> Iterator[Cell]:
    left, right = cell[axis]
    middle = ((left + right) / 2).mid()
    for half in ((left, middle), (middle, right)):
        yield (*cell[:axis], half, *cell[axis + 1 :])


def slopes_on_pieces(pieces: Pieces) -> tuple[float, float]:
    """Numbers below and above all slopes of a function, wherever it has one."""
    found = []
    for piece in pieces.pieces:
        with precision(PRECISION):
            ends = piece.left.lower(), piece.right.upper()
        found.append(range_on_box(piece.expression.derivative(pieces.variable), {pieces.variable: ends}))
    return min(one[0] for one in found), max(one[1] for one in found)


@lru_cache(maxsize=256)
def slope_bound(activation: Expression, low: float, high: float) -> float:
    """L >= |phi'| on [low, high]."""
    least, most = slopes_on_pieces(analyse(activation, low, high))
    if not isfinite(bound := max(-least, most)):
        raise AnchorheadError(f"the slope of {activation} is not bounded on [{low:g}, {high:g}]: choose another domain")
    return bound * UP


@lru_cache(maxsize=256)
def moves_bounds(activation: Expression, low: float, high: float) -> tuple[tuple[float, float], ...]:
    """Pairs (L, J) with |phi(x) - phi(y)| <= L |x - y| + J on [low, high], beside what phi may jump by: one, with J 0,
    where slopes are bounded. Where they are not, as those of sqrt at 0, the ends of the pieces are cut off, more or
    less of them: on the way from x to y each is passed once at most, and adds no more than its largest value less its
    smallest. The steeper, the later.
    """
    pieces = analyse(activation, low, high)
    found = [_moves(pieces, part * (high - low)) for part in (0.0, *CUT)]
    known = tuple(pair for pair in found if isfinite(sum(pair)))
    if not known:
        raise AnchorheadError(f"the slope of {activation} is not bounded on [{low:g}, {high:g}]: choose another domain")
    return known[:1] if known[0][1] == 0 else known


def _moves(pieces: Pieces, cut: float) -> tuple[float, float]:
    """The largest slope where it is bounded, or beside what is cut off, and the sum of what that moves by."""
    slope, moved = 0.0, 0.0
    for piece in pieces.pieces:
        f, derivative, name = piece.expression, piece.expression.derivative(pieces.variable), pieces.variable
        with precision(PRECISION):
            left, right = piece.left.lower(), piece.right.upper()
            inner = [(left, right)]
            ends = [(left, left + cut), (left + cut, right - cut), (right - cut, right)]
        steep = _largest(range_on_box(derivative, {name: inner[0]}))
        if not isfinite(steep) and cut:
            wide = bool(ends[1][0] < ends[1][1])
            steep = _largest(range_on_box(derivative, {name: ends[1]})) if wide else 0.0
            for cell in (ends[0], ends[2]) if wide else inner:
                least, most = range_on_box(f, {name: cell})
                moved += (most - least) * UP
        slope = max(slope, steep)
    return slope * UP, moved * UP


def _largest(ends: tuple[float, float]) -> float:
    return max(-ends[0], ends[1])


@dataclass(frozen=True, eq=False)
class CellRanges:
    """edges (cells + 1,) ascending; least and most (levels, cells): bounds on f over 2^level cells from each on."""

    edges: Float[np.ndarray, " edges"]
    least: Float[np.ndarray, "levels cells"]
    most: Float[np.ndarray, "levels cells"]

    @classmethod
    def of(
        cls,
        f: Expression,
        variable: str,
        edges: Float[np.ndarray, " edges"],
        within: tuple[float, float] = (-inf, inf),
        others: Mapping[str, Sequence[arb]] | None = None,
    ) -> CellRanges:
        """From enclosures on each cell, cut to what f is known to be within.

        others   what other variables may be: a ball of some
        """
        sides = [dict(zip(others or (), balls, strict=True)) for balls in product(*(others or {}).values())]
        cells = [arb(a).union(arb(b)) for a, b in pairwise(edges.tolist())]
        balls = [[f.ball({variable: cell, **side}) for side in sides] for cell in cells]
        least = np.maximum([min(map(lower, row)) for row in balls], within[0])
        most = np.minimum([max(map(upper, row)) for row in balls], within[1])
        return cls(edges, _over_more(least, np.minimum), _over_more(most, np.maximum))

    def between(self, low: Ends, high: Ends) -> tuple[Ends, Ends]:
        """Bounds from below and above on f over [low_i, high_i], cut to where there are cells."""
        last = len(self.edges) - 2
        first = np.clip(np.searchsorted(self.edges, low, side="right") - 1, 0, last)
        after = np.clip(np.searchsorted(self.edges, high, side="left"), first + 1, last + 1)
        level = np.frexp(after - first)[1] - 1
        second = after - (1 << level)
        return (
            np.minimum(self.least[level, first], self.least[level, second]),
            np.maximum(self.most[level, first], self.most[level, second]),
        )


def _over_more(first: Float[np.ndarray, " cells"], pick: np.ufunc) -> Float[np.ndarray, "levels cells"]:
    """Row l: the extreme over 2^l cells from each one on, as far as there are cells."""
    rows, width = [first], 1
    while 2 * width <= len(first):
        shifted = np.concatenate([rows[-1][width:], np.full(width, rows[-1][-1])])
        rows.append(pick(rows[-1], shifted))
        width *= 2
    return np.stack(rows)


def range_of(activation: Expression, low: np.ndarray, high: np.ndarray, cells: int = 1024) -> tuple[Ends, Ends]:
    """For each interval [low_i, high_i] ends that phi does not leave there.

    Enclosures on cells that all share; where an interval is shorter than a few of them, one on itself as well. What was
    asked for before is remembered: conversions try many heads on the same intervals.
    """
    least, most = _ranges(activation, np.asarray(low, float), np.asarray(high, float), cells)
    return least.copy(), most.copy()


@remembered(64)
def _ranges(activation: Expression, low: Ends, high: Ends, cells: int) -> tuple[Ends, Ends]:
    variable = (activation.variables or ("x",))[0]
    cuts = np.linspace(float(low.min()), float(high.max()), cells + 1)
    short = np.flatnonzero(high - low < 4 * (cuts[-1] - cuts[0]) / cells)
    with precision(64):
        least, most = CellRanges.of(activation, variable, cuts).between(low, high)
        own = [activation.ball({variable: arb(low[n]).union(arb(high[n]))}) for n in short.tolist()]
    least[short] = np.maximum(least[short], [lower(ball) for ball in own])
    most[short] = np.minimum(most[short], [upper(ball) for ball in own])
    return least, most
