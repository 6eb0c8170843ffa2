"""asinh, which expressions have no name for: it is seen in the two logarithms that it is written with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, below
from anchorhead.verify.equality.algebra import ASINH, Algebra
from anchorhead.verify.equality.values import Value
from anchorhead.verify.equality.work import Work
from anchorhead.verify.programs.expressions import Expression, Undecided

CELLS = 64


def with_asinh(function: Expression, at: Mapping[str, Value], work: Work) -> Expression:
    """The function with asinh(x) for log(1 + r + x) - log(1 + r - x), r = sqrt(1 + x^2), which is seen to be so.

    Of u = h + x and w = h + y, y = -x and (h - 1)^2 = 1 + x^2 and h >= 1 are asked, in an algebra in which the
    arguments of the function are inputs. If these are off by d, then h by d, and log u - log w by 4 d.
    """
    place = 0
    while place < len(function.nodes):
        nodes = function.nodes
        sums = _sums(nodes, place)
        if sums is not None and _is_asinh(function, sums, at, work):
            x, rest = ("add", None, tuple(sums[1])), nodes[place + 1 :]
            moved = [(op, data, tuple(one + (one >= place) for one in places)) for op, data, places in rest]
            function = Expression.of((*nodes[:place], x, ("asinh", None, (place,)), *moved))
        place += 1
    return function.part(-1)


def _sums(nodes: Sequence[tuple[str, Any, tuple[int, ...]]], place: int) -> list[list[int]] | None:
    """Nodes of which the sums are h, x and y, where the one at the place is log(h + x) - log(h + y)."""
    op, _, places = nodes[place]
    if op != "add" or [nodes[one][0] for one in places] != ["log", "neg"]:
        return None
    first, second = nodes[places[0]], nodes[nodes[places[1]][2][0]]
    u, w = nodes[first[2][0]], nodes[second[2][0]] if second[0] == "log" else ("", None, ())
    both = Counter(u[2]) & Counter(w[2])  # a node may be added twice
    own = [[*(Counter(side[2]) - both).elements()] for side in (u, w)]
    return [[*both.elements()], *own] if u[0] == w[0] == "add" and both and all(own) else None


def _is_asinh(function: Expression, sums: Sequence[Sequence[int]], at: Mapping[str, Value], work: Work) -> bool:
    """Of sums of nodes h, x and y."""
    work.count(len(function.nodes))
    if not at:
        return False
    low, high = ([[end(side) for side in sides]] for end, sides in zip(
        (below, above), zip(*(value.range for value in at.values()), strict=True), strict=True
    ))  # fmt: skip
    alone = Algebra(np.array(low), np.array(high), work)
    inputs = dict(zip(at, alone.inputs, strict=True))
    try:
        parts = [Expression.of((*function.nodes, ("add", None, tuple(terms)))).part(-1) for terms in sums]
        h, x, y = (alone.of(one, inputs, CELLS) for one in parts)
        r = alone.add(h, alone.constant(-1))
        square = alone.scaled(alone.add(alone.constant(1), alone.power(x, 2)), arb(-1))
        offs = alone.add(x, y), alone.add(alone.power(r, 2), square)
        return bool(r.range.low >= 0 and all(alone.bound(one, ASINH) <= ASINH / 16 for one in offs))
    except Undecided:
        return False
