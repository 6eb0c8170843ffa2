"""Enclosures of one analytic piece of an expression over complex balls, in Arb.

A finite result encloses the analytic function on the whole ball, and proves that it is analytic there: log,
sqrt and real powers refuse balls that meet (-inf, 0], quotients those that meet a zero of the divisor, and
the result is then not finite. To bound f on a Bernstein ellipse, cover the *closed region*, not its rim
alone: a pole inside would not be seen from the rim. (The rim gives the maximum once balls that cover the
inside came out finite.)
"""

from __future__ import annotations

from collections.abc import Mapping

from flint import acb, arb

from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.zeros import sign
from anchorhead.language.expressions.build import neg, rebuild
from anchorhead.language.expressions.calculus import difference
from anchorhead.language.expressions.expression import ARITHMETIC, SWITCHES, Data, Expression, Rules, postorder

_NAN = acb(arb.nan(), arb.nan())


def complex_ball(expression: Expression, at: Mapping[str, acb], branch: Mapping[str, arb] | None = None) -> acb:
    if branch is not None:
        expression = resolve(expression, branch)
    return expression.evaluated(
        {name: acb(ball) for name, ball in at.items()},
        _RULES,
        "is analytic only piece by piece: take a piece from analyse(...), or give branch=, a real box on which it is "
        "decided",
    )


def resolve(expression: Expression, box: Mapping[str, arb]) -> Expression:
    """The expression without switches that it equals on a real box, if every switch is decided there."""

    def choose(node: Expression) -> Expression | None:
        match node.op, node.args:
            case "abs", (a,):
                order = _sign(a, box)
                return None if order is None else a if order >= 0 else neg(a)
            case "where", (a, b, then, other):
                order = _sign(difference(a, b), box)
                return None if order is None else then if order < (node.data == "<=") else other
            case "min" | "max", args:
                side = 1 if node.op == "max" else -1
                for arg in args:
                    orders = [_sign(difference(arg, other), box) for other in args]
                    if all(order is not None and side * order >= 0 for order in orders):
                        return arg
        return None

    resolved = rebuild(expression.core, choose)
    left = [node for node in postorder(resolved) if node.op in SWITCHES]
    if left:
        where = ", ".join(f"{name} in {ball.str(6)}" for name, ball in box.items())
        raise AnchorheadError(f"{left[0]} is not decided for {where}: give a smaller box, or split at its kink")
    return resolved


def _sign(u: Expression, box: Mapping[str, arb]) -> int | None:
    """The sign of u on a box if it has one there; 0 if it vanishes on all of it."""
    form = u.affine()
    if form is None:
        return sign(u.ball(box))
    return sign(sum((slope * box[name] for name, slope in form[0].items()), form[1]))


def _off_cut(a: acb) -> bool:
    """Whether a ball keeps clear of (-inf, 0]."""
    return bool(a.real > 0 or a.imag > 0 or a.imag < 0)


def _log(_: Data, a: acb) -> acb:
    return a.log() if _off_cut(a) else _NAN


def _log1p(_: Data, a: acb) -> acb:
    return a.log1p() if _off_cut(1 + a) else _NAN


def _sqrt(_: Data, a: acb) -> acb:
    return a.sqrt() if _off_cut(a) else _NAN


def _integer_power(n: Data, a: acb) -> acb:
    n = int(n or 0)
    if n < 0:
        return 1 / _integer_power(-n, a)
    result = acb(1)
    while n:
        if n & 1:
            result = result * a
        a = a * a
        n >>= 1
    return result


def _power(_: Data, a: acb, b: acb) -> acb:
    return (b * a.log()).exp() if _off_cut(a) else _NAN


def _sigmoid(_: Data, a: acb) -> acb:
    # the exponential that is small where the ball is: the large one has an unknown phase on a wide ball
    if a.real.mid() < 0:
        w = a.exp()
        return w / (1 + w)
    return 1 / (1 + (-a).exp())


def _tanh(_: Data, a: acb) -> acb:
    if a.real.mid() < 0:
        return -_tanh(None, -a)
    w = (-2 * a).exp()
    return (1 - w) / (1 + w)


def _softplus(_: Data, a: acb) -> acb:
    # log(1 + exp(a)) is analytic for |Im a| < pi, and for Re a < 0; beyond, its branches differ by 2 pi i
    if a.real < 0:
        return a.exp().log1p()
    if not abs(a.imag) < arb.pi():
        return _NAN
    if a.real.mid() > 0:
        return a + _log1p(None, (-a).exp())
    return _log1p(None, a.exp())


_RULES: Rules = {
    **ARITHMETIC,
    "number": lambda value: acb(value),
    "pi": lambda _: acb(arb.pi()),
    "e": lambda _: acb(arb.const_e()),
    "integer_power": _integer_power,
    "power": _power,
    "exp": lambda _, a: a.exp(),
    "expm1": lambda _, a: a.expm1(),
    "log": _log,
    "log1p": _log1p,
    "sqrt": _sqrt,
    "sin": lambda _, a: a.sin(),
    "cos": lambda _, a: a.cos(),
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "erf": lambda _, a: a.erf(),
    "erfc": lambda _, a: a.erfc(),
}
