"""Functions that end where their argument does: sqrt(x) where x >= 0.

What a network computes as the argument may lie a little beyond, where there is no value to compare with. There the
function is taken to stay as it is at its edge: f(max(x, low)) = f(x) for all x >= low, and it has values everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from flint import arb

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions import build
from anchorhead.language.expressions.expression import Expression, postorder
from anchorhead.language.expressions.precision import precision

PARTIAL = ("sqrt", "power", "log", "log1p", "asin", "acos", "acosh", "atanh")
"""Operations that have no value everywhere."""
ROOM = 1e-3
"""About as far as the argument may be off, as a part of its size, in either dtype."""
BITS = 64
Ends = tuple[float, float]
Name = TypeVar("Name")


def kept_inside(function: Expression, low: float, high: float) -> Expression:
    """The function of x in [low, high], with values beyond the ends as well where it has one at the end alone."""
    if not any(node.op in PARTIAL for node in postorder(function)) or len(function.variables) != 1:
        return function
    (name,) = function.variables
    x = inner = build.variable(name)
    room = ROOM * max(abs(low), abs(high), ROOM)
    if _has_value(function, name, low) and not _has_value(function, name, low - room):
        inner = build.make("max", (inner, build.number(low)))
    if _has_value(function, name, high) and not _has_value(function, name, high + room):
        inner = build.make("min", (inner, build.number(high)))
    return function if inner is x else function.substitute({name: inner})


def reached(coefficients: Mapping[Name, arb], constant: arb, ends: Mapping[Name, tuple[float, float]]) -> Ends:
    """Between what constant + sum_i c_i q_i stays, q_i between its ends: in numbers and not in balls, whose radii have
    nine digits, so that an edge is where it is."""
    low = high = constant
    for name, c in coefficients.items():
        sides = [c * arb(end) for end in ends[name]]
        low, high = low + sides[0].min(sides[1]), high + sides[0].max(sides[1])
    return _below(low), -_below(-high)


def _below(value: arb) -> float:
    """The largest float that is surely no larger, or the one below it."""
    least = value.lower()
    near = float(least)
    return near if not near > least else float(np.nextafter(near, -np.inf))


def _has_value(function: Expression, name: str, at: float) -> bool:
    try:
        with precision(BITS):
            return function.ball({name: build.number(at).ball({})}).is_finite()
    except AnchorheadError:
        return False
