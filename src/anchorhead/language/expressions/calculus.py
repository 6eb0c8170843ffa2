"""Derivatives, and the affine form of an expression, node by node over its core."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flint import arb

from anchorhead.language.expressions import build
from anchorhead.language.expressions.balls import RULES
from anchorhead.language.expressions.build import MINUS_ONE, ONE, TWO, ZERO, add, div, integer_power, mul, neg, number
from anchorhead.language.expressions.expression import Data, Expression, Rules, postorder
from anchorhead.language.expressions.precision import FLOAT64_BITS, precision

_BITS = 256
"""Enough that exact sums and products of floats stay exact, as they do wherever kinks are looked for."""


def derivative(expression: Expression, name: str) -> Expression:
    """d/d(name), by the chain rule; at a kink the value of one side."""
    slopes: dict[Expression, Expression] = {}
    for node in postorder(expression.core):
        if node.op == "variable":
            slopes[node] = ONE if node.data == name else ZERO
        else:
            inner = [slopes[arg] for arg in node.args]
            slopes[node] = ZERO if all(slope is ZERO for slope in inner) else _CHAIN[node.op](node, *inner)
    return slopes[expression.core]


def plus(*terms: Expression) -> Expression:
    """A sum without its zeros."""
    kept = [term for term in terms if term is not ZERO]
    return add(*kept) if kept else ZERO


def times(*factors: Expression) -> Expression:
    """A product without its ones; 0 if a factor is 0."""
    if any(factor is ZERO for factor in factors):
        return ZERO
    kept = [factor for factor in factors if factor is not ONE]
    if len(kept) > 1 and kept[0] is MINUS_ONE:
        return neg(mul(*kept[1:]))
    return mul(*kept) if kept else ONE


def difference(a: Expression, b: Expression) -> Expression:
    """a - b, exactly 0 where both are the same."""
    return ZERO if a is b else plus(a, neg(b))


def _do(op: str, *args: Expression) -> Expression:
    return build.make(op, args)


def _product(node: Expression, *slopes: Expression) -> Expression:
    args = node.args
    return plus(*(times(*args[:index], slope, *args[index + 1 :]) for index, slope in enumerate(slopes)))


def _quotient(node: Expression, up: Expression, down: Expression) -> Expression:
    if down is ZERO:
        return div(up, node.args[1])
    return div(difference(up, times(node, down)), node.args[1])


def _integer_power(node: Expression, slope: Expression) -> Expression:
    n, (base,) = int(node.data or 0), node.args
    if n == 0:
        return ZERO
    rest = {1: ONE, 2: base}.get(n)
    if rest is None:
        rest = div(integer_power(base, n), base) if n == -64 else integer_power(base, n - 1)
    return times(number(n), rest, slope)


def _power(node: Expression, base: Expression, exponent: Expression) -> Expression:
    a, b = node.args
    if exponent is ZERO:  # b a**(b-1) a'; the exponent may not leave its range
        return times(b, _lowered(a, b), base)
    return times(node, _do("log", a), exponent)


@precision(FLOAT64_BITS)
def _lowered(a: Expression, b: Expression) -> Expression:
    return build.power(a, build.sub(b, ONE)) if b.ball({}) > -63 else div(build.power(a, b), a)


def _largest(node: Expression, *slopes: Expression) -> Expression:
    op, value, slope = node.op, node.args[0], slopes[0]
    for arg, inner in zip(node.args[1:], slopes[1:], strict=True):
        low, high = (value, arg) if op == "max" else (arg, value)
        slope = slope if slope is inner else build.where("<", low, high, inner, slope)
        value = _do(op, value, arg)
    return slope


def _gauss(node: Expression, slope: Expression) -> Expression:
    bell = times(div(TWO, _do("sqrt", build.PI)), _do("exp", neg(integer_power(node.args[0], 2))), slope)
    return bell if node.op == "erf" else neg(bell)


_CHAIN: dict[str, Callable[..., Expression]] = {
    "add": lambda node, *slopes: plus(*slopes),
    "mul": _product,
    "neg": lambda node, slope: neg(slope),
    "div": _quotient,
    "integer_power": _integer_power,
    "power": _power,
    "exp": lambda node, slope: times(node, slope),
    "expm1": lambda node, slope: times(_do("exp", node.args[0]), slope),
    "log": lambda node, slope: div(slope, node.args[0]),
    "log1p": lambda node, slope: div(slope, add(ONE, node.args[0])),
    "sqrt": lambda node, slope: div(slope, times(TWO, node)),
    "sin": lambda node, slope: times(_do("cos", node.args[0]), slope),
    "cos": lambda node, slope: neg(times(_do("sin", node.args[0]), slope)),
    "tanh": lambda node, slope: times(  # 1 - tanh^2 without its cancellation
        number(4),
        _do("sigmoid", times(TWO, node.args[0])),
        _do("sigmoid", neg(times(TWO, node.args[0]))),
        slope,
    ),
    "sigmoid": lambda node, slope: times(node, _do("sigmoid", neg(node.args[0])), slope),
    "softplus": lambda node, slope: times(_do("sigmoid", node.args[0]), slope),
    "erf": _gauss,
    "erfc": _gauss,
    "abs": lambda node, slope: times(build.where("<", node.args[0], ZERO, MINUS_ONE, ONE), slope),
    "min": _largest,
    "max": _largest,
    "where": lambda node, a, b, then, other: (
        then if then is other else build.where(str(node.data), node.args[0], node.args[1], then, other)
    ),
}

Affine = tuple[dict[str, arb], arb]


@precision(_BITS)
def affine(expression: Expression) -> Affine | None:
    """({name: a}, b) with f = sum a x + b, as balls (exact where the arithmetic is); else
    None.

    Coefficients that are exactly 0 are left out.
    """
    variables = {name: ({name: arb(1)}, arb(0)) for name in expression.variables}
    form: Affine | None = expression.evaluated(variables, _FORMS)
    if form is None or not all(ball.is_finite() for ball in (*form[0].values(), form[1])):
        return None
    slopes, constant = form
    return {name: slope for name, slope in slopes.items() if not slope.is_zero()}, constant


def _form(op: str, data: Data, *forms: Affine | None) -> Affine | None:
    known = [form for form in forms if form is not None]
    if len(known) < len(forms):
        return None
    if not any(slopes for slopes, _ in known):
        return {}, RULES[op](data, *(constant for _, constant in known))
    match op:
        case "add":
            slopes: dict[str, arb] = {}
            for terms, _ in known:
                for name, slope in terms.items():
                    slopes[name] = slopes[name] + slope if name in slopes else slope
            return slopes, sum((constant for _, constant in known), arb(0))
        case "neg":
            return _scaled(known[0], arb(-1))
        case "mul":
            varying = [form for form in known if form[0]]
            if len(varying) > 1:
                return None
            scale = arb(1)
            for terms, constant in known:
                scale = scale if terms else scale * constant
            return _scaled(varying[0], scale)
        case "div" if not known[1][0]:
            (slopes, constant), divisor = known[0], known[1][1]
            return {name: slope / divisor for name, slope in slopes.items()}, constant / divisor
        case "integer_power" if data == 1:
            return known[0]
        case _:
            return None


_FORMS: Rules = {op: partial(_form, op) for op in RULES}


def _scaled(form: Affine, scale: arb) -> Affine:
    return {name: slope * scale for name, slope in form[0].items()}, form[1] * scale
