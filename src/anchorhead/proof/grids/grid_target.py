"""A function of several variables around a box: how far it is from polynomials along each axis, and its values.

Fix all variables but x_j, real and in the box, and map [a_j, b_j] to [-1, 1]. Let f be analytic in x_j on a
neighbourhood of the closed Bernstein ellipse with parameter rho, and |f| <= M there, whatever the other variables are.
Then f = sum_i a_i T_i with |a_i| <= 2 M rho^-i. Let I_j f be the polynomial of degree n in x_j that agrees with f at
cos(k pi / n). There T_i equals some T_i' with i' <= n, so

    |f - I_j f| <= 2 sum_{i > n} |a_i| <= 4 M rho^-n / (rho - 1).

M is found by covering the ellipse, times the intervals of the other variables, with products of rectangles and
intervals, and not its rim alone: finite enclosures by analytic primitives prove f analytic there. The upper half of the
ellipse is enough, because f(conj z) = conj f(z).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from flint import acb, arb

from anchorhead.language.expressions.balls import RULES
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.balls import upper

RHOS = (1.06, 1.12, 1.2, 1.3, 1.45, 1.6, 1.8, 2.1, 2.5, 3.0, 3.7, 4.6, 6.0, 8.0, 11.0, 15.0)
_BUDGET = 700  # enclosures for one ellipse
_AMPLE = 20.0  # times the size on the box: a smaller M saves hardly a degree
_SLAB = 20_000  # balls held at once

Rectangle = tuple[float, float, float, float]
"""Centre (x, y) and half widths (dx, dy), for [a_j, b_j] mapped to [-1, 1]."""


@dataclass(frozen=True)
class EllipseTail:
    """By how much interpolation along an axis may err: ellipses rho, and the largest |f| on each."""

    ellipses: tuple[tuple[float, float], ...]

    def degree(self, allowed: float) -> int:
        """The smallest degree, at least 2, that errs by no more than allowed."""
        return max(2, min(_degree(largest, rho, allowed) for rho, largest in self.ellipses))

    def __getitem__(self, degree: int) -> float:
        return min(interpolation_error(largest, rho, degree) for rho, largest in self.ellipses)


def interpolation_error(largest: float, rho: float, degree: int) -> float:
    """4 M rho^-n / (rho - 1), not rounded down."""
    return 4 * largest * rho**-degree / (rho - 1) * UP


def _degree(largest: float, rho: float, allowed: float) -> int:
    ratio = 4.0001 * max(largest, 1e-300) / (rho - 1) / allowed
    return math.ceil(math.log(ratio) / math.log(rho)) if ratio > 1 else 0


class AnalyticTarget:
    """Several functions f_1 … f_m without switches, of the variables in order, on boxes.

    spend       called with the operations that each look at an ellipse takes
    operations  what the values at a point take
    """

    def __init__(
        self,
        expressions: Sequence[Expression],
        variables: Sequence[str],
        spend: Callable[[float], None] = lambda operations: None,
    ) -> None:
        self.expressions, self.variables, self.spend = tuple(expressions), tuple(variables), spend
        self.operations = sum(len(expression.program) for expression in self.expressions)

    def tail(
        self, axis: int, centre: Sequence[float], half: Sequence[float], scale: float, allowed: float, enough: int
    ) -> EllipseTail | None:
        """How far the functions are from polynomials along an axis, on a box; None if no ellipse is found.

        scale    about the largest |f| on the box
        allowed  the error that is aimed at       enough   the degree for it that need not be undercut
        """
        size = Sizes(self, axis, centre, half, scale)
        found: list[tuple[float, float]] = []
        best, worse = math.inf, 0
        for rho in RHOS:
            largest = size.bound(rho)
            if not math.isfinite(largest):
                break
            found.append((rho, largest))
            degree = _degree(largest, rho, allowed)
            worse = worse + 1 if degree >= best else 0
            best = min(best, degree)
            if worse > 1 or best <= enough:
                break
        return EllipseTail(tuple(found)) if found else None

    def size_on(self, boxes: Sequence[acb]) -> float:
        """max_m |f_m| on a product of complex balls, infinity where it may not be analytic."""
        self.spend(self.operations)
        at = dict(zip(self.variables, boxes, strict=True))
        return max(upper(abs(expression.complex_ball(at))) for expression in self.expressions)

    def on_grid(self, nodes: Sequence[Sequence[arb]]) -> Iterator[tuple[np.ndarray, slice]]:
        """Enclosures at all nodes of a grid: balls (m, few, n_2, …, n_d), slice by slice of the first axis."""
        axes = []
        for j, points in enumerate(nodes):
            array = np.empty(len(points), object)
            array[:] = list(points)
            axes.append(array.reshape([-1 if i == j else 1 for i in range(len(nodes))]))
        rest = math.prod(len(points) for points in nodes[1:])
        step = max(1, _SLAB // rest)
        shape = tuple(len(points) for points in nodes[1:])
        for start in range(0, len(nodes[0]), step):
            part = slice(start, start + step)
            at = dict(zip(self.variables, [axes[0][part], *axes[1:]], strict=True))
            rows = len(at[self.variables[0]])
            yield np.stack([np.broadcast_to(_tensor(e, at), (rows, *shape)) for e in self.expressions]), part


def _tensor(expression: Expression, at: dict[str, np.ndarray]) -> np.ndarray:
    """An expression on arrays of balls that broadcast: what depends on few variables is computed once for them."""
    results: list[np.ndarray] = []
    for op, data, places in expression.program:
        inner = [results[place] for place in places]
        if op == "variable":
            results.append(at[str(data)])
        elif places:
            rule = RULES[op]
            apply = np.frompyfunc(lambda *a, rule=rule, data=data: rule(data, *a), len(places), 1)
            results.append(np.asarray(apply(*inner), object))
        else:
            constant = np.empty((1,) * len(at), object)
            constant[...] = RULES[op](data)
            results.append(constant)
    return results[-1]


class Sizes:
    """M for ellipses of several sizes along one axis of a box."""

    def __init__(
        self, target: AnalyticTarget, axis: int, centre: Sequence[float], half: Sequence[float], scale: float
    ) -> None:
        self.target, self.axis, self.scale = target, axis, scale
        self.centre, self.half = tuple(centre), tuple(half)

    def bound(self, rho: float) -> float:
        """M, infinity where no covering shows any: of products, the one with the largest |f| is halved, for long."""
        with precision(53):
            # short dyadic half axes, rounded up: halves and quarters of them are exact, and rectangles leave no gaps
            width, height = _dyadic((rho + 1 / rho) / 2), _dyadic((rho - 1 / rho) / 2)
            cell: list[Rectangle] = [(0.0, 0.0, 1.0, 0.0)] * len(self.centre)
            cell[self.axis] = (0.0, height / 2, width, height / 2)
            number, heap = count(), []
            heapq.heappush(heap, (-self._on(cell), next(number), cell))
            for _ in range(_BUDGET):
                if -heap[0][0] <= _AMPLE * self.scale:
                    break
                for part in self._halved(heapq.heappop(heap)[2]):
                    if not _outside(part[self.axis], (width, height)):
                        heapq.heappush(heap, (-self._on(part), next(number), part))
            return -heap[0][0]

    def _on(self, cell: Sequence[Rectangle]) -> float:
        boxes = []
        for j, ((x, y, dx, dy), centre, half) in enumerate(zip(cell, self.centre, self.half, strict=True)):
            real = arb(centre) + arb(half) * arb(x, dx)
            # a rectangle that ends at the real axis reaches below it, so that f is analytic around the axis
            below = dy / 16 if y == dy else 0.0
            boxes.append(acb(real, arb(half) * arb(y - below, dy + below)) if j == self.axis else acb(real))
        return self.target.size_on(boxes)

    def _halved(self, cell: list[Rectangle]) -> list[list[Rectangle]]:
        longest = max(range(len(cell)), key=lambda j: self.half[j] * max(cell[j][2:]))
        x, y, dx, dy = cell[longest]
        if dx >= dy:
            parts = [(x - dx / 2, y, dx / 2, dy), (x + dx / 2, y, dx / 2, dy)]
        else:
            parts = [(x, y - dy / 2, dx, dy / 2), (x, y + dy / 2, dx, dy / 2)]
        return [[*cell[:longest], part, *cell[longest + 1 :]] for part in parts]


def _dyadic(length: float) -> float:
    return (math.floor(length * 2.0**20) + 1) * 2.0**-20


def _outside(rectangle: Rectangle, axes: tuple[float, float]) -> bool:
    """Whether a rectangle has no point of the ellipse with these half axes."""
    x, y, dx, dy = rectangle
    return math.hypot(max(abs(x) - dx, 0) / axes[0], max(abs(y) - dy, 0) / axes[1]) > 1
