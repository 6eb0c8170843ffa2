"""Roots of quadratics: sqrt(a^2 + b) - a loses its digits where a is large; its logarithm need not.

sqrt(a^2 + b) + s a  =  sqrt(b) (sqrt(1 + t^2) + s t)  =  sqrt(b) exp(s asinh(t)),    t = a / sqrt(b),  s = 1 or -1
"""

from __future__ import annotations

from dataclasses import dataclass

from anchorhead.language.analysis.ridges import X
from anchorhead.language.expressions import build
from anchorhead.language.expressions.build import ONE, add, neg
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.normal_form import polynomial

_ROOT = build.make("sqrt", (add(ONE, build.integer_power(X, 2)),))
ASINH = add(build.make("log", (add(ONE, _ROOT, X),)), neg(build.make("log", (add(ONE, _ROOT, neg(X)),))))
"""log(1 + r + x) - log(1 + r - x) with r = sqrt(1 + x^2): as log(x + r), and without a difference near 0."""


@dataclass(frozen=True, eq=False)
class QuadraticRoot:
    """sign (sqrt(a^2 + b) + side a)."""

    a: Expression
    b: Expression
    side: int
    sign: int


def quadratic_root(node: Expression) -> QuadraticRoot | None:
    """The sum as such a root, if it is one."""
    if node.op != "add":
        return None
    for place, term in enumerate(node.args):
        sign, root = (-1, term.args[0]) if term.op == "neg" else (1, term)
        if root.op != "sqrt" or root.args[0].op != "add":
            continue
        rest = add(*node.args[:place], *node.args[place + 1 :])
        inside = root.args[0].args
        for at, square in enumerate(inside):
            a = _squared(square)
            if a is None:
                continue
            for side in (1, -1):
                if not polynomial(add(rest, neg(a) if side * sign > 0 else a), {}):
                    return QuadraticRoot(a, add(*inside[:at], *inside[at + 1 :]), side, sign)
    return None


def _squared(node: Expression) -> Expression | None:
    """a, if the node is a^2."""
    if node.op == "square" or (node.op == "integer_power" and node.data == 2):
        return node.args[0]
    return node.args[0] if node.op == "mul" and len(node.args) == 2 and node.args[0] is node.args[1] else None
