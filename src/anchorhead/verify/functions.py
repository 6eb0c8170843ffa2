"""What is known of a function of one variable on an interval: its range, and how fast it changes.

Both by bisection, widest cells first, over Taylor series of length 3 whose constant term is a whole cell: coefficient 1
then holds f' on the cell, and f'(middle) + f''(cell) (x - middle) does. On cells on which f is not analytic (a kink
lies inside) difference quotients take the place of f' (`programs.slopes`). Where these are not known, or much larger
than elsewhere, cells are halved until they are narrow, and then bounded by ranges.

Lemma. |f(x) - f(y)| <= slope |x - y| + jump. On the way from x to y, cells whose slopes are known add at most slope
times what of them is passed, and each of the others at most the difference of its largest and its smallest value, of
which jump is the sum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from flint import arb, arb_series

from anchorhead.verify.balls import above, below, coefficient, exact, precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.expressions import Expression, Undecided
from anchorhead.verify.programs.numbers import Range
from anchorhead.verify.programs.slopes import slope_along
from anchorhead.verify.programs.text import written

NARROW = 2.0**-80
"""Of the interval: a cell that is not halved any more."""
CLOSE, FINE, LOST = 1.003, 1e-9, 2.0**-50
"""The slope is found to within 0.3%, the range to within FINE of it, and LOST of its ends, which are float64."""
MAX_CELLS, MAX_NODES = 40_000, 4_000_000
"""Of one function; and nodes of its expression that are looked at on all cells together."""
NO_OTHERS: Mapping[str, arb] = {}
STEEP = 1000
"""A slope that is so many times the quotient of the range and of where f is not flat: that of sqrt at 0 would be as
large as cells are narrow."""


@dataclass(frozen=True)
class Behaviour:
    """f on an interval: its values, |f(x) - f(y)| <= slope |x - y| + jump, and where it may turn.

    steep   whether the slope is far from that of most of the interval
    turns   cells (left, right, low, high): outside of these f is monotone, inside it stays between low and high
    """

    low: float
    high: float
    slope: float
    jump: float
    turns: tuple[tuple[float, float, float, float], ...]
    steep: bool


@cache
def behaviour(f: Expression, low: float, high: float) -> Behaviour:
    """Of f between two floats; f is refused where it is not defined throughout."""
    with precision(96, 4):
        return _Search(f, low, high).run()


def quotients(f: Expression, name: str, a: arb, b: arb, others: Mapping[str, arb] = NO_OTHERS) -> arb:
    """A ball of the difference quotients of f along a variable between a and b: f' on the cell, or f' in its middle,
    give or take what f'' allows; where f is not analytic, slopes. No number where nothing is known."""
    middle, cell = ((a + b) / 2).mid(), a.union(b)
    try:
        here, wide = (f.series({**others, name: arb_series([at, 1], prec=3)}) for at in (middle, cell))
    except Undecided:
        return slope_along(name, f, {**others, name: cell})
    whole = coefficient(wide, 1)
    around = coefficient(here, 1) + 2 * coefficient(wide, 2) * arb(0, (b - a) / 2)
    return around if around.rad() < whole.rad() else whole


def clipped(f: Expression, low: float, high: float) -> Expression:
    """f(clip(x, low, high)), which is defined everywhere if f is between the two ends."""
    (name,) = f.variables
    nodes: list[tuple] = [("variable", name, ()), ("number", low, ()), ("number", high, ()), ("clip", None, (0, 1, 2))]
    places: list[int] = []
    for op, data, inner in f.nodes:
        places.append(3 if op == "variable" else len(nodes))
        if op != "variable":
            nodes.append((op, data, tuple(places[one] for one in inner)))
    return Expression.of(tuple(nodes))


def is_defined(f: Expression, at: float) -> bool:
    name = f.variables[0] if f.variables else "x"
    with precision(96, 4):
        return f.range({name: exact(at)}).known


def range_on(f: Expression, known: Behaviour, low: float, high: float) -> tuple[float, float]:
    """Between what f stays on a part of the interval: its values at the ends, and where it may turn in between."""
    name = f.variables[0] if f.variables else "x"
    with precision(96, 4):
        at = [f.ball({name: exact(end)}) for end in (low, high)]
    inside = [turn for turn in known.turns if turn[0] <= high and turn[1] >= low]
    least = min([*map(below, at), *(turn[2] for turn in inside)])
    most = max([*map(above, at), *(turn[3] for turn in inside)])
    return max(least, known.low), min(most, known.high)


class _Search:
    def __init__(self, f: Expression, low: float, high: float) -> None:
        self.f, self.name = f, f.variables[0] if f.variables else "x"
        self.start, self.end = exact(low), exact(high)
        self.narrow = (self.end - self.start) * exact(NARROW)
        self.known = [float("inf"), float("-inf")]  # values that f surely reaches
        self.steepest = 0.0

    def run(self) -> Behaviour:
        least, most, slope, jump = float("inf"), float("-inf"), 0.0, 0.0
        for end in (self.start, self.end):
            self._met(end)
        waiting = deque([(self.start, self.end)])
        turns: list[tuple[float, float, float, float]] = []
        cells, moving = 0, arb(0)
        while waiting:
            a, b = waiting.popleft()
            cells += 1
            if cells > MAX_CELLS or cells * len(self.f.nodes) > MAX_NODES:
                raise NotVerified(
                    f"{written(self.f)} is not bounded within {cells - 1} cells on [{self.start}, {self.end}]"
                )
            middle = ((a + b) / 2).mid()
            self._met(middle)
            slopes, (low, high) = self._on(a, b, middle)
            if slopes is None:
                good = not b - a > self.narrow
            else:
                steep = above(abs(slopes))
                self.steepest = max(self.steepest, below(abs(slopes)))
                good = steep <= max(CLOSE * self.steepest, slope, 1e-12)
            room = FINE * max(self.known[1] - self.known[0], 0.0) + LOST * max(map(abs, self.known)) + 1e-300
            inside = low >= self.known[0] - room and high <= self.known[1] + room
            turning = slopes is None or not (slopes >= 0 or slopes <= 0)
            inside = inside and not (turning and high - low > 10 * room)
            if not (good and inside) and b - a > self.narrow:
                waiting += [(a, middle), (middle, b)]
                continue
            if slopes is None or not good:
                jump += high - low
            else:
                slope = max(slope, above(abs(slopes)))
                moving += 0 if slopes.is_zero() else b - a
            if turning:
                turns.append((below(a), above(b), low, high))
            least, most = min(least, low), max(most, high)
        if not most - least < float("inf"):
            raise NotVerified(f"{written(self.f)} is not finite on [{self.start}, {self.end}]")
        steep = slope * float(moving) > STEEP * (most - least)
        return Behaviour(least, most, slope, jump, tuple(turns), steep)

    def _met(self, point: arb) -> None:
        value = self.f.ball({self.name: point})
        self.known = [min(self.known[0], above(value)), max(self.known[1], below(value))]

    def _on(self, a: arb, b: arb, middle: arb) -> tuple[arb | None, tuple[float, float]]:
        """f' or quotients on a cell, if known, and between what f stays: at the ends where it is monotone."""
        values = self.f.range({self.name: Range(a, b)})
        whole = below(values.low), above(values.high)
        slopes = quotients(self.f, self.name, a, b)
        if not slopes.is_finite():
            return None, whole
        if slopes >= 0 or slopes <= 0:
            ends = [self.f.ball({self.name: end}) for end in (a, b)]
            return slopes, (min(map(below, ends)), max(map(above, ends)))
        around = self.f.ball({self.name: middle}) + slopes * arb(0, (b - a) / 2)
        return slopes, (max(whole[0], below(around)), min(whole[1], above(around)))
