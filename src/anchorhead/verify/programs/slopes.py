"""Ranges and slopes of an expression on boxes: every difference quotient along an axis lies in the slope's ball.

Along one axis an expression is taken as a series of two coefficients, the ball of its values and that of its slopes.

Lemma. For operations F that are smooth on the balls, coefficient 1 of the series holds the difference quotient: by the
mean value theorem F(q) - F(p) is the gradient of F somewhere between times the change of its arguments.

Where a switch is not decided the hull of both sides holds it, if they meet: abs, min and max, and x beside what is 0
at 0. Proof. Let f be continuous and at every point of a segment [p, q] one of a and b, whose quotients are at most m.
If f(p) = a(p) and f(q) = b(q), let s be the last point with f(s) = a(s): beyond it f is b, so that f(s) = b(s) too, and
f(q) - f(p) = b(q) - b(s) + a(s) - a(p) <= m (q - p). Other switches may jump, and functions may have no slope: then
nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flint import arb, arb_series

from anchorhead.verify.balls import coefficient
from anchorhead.verify.programs.expressions import SERIES, Expression, Undecided, evaluated, switches
from anchorhead.verify.programs.numbers import BALLS, Range, decided


def slopes_of(function: Expression, variables: Sequence[str], box: Sequence[Range]) -> tuple[Range, list[arb]]:
    """The range of the function's values on a box, and balls of its slopes along each axis."""
    at = dict(zip(variables, (side.ball for side in box), strict=True))
    return function.range(dict(zip(variables, box, strict=True))), [
        slope_along(name, function, at) for name in variables
    ]


def slope_along(name: str, function: Expression, at: Mapping[str, arb]) -> arb:
    """The ball of the function's slopes along one axis, for values of such balls; no number where nothing is known."""
    try:
        found = evaluated(function, {**at, name: arb_series([at[name], 1], prec=2)}, SLOPES)
    except Undecided:
        return arb.nan()
    return coefficient(_series(found), 1)


def _series(a: Any) -> arb_series:
    return a if isinstance(a, arb_series) else arb_series([a], prec=2)


def _first(a: Any) -> arb:
    return _series(a)[0]


def _either(ball: arb, a: Any, b: Any) -> arb_series:
    """One of two sides that meet, with values in the ball."""
    slopes = [coefficient(_series(one), 1) for one in (a, b)]
    return arb_series([ball, slopes[0].union(slopes[1])], prec=2)


def _beside(below: Callable[..., Any]) -> Callable[..., Any]:
    """x above 0, and below it a function of what is then negative, which is 0 at 0."""

    def found(x: Any, *parameters: Any) -> Any:
        other, first = below(SLOPES["min"](x, arb(0)), *parameters), _first(x)
        side = decided("<=", arb(0), first)
        if side is not None:
            return x if side else other
        return _either(_first(other).union(BALLS["max"](first, arb(0))), x, other)

    return found


def _chain(op: str, slope: Callable[[arb], arb]) -> Callable[[Any], Any]:
    """By f' itself, which on wide balls is tighter than a quotient of series."""

    def found(a: Any) -> Any:
        if not isinstance(a, arb_series):
            return BALLS[op](a)
        return arb_series([BALLS[op](a[0]), slope(a[0]) * a[1]], prec=2)

    return found


def _sigmoid_slope(a: arb) -> arb:
    """e^-t / (1 + e^-t)^2 with t = |a|, which falls as t grows: its values at the ends of |a| hold all others."""
    ends = [(-t).exp() for t in (a.abs_lower(), a.abs_upper())]
    near, far = (power / (1 + power) ** 2 for power in ends)
    return near.union(far)


SLOPES: dict[str, Callable[..., Any]] = {
    **SERIES,
    **switches(_first, lambda op, a, b: _either(BALLS[op](_first(a), _first(b)), a, b)),
    "sigmoid": _chain("sigmoid", _sigmoid_slope),
    "softplus": _chain("softplus", BALLS["sigmoid"]),
    "tanh": lambda a: 2 * SLOPES["sigmoid"](2 * a) - 1,
    "leaky_relu": _beside(lambda x, slope: slope * x),
    "elu": _beside(lambda x, alpha: alpha * SERIES["expm1"](x)),
    "celu": _beside(lambda x, alpha: alpha * SERIES["expm1"](SERIES["div"](x, alpha))),
}
