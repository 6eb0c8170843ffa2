"""Functions that are nearly straight far out: f(s) = slope s + rest for every s of a ball, slope and rest being balls.

The ball may span many scales. The form is carried through an expression: products with what does not grow scale it,
sums add it, a switch that is decided passes it on, and softplus(x) = x + log(1 + e^-x). Whatever else is made of a line
is a number, rest, by its enclosure. So gelu(s) = s (1/2) erfc(-s / sqrt 2) is (1 - tiny) s on [100, 1e30].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from flint import arb

from anchorhead.verify.programs.expressions import Expression, Undecided, evaluated
from anchorhead.verify.programs.numbers import BALLS, decided


@dataclass(frozen=True)
class Line:
    """slope s + rest, for the s of a ball."""

    slope: arb
    rest: arb
    s: arb

    @property
    def ball(self) -> arb:
        return self.slope * self.s + self.rest


def line_of(function: Expression, s: arb) -> tuple[arb, arb]:
    """Slope and rest of f on the ball s; Undecided where a switch is open."""
    (name,) = function.variables or ("x",)
    found = evaluated(function, {name: Line(arb(1), arb(0), s)}, LINES)
    return (found.slope, found.rest) if isinstance(found, Line) else (arb(0), found)


def _ball(x: Any) -> arb:
    return x.ball if isinstance(x, Line) else x


def _add(a: Any, b: Any) -> Any:
    if not isinstance(a, Line):
        a, b = b, a
    if not isinstance(a, Line):
        return a + b
    return Line(a.slope + b.slope, a.rest + b.rest, a.s) if isinstance(b, Line) else Line(a.slope, a.rest + b, a.s)


def _multiply(a: Any, b: Any) -> Any:
    """One factor stays a line, the other becomes a ball: the narrower one."""
    if isinstance(a, Line) and isinstance(b, Line):
        a, b = (a, b.ball) if b.ball.rad() < a.ball.rad() else (b, a.ball)
    if isinstance(b, Line):
        a, b = b, a
    return Line(a.slope * b, a.rest * b, a.s) if isinstance(a, Line) else a * b


def _softplus(x: Any) -> Any:
    if not isinstance(x, Line) or not x.ball > 0:
        return BALLS["softplus"](_ball(x))
    return Line(x.slope, x.rest + BALLS["log1p"](BALLS["exp"](-x.ball)), x.s)


def _where(relation: str, a: Any, b: Any, then: Any, other: Any) -> Any:
    side = decided(relation, _ball(a), _ball(b))
    if side is None:
        raise Undecided("where")
    return then if side else other


def _extreme(sign: int) -> Callable[..., Any]:
    def found(*args: Any) -> Any:
        return reduce(lambda a, b: _where("<=", sign * _ball(a), sign * _ball(b), b, a), args)

    return found


def _of_balls(op: str) -> Callable[..., Any]:
    return lambda *args: BALLS[op](*(_ball(x) if isinstance(x, Line) else x for x in args))


LINES: dict[str, Callable[..., Any]] = {op: _of_balls(op) for op in BALLS} | {
    "add": lambda *terms: reduce(_add, terms),
    "mul": lambda *factors: reduce(_multiply, factors),
    "neg": lambda a: _multiply(a, arb(-1)),
    "div": lambda a, b: _multiply(a, BALLS["div"](arb(1), _ball(b))),
    "softplus": _softplus,
    "abs": lambda a: _extreme(1)(a, _multiply(a, arb(-1))),
    "where": _where,
    "max": _extreme(1),
    "min": _extreme(-1),
}
