"""The structure of expressions in several variables: sums of functions of one linear combination each.

    f(x) = constant + sum_r phi_r(w_r . x)

Terms of one variable are gathered, variable by variable. A term whose variables occur in one linear combination alone
(sin(x + 2*y), abs(x - y)) is a ridge. max(a, b) = b + relu(a - b), min(a, b) = b - relu(b - a), and a product of two
affine factors is a difference of squares, a b = ((a + b)^2 - (a - b)^2)/4. All of this is exact: weights must be
floats, or a term is left over, for a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb, ctx
from jaxtyping import Float

from anchorhead.targets import build
from anchorhead.targets.build import add, mul, neg, number
from anchorhead.targets.expression import Expression, postorder

X = build.variable("x")
PRECISION = 256


@dataclass(frozen=True, eq=False)
class Ridge:
    """phi(w . x), phi an expression in x."""

    weight: Float[np.ndarray, " variables"]
    function: Expression


@dataclass(frozen=True, eq=False)
class Structure:
    """One expression as ridges, and what is left over."""

    ridges: tuple[Ridge, ...]
    left_over: tuple[Expression, ...]


def structure(expression: Expression, variables: Sequence[str]) -> Structure:
    """The ridges of an expression, those with the same linear combination put together."""
    found: dict[bytes, tuple[np.ndarray, list[Expression]]] = {}
    left: list[Expression] = []
    with ctx.workprec(PRECISION):
        for term in _terms(expression.core if _needs_core(expression) else expression):
            ridge = ridge_of(term, variables)
            if ridge is None:
                left.append(term)
            else:
                found.setdefault(ridge.weight.tobytes(), (ridge.weight, []))[1].append(ridge.function)
    ridges = tuple(Ridge(weight, add(*functions)) for weight, functions in found.values())
    return Structure(ridges, tuple(left))


def _needs_core(expression: Expression) -> bool:
    """Whether a max or min is hidden in a named function of several variables."""
    return any(
        node.op in ("clip", "hardtanh", "relu6") and len(node.variables) > 1 and ridge_of(node, node.variables) is None
        for node in postorder(expression)
    )


def _terms(expression: Expression) -> list[Expression]:
    """What adds up to the expression, with products of affine factors and max or min of two parts taken apart."""
    match expression.op:
        case "add":
            return [term for arg in expression.args for term in _terms(arg)]
        case "neg":
            return [neg(term) for term in _terms(expression.args[0])]
        case "mul" if len(expression.variables) > 1:
            return _of_product(expression)
        case "div" if not expression.args[1].variables and len(expression.variables) > 1:
            return [build.div(term, expression.args[1]) for term in _terms(expression.args[0])]
        case "max" | "min" if len(expression.args) == 2 and _is_ridge_pair(expression):
            a, b = expression.args
            rest = neg(build.make("relu", (build.sub(b, a),))) if expression.op == "min" else _relu(build.sub(a, b))
            return [*_terms(b), rest]
        case _:
            return [expression]


def _relu(inner: Expression) -> Expression:
    return build.make("relu", (inner,))


def _is_ridge_pair(expression: Expression) -> bool:
    difference = build.sub(*expression.args)
    return len(expression.variables) > 1 and ridge_of(_relu(difference), expression.variables) is not None


def _of_product(expression: Expression) -> list[Expression]:
    """A constant times a sum, or two affine factors, in terms; anything else as it is."""
    constants = [arg for arg in expression.args if not arg.variables]
    varying = [arg for arg in expression.args if arg.variables]
    if len(varying) == 1 and constants:
        scale = mul(*constants)
        return [mul(scale, term) for term in _terms(varying[0])]
    if len(varying) == 2 and all(arg.affine() is not None for arg in varying):
        a, b = varying
        scale = mul(*constants, number(0.25)) if constants else number(0.25)
        plus, minus = (build.integer_power(one, 2) for one in (add(a, b), build.sub(a, b)))
        return [mul(scale, plus), neg(mul(scale, minus))]
    return [expression]


def ridge_of(term: Expression, variables: Sequence[str]) -> Ridge | None:
    """The term as a function of one linear combination with exact float weights, if it is one."""
    if len(term.variables) <= 1:
        name = term.variables[0] if term.variables else (variables[0] if variables else "x")
        weight = np.array([1.0 if one == name else 0.0 for one in variables])
        return Ridge(weight, term.substitute({name: X}) if term.variables else term)
    forms = (node.affine() for node in reversed(postorder(term)) if len(node.variables) > 1)
    direction = next((form[0] for form in forms if form is not None and form[0]), None)
    weight = None if direction is None else _exact_weights(direction, variables)
    return None if direction is None or weight is None else _along(term, direction, weight)


def _exact_weights(direction: dict[str, arb], variables: Sequence[str]) -> np.ndarray | None:
    values = [direction.get(name, arb(0)) for name in variables]
    return None if any(_exact(value) is None for value in values) else np.array([float(value) for value in values])


def _along(term: Expression, direction: dict[str, arb], weight: np.ndarray) -> Ridge | None:
    """The term with every affine part that varies written as ratio u + constant, u = weight . x."""
    new: dict[Expression, Expression] = {}
    for node in postorder(term):
        if not node.variables:
            new[node] = node
            continue
        form = node.affine()
        multiple = None if form is None else _multiple(form[0], direction)
        if form is not None and multiple is not None:
            offset = _exact(form[1])
            if offset is None:
                return None
            scaled = X if multiple == 1 else mul(number(multiple), X)
            new[node] = scaled if offset == 0 else add(scaled, number(offset))
        elif node.args and all(arg in new for arg in node.args):
            new[node] = build.make(node.op, tuple(new[arg] for arg in node.args), node.data)
    return Ridge(weight, new[term]) if term in new else None


def _multiple(slopes: dict[str, arb], direction: dict[str, arb]) -> float | None:
    """r with slopes = r direction, exactly, as a float."""
    if slopes.keys() != direction.keys():
        return None
    name = next(iter(direction))
    ratio = _exact(slopes[name] / direction[name])
    if ratio is None:
        return None
    same = all((slopes[one] - direction[one] * ratio).is_zero() for one in direction)
    return ratio if same else None


def split_constant(function: Expression) -> tuple[float, Expression]:
    """c and g with function = c g, c an exact float: signs and constant factors taken out, x**2 called square(x)."""
    with ctx.workprec(PRECISION):
        return _split(function)


def _split(function: Expression) -> tuple[float, Expression]:
    if function.op == "neg":
        c, rest = _split(function.args[0])
        return -c, rest
    if function.op == "integer_power" and function.data == 2 and function.args[0] is X:
        return 1.0, build.make("square", (X,))
    if function.op == "mul":
        constants = [arg for arg in function.args if not arg.variables]
        varying = [arg for arg in function.args if arg.variables]
        value = arb(1)
        for one in constants:
            value *= one.ball({})
        scale = _exact(value)
        if constants and len(varying) == 1 and scale:
            c, rest = _split(varying[0])
            both = _exact(arb(c) * scale)
            return (both, rest) if both is not None else (scale, varying[0])
    return 1.0, function


def split_affine(function: Expression) -> tuple[float, float] | None:
    """a and b with function = a x + b, exact floats; None if it is no such function."""
    with ctx.workprec(PRECISION):
        form = function.affine()
        if form is None:
            return None
        slope, constant = _exact(form[0].get("x", arb(0))), _exact(form[1])
        return None if slope is None or constant is None else (slope, constant)


def _exact(value: arb) -> float | None:
    """The number as a float, if it is one exactly."""
    near = float(value.mid())
    return near if value.is_exact() and (value - near).is_zero() else None
