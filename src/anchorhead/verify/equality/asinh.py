"""asinh, which expressions have no name for: it is seen in the two logarithms that it is written with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, below
from anchorhead.verify.equality.algebra import ASINH, Algebra
from anchorhead.verify.equality.values import Value
from anchorhead.verify.expressions import Expression, Undecided

CELLS = 64


def with_asinh(function: Expression, at: Mapping[str, Value]) -> Expression:
    """The function with asinh(x) for log(1 + r + x) - log(1 + r - x), r = sqrt(1 + x^2), which is seen to be so.

    Of u = h + x and w = h + y, y = -x and (h - 1)^2 = 1 + x^2 and h >= 1 are asked, in an algebra in which the
    arguments of the function are inputs. If these are off by d, then h by d, and log u - log w by 4 d.
    """
    nodes = function.nodes
    for place, (op, _, places) in enumerate(nodes):
        if op != "add" or [nodes[one][0] for one in places] != ["log", "neg"]:
            continue
        first, second = nodes[places[0]], nodes[nodes[places[1]][2][0]]
        u, w = nodes[first[2][0]], nodes[second[2][0]] if second[0] == "log" else ("", None, ())
        both = [one for one in u[2] if one in w[2]]
        own = [[one for one in side[2] if one not in both] for side in (u, w)]
        if u[0] == w[0] == "add" and both and all(own) and _is_asinh(function, (both, *own), at):
            x, rest = ("add", None, tuple(own[0])), nodes[place + 1 :]
            moved = [(op, data, tuple(one + (one >= place) for one in places)) for op, data, places in rest]
            return with_asinh(Expression.of((*nodes[:place], x, ("asinh", None, (place,)), *moved)).part(-1), at)
    return function


def _is_asinh(function: Expression, sums: Sequence[Sequence[int]], at: Mapping[str, Value]) -> bool:
    """Of sums of nodes h, x and y."""
    low, high = ([[end(side) for side in sides]] for end, sides in zip(
        (below, above), zip(*(value.range for value in at.values()), strict=True), strict=True
    ))  # fmt: skip
    alone = Algebra(np.array(low), np.array(high))
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
