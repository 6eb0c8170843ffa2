"""All zeros of an analytic expression of one variable on an interval, proven: outside the balls returned it
has none.

Cells are halved until interval arithmetic shows that the function, or its mean value form, has one sign; or
that it is monotone, so that its ends decide and an interval Newton iteration locates the one zero; or that a
point c of few bits is an exact zero of order k and the k-th derivative has one sign, so that c is the only
zero. A cell at the floor of the bisection that is still undecided (a zero of higher order, a near miss) is
returned as a ball as well.
"""

from __future__ import annotations

from functools import cmp_to_key

from flint import arb

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import Expression

PRECISION = 256
_FLOOR, _LOCATED = arb(2) ** -110, arb(2) ** -200


class Budget:
    """The work that one analysis may take, in evaluations of cells."""

    def __init__(self, subject: str, steps: int = 10_000) -> None:
        self.subject, self.steps, self.left = subject, steps, steps

    def spend(self, name: str, at: arb) -> None:
        self.left -= 1
        if self.left < 0:
            raise AnchorheadError(
                f"the kinks of {self.subject} are too many to find: {self.steps:,} steps were not enough "
                f"near {name} = {float(at.mid()):.6g}, where it oscillates too fast or is undecided; "
                "give a smaller domain"
            )


def sign(value: arb) -> int | None:
    """1 or -1 if a ball has one sign, 0 if it is exactly 0, None if it is not known."""
    return 1 if value > 0 else -1 if value < 0 else 0 if value.is_zero() else None


def zeros(u: Expression, name: str, low: arb, high: arb, budget: Budget) -> list[arb]:
    """Balls, sorted and disjoint, that contain every zero of u on [low, high] (two exact numbers)."""
    form = u.affine()
    if form is not None:
        slope = form[0].get(name, arb(0))
        if slope.is_zero():
            return [] if sign(form[1]) else [low.union(high)]
        if sign(slope):  # compared with the ends themselves: as a ball, their hull is rounded outwards
            root = -form[1] / slope
            return [] if root < low or root > high else [root]
    return _Search(u, name, low, high, budget).run()


class _Search:
    def __init__(self, u: Expression, name: str, low: arb, high: arb, budget: Budget) -> None:
        self.derivatives = [u, u.derivative(name)]
        self.name, self.low, self.high, self.budget = name, low, high, budget
        self.width = high - low

    def order(self, k: int, x: arb) -> arb:
        """The k-th derivative at x."""
        while len(self.derivatives) <= k:
            self.derivatives.append(self.derivatives[-1].derivative(self.name))
        return self.derivatives[k].ball({self.name: x})

    def run(self) -> list[arb]:
        found: list[arb] = []
        cells = [(self.low, self.high)]
        while cells:
            low, high = cells.pop()
            decided = self.decide(low, high)
            if decided is None:
                middle = ((low + high) / 2).mid()
                cells += [(middle, high), (low, middle)]
            else:
                found += decided
        return merged(found)

    def decide(self, low: arb, high: arb) -> list[arb] | None:
        """The zeros in one cell; None if it must be halved."""
        cell = low.union(high)
        self.budget.spend(self.name, cell)
        value = self.order(0, cell)
        if sign(value):
            return []
        slope = self.order(1, cell)
        if sign(slope):
            return self.monotone(low, high, slope)
        middle = cell.mid()
        if sign(self.order(0, middle) + slope * (cell - middle)):
            return []
        width = high - low
        if width < self.width / 4096:
            point = simplest(low, high)
            if self.only_zero(point, cell):
                return [point]
        return [cell] if width <= self.width * _FLOOR else None

    def only_zero(self, point: arb, cell: arb) -> bool:
        """Whether point is an exact zero, of order at most 4, and the cell has no other."""
        for k in range(5):
            if not self.order(k, point).is_zero():
                return k > 0 and bool(sign(self.order(k, cell)))
        return False

    def monotone(self, low: arb, high: arb, slope: arb) -> list[arb]:
        at_low, at_high = self.order(0, low), self.order(0, high)
        for end, value in ((low, at_low), (high, at_high)):
            if value.is_zero():
                return [end]
            if sign(value) is None:  # the zero, if there is one, lies where Newton's step from this end leads
                return [end - value / slope]
        return [] if sign(at_low) == sign(at_high) else [self.newton(low.union(high), slope)]

    def newton(self, cell: arb, slope: arb) -> arb:
        """The one zero of a monotone function in a cell, by the interval Newton iteration."""
        small = self.width * _LOCATED
        while cell.rad() > small and cell.rad() > abs(cell.mid()) * _LOCATED:
            middle = cell.mid()
            smaller = cell.intersection(middle - self.order(0, middle) / slope)
            if not smaller.rad() < cell.rad() * 0.75:
                break
            cell, slope = smaller, self.order(1, smaller)
        point = simplest(cell.lower(), cell.upper())
        return point if cell.contains(point) and self.order(0, point).is_zero() else cell


def simplest(low: arb, high: arb) -> arb:
    """A number of few bits in [low, high]: 0, or a multiple of the largest power of 2 that has one there."""
    if low <= 0 and high >= 0:
        return arb(0)
    width = (high - low).lower()
    if not width > 0:
        return low
    mantissa, exponent = width.mid().man_exp()
    scale = arb(2) ** (int(exponent) + int(mantissa).bit_length() - 1)
    if (point := (low / (2 * scale)).ceil() * (2 * scale)) <= high:
        return point
    return (low / scale).ceil() * scale


def merged(balls: list[arb]) -> list[arb]:
    """The same set as disjoint balls from left to right."""
    result: list[arb] = []
    for ball in sorted(balls, key=cmp_to_key(lambda a, b: -1 if a.mid() < b.mid() else 1)):
        if result and result[-1].overlaps(ball):
            result[-1] = hull(result[-1], ball)
        else:
            result.append(ball)
    return result


def hull(a: arb, b: arb) -> arb:
    """The smallest ball around both, exact if both are the same point."""
    return a if a.is_exact() and b.is_exact() and a == b else a.union(b)
