"""The structure of expressions in several variables: sums of functions of one linear combination each.

    f(x) = constant + sum_r phi_r(w_r . x)

Terms of one variable are gathered, variable by variable. A term whose variables occur in one linear combination alone
(sin(x + 2*y), abs(x - y)) is a ridge. max(a, b) = b + relu(a - b), min(a, b) = b - relu(b - a), and a product of two
affine factors is a difference of squares (language.analysis.products). All of this is exact: coefficients such as 1/3
or pi are balls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from flint import arb, fmpq
from jaxtyping import Float

from anchorhead.language.analysis.edges import reached
from anchorhead.language.analysis.products import Scales, scales
from anchorhead.language.expressions import build
from anchorhead.language.expressions.build import add, fraction, mul, neg, number
from anchorhead.language.expressions.expression import Expression, postorder
from anchorhead.language.expressions.normal_form import Atom, polynomial
from anchorhead.language.expressions.precision import precision

X = build.variable("x")
Box = Mapping[str, tuple[float, float]]
"""An interval for every variable."""
PRECISION = 256


@dataclass(frozen=True, eq=False)
class Ridge:
    """phi(direction . x + shift), phi an expression in x; numbers that are no floats are balls."""

    direction: tuple[arb, ...]
    function: Expression
    shift: arb = field(default_factory=lambda: arb(0))

    @property
    def weight(self) -> Float[np.ndarray, " variables"]:
        """The direction in floats, nearly."""
        return np.array([float(value.mid()) for value in self.direction])

    @property
    def key(self) -> tuple[object, ...]:
        """The same for ridges of the same linear combination."""
        balls = (*self.direction, self.shift)
        return tuple(part.man_exp() for ball in balls for part in (ball.mid(), ball.rad()))


@dataclass(frozen=True, eq=False)
class Structure:
    """One expression as ridges, and what is left over."""

    ridges: tuple[Ridge, ...]
    left_over: tuple[Expression, ...]


def box_of(variables: Sequence[str], low: Sequence[float], high: Sequence[float]) -> Box:
    return {name: (float(a), float(b)) for name, a, b in zip(variables, low, high, strict=True)}


def structure(
    expression: Expression, variables: Sequence[str], box: Box | None = None, centred: bool = False
) -> Structure:
    """The ridges of an expression, those with the same linear combination put together.

    box       where the variables stay: factors of products are brought to one size
    centred   factors are centred as well, where that pays
    """
    products = _Products(box, centred)
    found: dict[tuple[object, ...], tuple[Ridge, list[Expression]]] = {}
    left: list[Expression] = []
    with precision(PRECISION):
        for term in _terms(expression.core if _needs_core(expression) else expression, products):
            ridge = (_square(term, variables) if centred else None) or ridge_of(term, variables)
            if ridge is None:
                left.append(term)
            else:
                found.setdefault(ridge.key, (ridge, []))[1].append(ridge.function)
    ridges = tuple(Ridge(one.direction, add(*functions), one.shift) for one, functions in found.values())
    return Structure(ridges, tuple(left))


def _needs_core(expression: Expression) -> bool:
    """Whether a max or min is hidden in a named function of several variables."""
    return any(
        node.op in ("clip", "hardtanh", "relu6") and len(node.variables) > 1 and ridge_of(node, node.variables) is None
        for node in postorder(expression)
    )


def _terms(expression: Expression, products: _Products) -> list[Expression]:
    """What adds up to the expression, with products of affine factors and max or min of two parts taken apart."""
    match expression.op:
        case "add":
            return [term for arg in expression.args for term in _terms(arg, products)]
        case "neg":
            return [neg(term) for term in _terms(expression.args[0], products)]
        case "mul" if len(expression.variables) > 1:
            return products.terms(expression)
        case "div" if not expression.args[1].variables and len(expression.variables) > 1:
            return [build.div(term, expression.args[1]) for term in _terms(expression.args[0], products)]
        case "max" | "min" if len(expression.args) == 2 and _is_ridge_pair(expression):
            a, b = expression.args
            rest = neg(build.make("relu", (build.sub(b, a),))) if expression.op == "min" else _relu(build.sub(a, b))
            return [*_terms(b, products), rest]
        case _:
            return [expression]


def _relu(inner: Expression) -> Expression:
    return build.make("relu", (inner,))


def _is_ridge_pair(expression: Expression) -> bool:
    difference = build.sub(*expression.args)
    return len(expression.variables) > 1 and ridge_of(_relu(difference), expression.variables) is not None


@dataclass(frozen=True)
class _Products:
    """How products are taken apart; without a box, as they are."""

    box: Box | None
    centred: bool

    def terms(self, expression: Expression) -> list[Expression]:
        """A constant times a sum, or two affine factors, in terms; anything else as it is."""
        constants = [arg for arg in expression.args if not arg.variables]
        varying = [arg for arg in expression.args if arg.variables]
        if len(varying) == 1 and constants:
            scale = mul(*constants)
            return [mul(scale, term) for term in _terms(varying[0], self)]
        if len(varying) == 2 and all(arg.affine() is not None for arg in varying):
            a, b = varying
            return _squares(a, b, self._scales(a, b), constants)
        return [expression]

    def _scales(self, a: Expression, b: Expression) -> Scales:
        if self.box is None:
            return Scales((0.0, 0.0), (1.0, 1.0))
        return scales(_ends(a, self.box), _ends(b, self.box), self.centred)


def _ends(affine: Expression, box: Box) -> tuple[float, float]:
    """Between what an affine expression stays."""
    return reached(*(affine.affine() or ({}, arb(0))), box)


def _squares(a: Expression, b: Expression, by: Scales, constants: Sequence[Expression]) -> list[Expression]:
    """What adds up to the product of two affine factors and constants."""
    scale = mul(*constants, number(by.factor)) if constants else number(by.factor)
    (c, d), left = by.centres, []
    if c or d:
        linear = [mul(number(d), a), mul(number(c), b), neg(mul(number(c), number(d)))]
        left = [mul(*constants, one) if constants else one for one in linear]
    own, other = (
        one if (centre, unit) == (0, 1) else mul(number(1 / unit), build.sub(one, number(centre)) if centre else one)
        for one, centre, unit in zip((a, b), by.centres, by.units, strict=True)
    )
    plus, minus = (build.integer_power(one, 2) for one in (add(own, other), build.sub(own, other)))
    return [mul(scale, plus), neg(mul(scale, minus)), *left]


def _square(term: Expression, variables: Sequence[str]) -> Ridge | None:
    """A multiple of the square of an affine part, as a square of that with its constant: heads know squares."""
    squares = [node for node in postorder(term) if node.op == "integer_power" and node.data == 2]
    inside = squares[0].args[0] if len(squares) == 1 else None
    return None if inside is None or inside.affine() is None else _through(term, inside, variables)


def ridge_of(term: Expression, variables: Sequence[str]) -> Ridge | None:
    """The term as a function of one linear combination, if it is one."""
    if len(term.variables) <= 1:
        name = term.variables[0] if term.variables else (variables[0] if variables else "x")
        return Ridge(_direction({name: arb(1)}, variables), term.substitute({name: X}))
    nodes = [node for node in postorder(term) if len(node.variables) > 1 and node.affine() is not None]
    if not nodes:
        return None
    forms = (rational_affine(node) for node in reversed(nodes))
    direction = next((form[0] for form in forms if form is not None and form[0]), None)
    function = None if direction is None else _along(term, direction)
    if function is not None and direction is not None:
        return Ridge(_direction({name: arb(slope) for name, slope in direction.items()}, variables), function)
    return next((found for node in nodes if (found := _through(term, node, variables)) is not None), None)


def _direction(slopes: Mapping[str, arb], variables: Sequence[str]) -> tuple[arb, ...]:
    return tuple(slopes.get(name, arb(0)) for name in variables)


def rational_affine(expression: Expression) -> tuple[dict[str, fmpq], fmpq] | None:
    """({name: a}, b) with f = sum a x + b in rational numbers, without slopes that are 0; None if it is no such."""
    if expression.affine() is None:
        return None
    slopes: dict[str, fmpq] = {}
    constant = fmpq(0)
    for monomial, coefficient in polynomial(expression, {}).items():
        match tuple(monomial):
            case ():
                constant = coefficient
            case ((Atom(op="variable", data=name), 1),):
                slopes[str(name)] = coefficient
            case _:
                return None
    return slopes, constant


def _along(term: Expression, direction: dict[str, fmpq]) -> Expression | None:
    """The term with every affine part that varies written as ratio u + constant, u = direction . x."""
    new: dict[Expression, Expression] = {}
    for node in postorder(term):
        if not node.variables:
            new[node] = node
            continue
        form = rational_affine(node)
        multiple = None if form is None else _multiple(form[0], direction)
        if form is not None and multiple is not None:
            scale, offset = fraction(multiple), fraction(form[1])
            if scale is None or offset is None:
                return None
            scaled = X if multiple == 1 else mul(scale, X)
            new[node] = scaled if form[1] == 0 else add(scaled, offset)
        elif node.args and all(arg in new for arg in node.args):
            new[node] = build.make(node.op, tuple(new[arg] for arg in node.args), node.data)
    return new.get(term)


def _through(term: Expression, node: Expression, variables: Sequence[str]) -> Ridge | None:
    """The term as a function of one of its affine parts, whatever the coefficients, if it depends on nothing else."""
    form = node.affine()
    new: dict[Expression, Expression] = {}
    for one in postorder(term):
        if one is node:
            new[one] = X
        elif all(arg in new for arg in one.args) and one.op != "variable":
            new[one] = build.make(one.op, tuple(new[arg] for arg in one.args), one.data)
    if form is None or term not in new:
        return None
    return Ridge(_direction(form[0], variables), new[term], form[1])


def _multiple(slopes: dict[str, fmpq], direction: dict[str, fmpq]) -> fmpq | None:
    """r with slopes = r direction."""
    if slopes.keys() != direction.keys():
        return None
    name = next(iter(direction))
    ratio = slopes[name] / direction[name]
    return ratio if all(slopes[one] == direction[one] * ratio for one in direction) else None


def split_constant(function: Expression) -> tuple[float, Expression]:
    """c and g with function = c g, c an exact float: signs and constant factors taken out, x**2 called square(x)."""
    with precision(PRECISION):
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


def _exact(value: arb) -> float | None:
    """The number as a float, if it is one exactly."""
    near = float(value.mid())
    return near if value.is_exact() and (value - near).is_zero() else None
