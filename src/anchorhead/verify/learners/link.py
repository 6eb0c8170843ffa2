"""The link of a loss: which function of which argument it is, and how steep that is.

    residual   g(s, y) = phi(s - y)      labelled   g(s, y) = phi(s) - y      margin   g(s, y) = y phi(y s), y = 1, -1

For a margin, examples are shown as y a, and then mean a g(w . a, y) = mean (y a) phi(w . (y a)). Slopes are
enclosures of difference quotients: where a switch (max, min, abs) is undecided on a ball, a quotient of the whole
lies between those of its sides (Lebourg's mean value theorem), so the hull of both is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, below, coefficient, hull, precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.expressions import SERIES, Expression, Undecided, evaluated

FINE, COARSE = 1e-7, 3e-3
"""Cells are halved until their slopes are this close, relatively, to one that is met: of all, and of a part."""
MAX_CELLS = 20_000


@dataclass(frozen=True)
class Link:
    """phi in the variable x, and the form in which it stands."""

    form: str
    phi: Expression

    @property
    def straight(self) -> bool:
        """Whether it is s - y."""
        return self.form == "residual" and len(self.phi.nodes) == 1


def read_link(link: Expression) -> Link:
    for form, read in (("residual", _residual), ("labelled", _labelled), ("margin", _margin)):
        phi = read(link)
        if phi is not None:
            return Link(form, phi)
    raise NotVerified(f"a link {link} of two variables is not verified in this layout")


def _residual(link: Expression) -> Expression | None:
    nodes = link.nodes

    def is_residual(place: int) -> bool:
        op, _, places = nodes[place]
        if op != "add" or len(places) != 2 or nodes[places[0]][:2] != ("variable", "s"):
            return False
        inner = nodes[places[1]]
        return inner[0] == "neg" and nodes[inner[2][0]][:2] == ("variable", "y")

    return _rewritten(link, len(nodes) - 1, is_residual)


def _labelled(link: Expression) -> Expression | None:
    op, _, places = link.nodes[-1]
    if op != "add" or len(places) != 2:
        return None
    inner = link.nodes[places[1]]
    if inner[0] != "neg" or link.nodes[inner[2][0]][:2] != ("variable", "y"):
        return None
    return _rewritten(link, places[0], lambda place: link.nodes[place][:2] == ("variable", "s"))


def _margin(link: Expression) -> Expression | None:
    nodes = link.nodes
    op, _, places = nodes[-1]
    if op != "mul" or len(places) != 2 or nodes[places[0]][:2] != ("variable", "y"):
        return None

    def is_margin(place: int) -> bool:
        op, _, inner = nodes[place]
        return op == "mul" and [nodes[one][:2] for one in inner] == [("variable", "y"), ("variable", "s")]

    return _rewritten(link, places[1], is_margin)


def _rewritten(link: Expression, root: int, is_argument: Callable[[int], bool]) -> Expression | None:
    """The part of a link that ends at a node, with x for its argument; None where s or y are left."""
    made: list[tuple[str, Any, tuple[int, ...]]] = []
    known: dict[int, int | None] = {}

    def visit(place: int) -> int | None:
        if place not in known:
            op, data, places = link.nodes[place]
            if is_argument(place):
                made.append(("variable", "x", ()))
            elif op == "variable":
                known[place] = None
                return None
            else:
                inner = [visit(one) for one in places]
                if any(one is None for one in inner):
                    known[place] = None
                    return None
                made.append((op, data, tuple(one for one in inner if one is not None)))
            known[place] = len(made) - 1
        return known[place]

    return None if visit(root) is None else Expression.of(tuple(made))


def _hull(which: int) -> Callable[..., Any]:
    def two(a: Any, b: Any) -> Any:
        one, other = (x if isinstance(x, arb_series) else arb_series([x]) for x in (a, b))
        difference = (one[0] - other[0]) * which
        if difference >= 0:
            return one
        if difference <= 0:
            return other
        extreme = one[0].max(other[0]) if which > 0 else one[0].min(other[0])
        return arb_series([extreme, coefficient(one, 1).union(coefficient(other, 1))], prec=2)

    return lambda *args: reduce(two, args)


def _abs(a: Any) -> Any:
    return _hull(1)(a, -a)


QUOTIENTS = {**SERIES, "max": _hull(1), "min": _hull(-1), "abs": _abs}


def slopes(phi: Expression, low: float, high: float, fine: float = FINE) -> tuple[float, float]:
    """Between what difference quotients of phi on [low, high] lie, close to the least and the largest that are met."""
    with precision(96, 4):
        waiting, cells = [(arb(low), arb(high))], 0
        least, most, met = np.inf, -np.inf, [np.inf, -np.inf]
        while waiting:
            a, b = waiting.pop()
            cells += 1
            if cells > MAX_CELLS:
                raise NotVerified(f"the slopes of {phi} are not bounded within {MAX_CELLS} cells")
            found = _quotients(phi, a, b)
            middle = ((a + b) / 2).mid()
            here = _quotients(phi, middle, middle)
            met = [min(met[0], above(here)), max(met[1], below(here))]
            room = fine * max(abs(met[0]), abs(met[1]), 1e-300)
            if (below(found) >= met[0] - room and above(found) <= met[1] + room) or float(b - a) < 1e-12 * (high - low):
                least, most = min(least, below(found)), max(most, above(found))
            else:
                waiting += [(a, middle), (middle, b)]
        if not most - least < np.inf:
            raise NotVerified(f"{phi} has no slope on [{low}, {high}]")
        return least, most


def _quotients(phi: Expression, a: arb, b: arb) -> arb:
    """On a cell: the slope in its middle, give or take what the second derivative allows, or the slope of the ball."""
    cell = a.union(b)
    plain = _slope(phi, arb_series([cell, 1], prec=2))
    try:
        bend = coefficient(phi.series({"x": arb_series([cell, 1], prec=3)}), 2) * 2
    except Undecided:
        return plain
    if not bend.is_finite():
        return plain
    middle = ((a + b) / 2).mid()
    around = _slope(phi, arb_series([middle, 1], prec=2)) + bend * arb(0, 1) * (b - a) / 2
    low, high = max(below(around), below(plain)), min(above(around), above(plain))
    return hull(low, high) if low <= high else plain


def _slope(phi: Expression, at: arb_series) -> arb:
    try:
        found = evaluated(phi, {"x": at}, QUOTIENTS)
    except Undecided:
        return arb.nan()
    return coefficient(found, 1) if isinstance(found, arb_series) else arb(0)


@dataclass(frozen=True, eq=False)
class Steepness:
    """|slopes| of phi cell by cell: cells (low, high) cover a range, `near` holds for each cell widened by `room`."""

    low: np.ndarray
    high: np.ndarray
    near: np.ndarray
    room: np.ndarray


def between(phi: Expression, low: float, high: float) -> tuple[float, float]:
    """Between what phi stays on [low, high]: by balls, cell by cell."""
    cuts = _cuts(low, high)
    with precision():
        found = [phi.ball({"x": hull(float(a), float(b))}) for a, b in pairwise(cuts)]
    if not all(one.is_finite() for one in found):
        raise NotVerified(f"{phi} is not finite on [{low:g}, {high:g}]")
    return min(map(below, found)), max(map(above, found))


def _cuts(low: float, high: float) -> np.ndarray:
    """Cells that grow in width with their distance from 0."""
    return np.unique(np.clip(np.concatenate([-EDGES[::-1], [0.0], EDGES, [low, high]]), low, high))


def steepness(phi: Expression, low: float, high: float) -> Steepness:
    cuts = _cuts(low, high)
    room = 0.004 + 0.01 * np.maximum(np.abs(cuts[1:]), np.abs(cuts[:-1]))
    found = [
        max(abs(one) for one in _cached(phi, float(a - r), float(b + r)))
        for a, b, r in zip(cuts[:-1], cuts[1:], room, strict=True)
    ]
    return Steepness(cuts[:-1], cuts[1:], np.array(found), room)


EDGES = np.concatenate([np.arange(1, 8) / 64, 2.0 ** (np.arange(-24, 160) / 8)])


@cache
def _cached(phi: Expression, low: float, high: float) -> tuple[float, float]:
    return slopes(phi, low, high, COARSE)
