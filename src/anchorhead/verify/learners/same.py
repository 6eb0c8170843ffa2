"""Whether what a file holds is what was written down to compare it with: layers, steps of programs, expressions."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from anchorhead.verify.programs.expressions import Expression

Tree = tuple[Any, ...]
"""An expression without what is shared in it: (operation, data, trees of the arguments...)."""


def same(one: Any, other: Any) -> bool:
    """Whether they are alike in all that they hold."""
    if one is other:
        return True
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, Expression):
        return one.key == other.key or tree(one) == tree(other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return bool(one == other)


def tree(expression: Expression) -> Tree:
    made: list[Tree] = []
    for op, data, places in expression.nodes:
        made.append((op, data, *(made[place] for place in places)))
    return made[-1]


def expression(whole: Tree) -> Expression:
    """The expression of a small tree."""
    nodes: list[tuple[str, Any, tuple[int, ...]]] = []

    def place(one: Tree) -> int:
        op, data, *inside = one
        nodes.append((op, data, tuple(map(place, inside))))
        return len(nodes) - 1

    place(whole)
    return Expression.of(tuple(nodes))
