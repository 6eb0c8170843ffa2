"""Enclosures of an expression over real balls, in Arb at the precision that `precision` sets.

The result contains f(x) for every x of the given balls at which f is defined; it is not finite where f may be
unbounded there. Where a switch is not decided on the ball, the result is the hull of the branches. Monotone
operations are evaluated at the two ends, so that wide balls stay tight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from flint import arb

from anchorhead.language.expressions.expression import ARITHMETIC, Data, Expression, Rules

_NARROW = arb(2) ** -40


def ball(expression: Expression, at: Mapping[str, arb]) -> arb:
    return expression.evaluated(at, RULES)


def _increasing(f: Callable[[arb], arb]) -> Callable[[Data, arb], arb]:
    def rule(_: Data, a: arb) -> arb:
        if a.rad() < _NARROW:
            return f(a)
        return f(a.lower()).union(f(a.upper()))

    return rule


def _log(_: Data, a: arb) -> arb:
    if a.lower() > 0:
        return a.lower().log().union(a.upper().log())
    return arb.nan()


def _log1p(_: Data, a: arb) -> arb:
    low, high = a.lower(), a.upper()
    return low.log1p().union(high.log1p()) if low > -1 else arb.nan()


def _sqrt(_: Data, a: arb) -> arb:
    low, high = a.lower(), a.upper()
    if not high >= 0:  # NaN as well
        return arb.nan()
    return (low.sqrt() if low > 0 else arb(0)).union(high.sqrt())


def sigmoid_ball(x: arb) -> arb:
    """1/(1 + exp(-x)) at a narrow ball, by the form that keeps relative accuracy on both sides."""
    if x < 0:
        w = x.exp()
        return w / (1 + w)
    return 1 / (1 + (-x).exp())


def softplus_ball(x: arb) -> arb:
    return x + (-x).exp().log1p() if x > 0 else x.exp().log1p()


def _integer_power(n: Data, a: arb) -> arb:
    n = int(n or 0)
    if n < 0:
        return 1 / _integer_power(-n, a)
    if n == 0:
        return arb(1)
    if n % 2 == 0 and not a > 0 and not a < 0:
        return arb(0).union(_times(a.abs_upper(), n)) if a.is_finite() else _times(a, n)
    if a.rad() < _NARROW * a.abs_lower():
        return _times(a, n)
    return _times(a.lower(), n).union(_times(a.upper(), n))


def _times(a: arb, n: int) -> arb:
    """a**n for n >= 1 by repeated squaring: Arb's own power gives NaN for balls around 0."""
    result = None
    while n:
        if n & 1:
            result = a if result is None else result * a
        n >>= 1
        if n:
            a = a * a
    return arb(1) if result is None else result


def _power(_: Data, a: arb, b: arb) -> arb:
    if a.lower() > 0:
        return _INCREASING_EXP(None, b * _log(None, a))
    if b > 0 and a.upper() > 0:  # 0**b = 0, increasing in a
        return arb(0).union(_INCREASING_EXP(None, b * a.upper().log()))
    return arb(0) if b > 0 and a.is_zero() else arb.nan()


def _abs(_: Data, a: arb) -> arb:
    if a >= 0:
        return a
    if a <= 0:
        return -a
    return arb(0).union(a.abs_upper())


def _where(relation: Data, a: arb, b: arb, then: arb, other: arb) -> arb:
    decided = decide(str(relation), a, b)
    return then.union(other) if decided is None else then if decided else other


def decide(relation: str, a: arb, b: arb) -> bool | None:
    """Whether a < b (or a <= b) on the whole balls; None where it is not the same for all points."""
    if relation == "<":
        return True if a < b else False if a >= b else None
    return True if a <= b else False if a > b else None


_INCREASING_EXP = _increasing(arb.exp)

RULES: Rules = {
    **ARITHMETIC,
    "number": lambda value: arb(value),
    "pi": lambda _: arb.pi(),
    "e": lambda _: arb.const_e(),
    "integer_power": _integer_power,
    "power": _power,
    "exp": _INCREASING_EXP,
    "expm1": _increasing(arb.expm1),
    "log": _log,
    "log1p": _log1p,
    "sqrt": _sqrt,
    "sin": lambda _, a: a.sin(),
    "cos": lambda _, a: a.cos(),
    "tanh": _increasing(arb.tanh),
    "sigmoid": _increasing(sigmoid_ball),
    "softplus": _increasing(softplus_ball),
    "erf": _increasing(arb.erf),
    "erfc": _increasing(arb.erfc),
    "abs": _abs,
    "min": lambda _, *args: reduce(arb.min, args),
    "max": lambda _, *args: reduce(arb.max, args),
    "where": _where,
}
