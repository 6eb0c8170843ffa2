"""Positivity that can be read off the tree, where balls are too coarse.

A ball over [1, 1e300] has a midpoint and a radius of 30 bits, so it contains negative numbers; that exp is
positive needs no evaluation.
"""

from __future__ import annotations

from anchorhead.language.expressions.expression import Expression, postorder

_ALWAYS = ("exp", "sigmoid", "softplus", "erfc", "pi", "e")
_IF_ALL = ("add", "mul", "div", "sqrt", "min", "expm1", "log1p", "tanh", "erf")


def surely_positive(expression: Expression) -> bool:
    """Whether the value is positive wherever it is defined, whatever the variables (False: not known).

    power(a, b) = exp(b log a) is positive for a > 0, but 0 where a = 0 is allowed: so only if a is positive.
    """
    known: dict[Expression, bool] = {}
    nonnegative: dict[Expression, bool] = {}
    for node in postorder(expression.core):
        args = node.args
        match node.op:
            case "number":
                known[node] = float(node.data or 0) > 0
            case "power":
                known[node] = known[args[0]]
            case "integer_power":
                known[node] = known[args[0]] or node.data == 0
            case "max":
                known[node] = any(known[arg] for arg in args)
            case "add":  # one positive term, the others at least 0
                known[node] = any(known[arg] for arg in args) and all(nonnegative[arg] for arg in args)
            case "where":
                known[node] = known[args[2]] and known[args[3]]
            case op if op in _ALWAYS:
                known[node] = True
            case op if op in _IF_ALL:
                known[node] = all(known[arg] for arg in args)
            case _:
                known[node] = False
        even = node.op == "integer_power" and int(node.data or 0) % 2 == 0
        zero = node.op == "number" and node.data == 0
        sums = node.op in ("add", "mul") and all(nonnegative[arg] for arg in args)
        nonnegative[node] = known[node] or even or zero or sums or node.op in ("abs", "sqrt", "power")
    return known[expression.core]
