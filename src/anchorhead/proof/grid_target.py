"""A function of several variables around a box: how large it is on a product of Bernstein ellipses, and its values.

Let f be analytic on a neighbourhood of E_1 x … x E_d, E_j the closed Bernstein ellipse with parameter rho_j around
[a_j, b_j], and |f| <= M there. Map every [a_j, b_j] to [-1, 1]. Then f = sum_i a_i T_i, T_i(x) = prod_j T_{i_j}(x_j),
and by Cauchy's formula in each variable |a_i| <= M prod_j c_{i_j} rho_j^-i_j, c_0 = 1 and c_i = 2 beyond. Let I f be
the polynomial of degree n_j in x_j that agrees with f at the tensor grid of x = cos(k pi / n_j). There T_i equals some
T_i' with i'_j <= n_j for all j, so

    |f - I f| <= 2 sum_{i: some i_j > n_j} |a_i| <= E = 2 M (prod_j s_j - prod_j (s_j - t_j)),
    s_j = sum_i c_i rho_j^-i = (rho_j + 1) / (rho_j - 1),
    t_j = sum_{i > n_j} c_i rho_j^-i = 2 rho_j^-n_j / (rho_j - 1).

M is found by covering the whole of the product with products of rectangles, and not its boundary alone: finite
enclosures by analytic primitives prove f analytic there. For the first variable the upper half is enough, because
f(conj z) = conj f(z).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
from flint import acb, arb, ctx

from anchorhead.proof.balls import upper
from anchorhead.targets.balls import RULES
from anchorhead.targets.expression import Expression

_RHOS = (1.06, 1.12, 1.2, 1.3, 1.45, 1.6, 1.8, 2.1, 2.5, 3.0, 3.7, 4.6, 6.0)
_BUDGET = 700  # enclosures for one choice of ellipses
_AMPLE = 20.0  # times the size on the box: a smaller M saves hardly a degree
_UP = 1 + 1e-12
_SLAB = 20_000  # balls held at once

Rectangle = tuple[float, float, float, float]
"""Centre (x, y) and half widths (dx, dy), for [a_j, b_j] mapped to [-1, 1]."""
Degrees = tuple[int, ...]


class AnalyticTarget:
    """Several functions f_1 … f_m without switches, of the variables in order, on boxes."""

    def __init__(self, expressions: Sequence[Expression], variables: Sequence[str]) -> None:
        self.expressions, self.variables = tuple(expressions), tuple(variables)

    def degrees(
        self, centre: Sequence[float], half: Sequence[float], scale: float, remainder: float, most: int
    ) -> tuple[Degrees, float] | None:
        """Degrees n_j with E <= remainder, as few nodes as are found, and that E; None if there are none."""
        size = Sizes(self, centre, half, scale)
        best: tuple[float, tuple[int, ...]] = math.inf, ()
        worse = 0
        for i in range(len(_RHOS)):
            levels = (i,) * len(self.variables)
            cost = size.nodes(levels, remainder)
            worse = worse + 1 if cost >= best[0] else 0
            if cost < best[0]:
                best = cost, levels
            elif worse > 1 or cost == math.inf:
                break
        if best[0] == math.inf:
            return None
        for j in range(len(self.variables)):  # one variable may allow more than the others
            while best[1][j] + 1 < len(_RHOS):
                levels = tuple(i + (n == j) for n, i in enumerate(best[1]))
                cost = size.nodes(levels, remainder)
                if cost >= best[0]:
                    break
                best = cost, levels
        if best[0] > most:
            return None
        rhos = [_RHOS[i] for i in best[1]]
        found = degrees_for(size.bound(best[1]), rhos, remainder)
        return found, interpolation_error(size.bound(best[1]), rhos, found)

    def size_on(self, boxes: Sequence[acb]) -> float:
        """max_m |f_m| on a product of complex balls, infinity where it may not be analytic."""
        at = dict(zip(self.variables, boxes, strict=True))
        return max(upper(abs(expression.complex_ball(at))) for expression in self.expressions)

    def on_grid(self, nodes: Sequence[Sequence[arb]], each: Callable[[np.ndarray, slice], None]) -> None:
        """Calls each(balls (m, few, n_2, …, n_d), slice of the first axis) with enclosures at all nodes of a grid."""
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
            each(np.stack([np.broadcast_to(_tensor(e, at), (rows, *shape)) for e in self.expressions]), part)


def _tensor(expression: Expression, at: dict[str, np.ndarray]) -> np.ndarray:
    """An expression on arrays of balls that broadcast: what depends on few variables is computed once for them."""
    results: list[np.ndarray] = []
    for op, data, places in expression.program:
        if op == "variable":
            results.append(at[str(data)])
        elif places:
            rule = RULES[op]
            apply = np.frompyfunc(lambda *a, rule=rule, data=data: rule(data, *a), len(places), 1)
            results.append(np.asarray(apply(*[results[place] for place in places]), object))
        else:
            constant = np.empty((1,) * len(at), object)
            constant[...] = RULES[op](data)
            results.append(constant)
    return results[-1]


class Sizes:
    """M for ellipses of several sizes around one box."""

    def __init__(self, target: AnalyticTarget, centre: Sequence[float], half: Sequence[float], scale: float) -> None:
        self.target, self.centre, self.half, self.scale = target, tuple(centre), tuple(half), scale
        self._known: dict[tuple[int, ...], float] = {}

    def nodes(self, levels: tuple[int, ...], remainder: float) -> float:
        """How many nodes it takes with these ellipses."""
        largest = self.bound(levels)
        if not math.isfinite(largest):
            return math.inf
        return math.prod(n + 1.0 for n in degrees_for(largest, [_RHOS[i] for i in levels], remainder))

    def bound(self, levels: tuple[int, ...]) -> float:
        """M, infinity where no covering shows any."""
        if levels not in self._known:
            with ctx.workprec(53):
                self._known[levels] = self._covered([_RHOS[i] for i in levels])
        return self._known[levels]

    def _covered(self, rhos: Sequence[float]) -> float:
        """Products of rectangles, of which the one with the largest |f| is halved, until it is small or for long."""
        # short dyadic half axes, rounded up: halves and quarters of them are exact, and rectangles leave no gaps
        axes = [(_dyadic((r + 1 / r) / 2), _dyadic((r - 1 / r) / 2)) for r in rhos]
        cell: list[Rectangle] = [(0.0, 0.0, *axis) for axis in axes]
        width, height = axes[0]
        cell[0] = (0.0, height / 2, width, height / 2)
        number, heap = count(), []
        heapq.heappush(heap, (-self._on(cell), next(number), cell))
        for _ in range(_BUDGET):
            largest = -heap[0][0]
            if largest <= _AMPLE * self.scale:
                break
            for part in self._halved(heapq.heappop(heap)[2]):
                if not any(_outside(one, axis) for one, axis in zip(part, axes, strict=True)):
                    heapq.heappush(heap, (-self._on(part), next(number), part))
        return -heap[0][0]

    def _on(self, cell: Sequence[Rectangle]) -> float:
        boxes = []
        for (x, y, dx, dy), centre, half in zip(cell, self.centre, self.half, strict=True):
            # a rectangle that ends at the real axis reaches below it, so that f is analytic around the axis
            below = dy / 16 if y == dy else 0.0
            boxes.append(acb(arb(centre) + arb(half) * arb(x, dx), arb(half) * arb(y - below, dy + below)))
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


def interpolation_error(largest: float, rhos: Sequence[float], degrees: Sequence[int]) -> float:
    """E, not rounded down."""
    whole = [(rho + 1) / (rho - 1) for rho in rhos]
    tails = [2 * rho**-n / (rho - 1) for rho, n in zip(rhos, degrees, strict=True)]
    # prod s - prod (s - t) <= sum_j t_j prod_{l != j} s_l
    total = sum(tail / one * math.prod(whole) for tail, one in zip(tails, whole, strict=True))
    return 2 * largest * total * _UP


def degrees_for(largest: float, rhos: Sequence[float], remainder: float) -> Degrees:
    """The smallest degrees, at least 2, with an equal share of E for every variable."""
    whole = math.prod((rho + 1) / (rho - 1) for rho in rhos)
    share = remainder / (2.001 * max(largest, 1e-300) * len(rhos))
    return tuple(
        max(2, math.ceil(math.log(2 * whole / (share * (rho + 1))) / math.log(rho)))
        if 2 * whole > share * (rho + 1)
        else 2
        for rho in rhos
    )
