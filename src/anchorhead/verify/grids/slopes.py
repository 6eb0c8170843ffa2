"""Ranges and slopes of an expression on boxes: every difference quotient along an axis lies in the slope's ball.

For operations that are smooth where they are defined that is the mean value theorem and the chain rule; abs, min and
max take the hull of both sides where they are not decided, which holds the quotients across a kink. `where` may jump:
undecided, its slopes are not finite, and its range is the hull of both branches. Named functions that are a `where`
whose branches meet at 0 have slopes all the same: f(b) - f(a) is (b - a) times a mean of f' between a and b.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from flint import arb

from anchorhead.verify.programs.expressions import BALLS, NAMED, Expression, decided, evaluated


@dataclass(frozen=True)
class Slopes:
    """A quantity on a box: the ball of its values, and of its difference quotients along each axis."""

    ball: arb
    along: tuple[arb, ...]


def slopes_of(function: Expression, variables: Sequence[str], balls: Sequence[arb]) -> Slopes:
    """The function on the box that the balls make up."""
    d = len(variables)
    at = {
        name: Slopes(ball, tuple(arb(int(i == j)) for i in range(d)))
        for j, (name, ball) in enumerate(zip(variables, balls, strict=True))
    }
    found = evaluated(function, at, RULES)
    return found if isinstance(found, Slopes) else Slopes(found, (arb(0),) * d)


def _ball(x: Any) -> arb:
    return x.ball if isinstance(x, Slopes) else x


def _chain(op: str, slope: Callable[[arb], arb]) -> Callable[[Any], Any]:
    """f(x) with f' on the ball of x; not finite where f has no bounded slope there."""

    def found(x: Any) -> Any:
        if not isinstance(x, Slopes):
            return BALLS[op](x)
        steep = slope(x.ball)
        return Slopes(BALLS[op](x.ball), tuple(steep * one for one in x.along))

    return found


def _sum(a: Any, b: Any) -> Any:
    if not isinstance(a, Slopes):
        a, b = b, a
    if not isinstance(a, Slopes):
        return a + b
    along = tuple(x + y for x, y in zip(a.along, b.along, strict=True)) if isinstance(b, Slopes) else a.along
    return Slopes(a.ball + _ball(b), along)


def _product(a: Any, b: Any) -> Any:
    if not isinstance(a, Slopes):
        a, b = b, a
    if not isinstance(a, Slopes):
        return a * b
    other = _ball(b)
    along = tuple(x * other for x in a.along)
    if isinstance(b, Slopes):
        along = tuple(x + a.ball * y for x, y in zip(along, b.along, strict=True))
    return Slopes(a.ball * other, along)


def _reciprocal(x: Any) -> Any:
    return _chain_of(x, lambda a: BALLS["div"](arb(1), a), lambda a: -BALLS["div"](arb(1), a * a))


def _chain_of(x: Any, value: Callable[[arb], arb], slope: Callable[[arb], arb]) -> Any:
    if not isinstance(x, Slopes):
        return value(x)
    steep = slope(x.ball)
    return Slopes(value(x.ball), tuple(steep * one for one in x.along))


def _power(n: int, x: Any) -> Any:
    def steep(a: arb) -> arb:
        return n * BALLS["integer_power"](n - 1, a) if n else arb(0)

    return _chain_of(x, lambda a: BALLS["integer_power"](n, a), steep)


def _general_power(a: Any, b: Any) -> Any:
    return RULES["exp"](_product(b, RULES["log"](a)))


def _hull(a: Any, b: Any, along: bool) -> Any:
    """Both sides of a switch that is not decided; along: whether slopes are those of either side."""
    ball = _ball(a).union(_ball(b))
    sides = [one.along for one in (a, b) if isinstance(one, Slopes)]
    if not sides:
        return ball
    zero = (arb(0),) * len(sides[0])
    pairs = zip(*(one.along if isinstance(one, Slopes) else zero for one in (a, b)), strict=True)
    return Slopes(ball, tuple(x.union(y) if along else arb.nan() for x, y in pairs))


def _extreme(op: str, sign: int) -> Callable[..., Any]:
    def two(a: Any, b: Any) -> Any:
        side = decided("<=", sign * _ball(a), sign * _ball(b))
        if side is not None:
            return b if side else a
        found = _hull(a, b, along=True)
        ball = BALLS[op](_ball(a), _ball(b))
        return Slopes(ball, found.along) if isinstance(found, Slopes) else ball

    return lambda *args: reduce(two, args)


def _where(relation: str, a: Any, b: Any, then: Any, other: Any) -> Any:
    side = decided(relation, _ball(a), _ball(b))
    return _hull(then, other, along=False) if side is None else then if side else other


def _gauss(x: arb) -> arb:
    return BALLS["exp"](-BALLS["integer_power"](2, x)) * 2 / arb.pi().sqrt()


def _sigmoid_slope(x: arb) -> arb:
    s = BALLS["sigmoid"](x)
    return (s * (1 - s)).min(arb(0.25)) if x.is_finite() else arb.nan()


_SLOPES: dict[str, Callable[[arb], arb]] = {
    "exp": BALLS["exp"],
    "expm1": BALLS["exp"],
    "log": lambda a: BALLS["div"](arb(1), a),
    "log1p": lambda a: BALLS["div"](arb(1), 1 + a),
    "sqrt": lambda a: BALLS["div"](arb(1), 2 * BALLS["sqrt"](a)),
    "sin": lambda a: a.cos(),
    "cos": lambda a: -a.sin(),
    "tanh": lambda a: 1 - BALLS["integer_power"](2, BALLS["tanh"](a)),
    "sigmoid": _sigmoid_slope,
    "softplus": BALLS["sigmoid"],
    "erf": _gauss,
    "erfc": lambda a: -_gauss(a),
}


def _meeting(name: str, slope: Callable[..., arb]) -> Callable[..., Any]:
    """x above 0, and below it a function with this slope that is 0 at 0."""

    def steep(a: arb, *parameters: arb) -> arb:
        below = slope(a.min(arb(0)), *parameters)
        return arb(1) if a >= 0 else below if a <= 0 else below.union(arb(1))

    def found(x: Any, *parameters: Any) -> Any:
        if any(isinstance(one, Slopes) for one in parameters):
            return NAMED[name](RULES, x, *parameters)
        return _chain_of(x, lambda a: NAMED[name](BALLS, a, *parameters), lambda a: steep(a, *parameters))

    return found


RULES: dict[str, Callable[..., Any]] = {
    "pi": arb.pi,
    "e": arb.const_e,
    "add": lambda *terms: reduce(_sum, terms),
    "mul": lambda *factors: reduce(_product, factors),
    "neg": lambda a: _product(a, arb(-1)),
    "div": lambda a, b: _product(a, _reciprocal(b)),
    "integer_power": _power,
    "power": _general_power,
    "abs": lambda a: _extreme("max", 1)(a, _product(a, arb(-1))),
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
    "where": _where,
    "leaky_relu": _meeting("leaky_relu", lambda a, slope: slope),
    "elu": _meeting("elu", lambda a, alpha: alpha * BALLS["exp"](a)),
    "celu": _meeting("celu", lambda a, alpha: BALLS["exp"](a / alpha)),
    **{op: _chain(op, slope) for op, slope in _SLOPES.items()},
}
