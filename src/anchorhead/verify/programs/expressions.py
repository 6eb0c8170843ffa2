"""Expressions as a file holds them: read, and evaluated over balls and over Taylor series of balls.

A saved expression is {"nodes": [[operation, data?, places of arguments...], ...]}, the last node being the whole. The
operations, and the functions that are named by their definitions, are in CORE and NAMED below: what is not there is
refused. Evaluations take the numbers that variables stand for:

    range    what f is on a box. A switch that ranges do not decide gives the hull of both sides; where f may be
             unbounded or undefined, nothing is known. `ball`: that as a ball; `point`: for what is nearly a point.
    series   arb_series around a ball: coefficient n holds f^(n)(x) / n! for every x of the ball. A switch that the ball
             does not decide raises Undecided: on this ball the function may not be analytic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from flint import arb, arb_series

from anchorhead.verify.errors import NotVerified, number, require, several, whole
from anchorhead.verify.programs.numbers import BALLS, POINTS, RANGES, Range, decided

MAX_NODES = 2_000
MAX_EXPONENT = 64
Number = Any
"""An arb, or an arb_series."""


class Undecided(Exception):
    """A ball on which a switch is on both sides, or a function is not analytic."""


@dataclass(frozen=True)
class Expression:
    """nodes: (operation, data, places of the arguments), arguments before what is made of them. key: that as text."""

    nodes: tuple[tuple[str, Any, tuple[int, ...]], ...]
    key: str

    @staticmethod
    def of(nodes: tuple[tuple[str, Any, tuple[int, ...]], ...]) -> Expression:
        return Expression(nodes, json.dumps(nodes))

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(sorted({str(data) for op, data, _ in self.nodes if op == "variable"}))

    def part(self, place: int) -> Expression:
        """The part that ends at a node, -1 for the last."""
        place %= len(self.nodes)
        needed, stack = set(), [place]
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack += self.nodes[node][2]
        order = sorted(needed)
        new = {node: number for number, node in enumerate(order)}
        kept = (self.nodes[node] for node in order)
        return Expression.of(tuple((op, data, tuple(new[one] for one in places)) for op, data, places in kept))

    def point(self, at: Mapping[str, arb]) -> arb:
        return evaluated(self, at, POINTS)

    def range(self, at: Mapping[str, arb | Range]) -> Range:
        found = evaluated(self, at, RANGES)
        return found if isinstance(found, Range) else Range.hull(found)

    def ball(self, at: Mapping[str, arb | Range]) -> arb:
        return self.range(at).ball

    def series(self, at: Mapping[str, arb_series | arb]) -> arb_series:
        found = evaluated(self, at, SERIES)
        return found if isinstance(found, arb_series) else arb_series([found])


ASINH = Expression.of((
    ("number", 1.0, ()), ("variable", "x", ()), ("integer_power", 2, (1,)), ("add", None, (0, 2)), ("sqrt", None, (3,)),
    ("add", None, (0, 4, 1)), ("log", None, (5,)), ("neg", None, (1,)), ("add", None, (0, 4, 7)), ("log", None, (8,)),
    ("neg", None, (9,)), ("add", None, (6, 10)),
))  # fmt: skip
"""log(1 + r + x) - log(1 + r - x), r = sqrt(1 + x^2), as files write asinh(x), which has no name in them. Proof: as
r^2 - x^2 = 1, (1 + r - x)(r + x) = r + x + 1, so that it is log(r + x)."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}(\[[0-9]{1,6}(,[0-9]{1,6})?\])?")


def is_plain(name: str) -> bool:
    """Whether a name can stand in a formula and be taken for nothing else: an identifier that no function or constant
    has, with indices or without."""
    return _PLAIN.fullmatch(name) is not None and name not in OPERATIONS


def read_expression(data: Any) -> Expression:
    """The expression that was saved."""
    rows = several(data.get("nodes") if isinstance(data, dict) else None, "the nodes of an expression")
    require(len(rows) <= MAX_NODES, f"an expression of more than {MAX_NODES} nodes")
    nodes = tuple(_node(row, place) for place, row in enumerate(rows))
    varies: list[bool] = []
    for op, _, places in nodes:
        varies.append(op == "variable" or any(varies[place] for place in places))
        constant = op not in _PARAMETERS or not any(varies[place] for place in places[1:])
        require(constant, f"{op} with a parameter that is no constant")
    if nodes == ASINH.nodes:
        nodes = (nodes[1], ("asinh", None, (0,)))
    return Expression.of(nodes)


def _node(row: Any, place: int) -> tuple[str, Any, tuple[int, ...]]:
    good = isinstance(row, list) and bool(row) and isinstance(row[0], str)
    require(good, f"node {place} of an expression is not a list that begins with an operation")
    op, *rest = row
    data = None
    if op in ("number", "variable", "integer_power", "where"):
        require(bool(rest), f"node {place} of an expression, {op}, has no data")
        data = _data(op, rest.pop(0))
    places = tuple(whole(one, 0, place, f"what node {place} of an expression reads") for one in rest)
    most, least = OPERATIONS.get(op, (-1, 0))
    require(least <= len(rest) <= most, f"node {place} of an expression is {op[:40]!r} of {len(rest)} arguments")
    return op, data, places


def _data(op: str, value: Any) -> Any:
    match op:
        case "number":
            return number(value, "a number of an expression")
        case "integer_power":
            return whole(value, -MAX_EXPONENT, MAX_EXPONENT + 1, "an exponent")
    good = value in ("<", "<=") if op == "where" else isinstance(value, str) and len(value) < 100
    require(good, f"{op} with the data {str(value)[:40]!r}")
    return value


def evaluated(expression: Expression, at: Mapping[str, Number], rules: Mapping[str, Callable[..., Number]]) -> Number:
    found: list[Number] = []
    for op, data, places in expression.nodes:
        args = [found[place] for place in places]
        if op == "variable":
            if data not in at:
                raise NotVerified(f"an expression depends on {data!a}, which it is not given")
            found.append(at[data])
        elif op == "number" and op not in rules:
            found.append(arb(data))
        elif op in rules:
            found.append(rules[op](*args) if data is None else rules[op](data, *args))
        else:
            found.append(NAMED[op](rules, *args))
    return found[-1]


# functions by name, from the operations of one set of rules


def _clip(rules: Any, x: Number, low: Number, high: Number) -> Number:
    return rules["min"](rules["max"](x, low), high)


def _beside(rules: Any, x: Number, below: Callable[[Number], Number]) -> Number:
    """x above 0, and below it a function that is 0 at 0."""
    return rules["add"](rules["max"](x, arb(0)), below(rules["min"](x, arb(0))))


def _elu(rules: Any, x: Number, alpha: Number) -> Number:
    return _beside(rules, x, lambda below: rules["mul"](alpha, rules["expm1"](below)))


def _celu(rules: Any, x: Number, alpha: Number) -> Number:
    return _beside(rules, x, lambda below: rules["mul"](alpha, rules["expm1"](rules["div"](below, alpha))))


SELU = arb(1.6732632423543772)


def _gelu(rules: Any, x: Number) -> Number:
    return rules["mul"](arb(0.5), x, rules["erfc"](rules["div"](rules["neg"](x), arb(2).sqrt())))


def _gelu_tanh(rules: Any, x: Number) -> Number:
    inner = rules["add"](x, rules["mul"](arb(0.044715), rules["integer_power"](3, x)))
    return rules["mul"](x, rules["sigmoid"](rules["mul"](2 * (2 / arb.pi()).sqrt(), inner)))


def _soft_threshold(rules: Any, x: Number, lam: Number) -> Number:
    below = rules["max"](rules["add"](x, rules["neg"](lam)), arb(0))
    return rules["add"](below, rules["min"](rules["add"](x, lam), arb(0)))


NAMED: dict[str, Callable[..., Number]] = {
    "relu": lambda r, x: r["max"](x, arb(0)),
    "leaky_relu": lambda r, x, slope: _beside(r, x, lambda below: r["mul"](slope, below)),
    "relu6": lambda r, x: _clip(r, x, arb(0), arb(6)),
    "hardtanh": _clip,
    "clip": _clip,
    "hardswish": lambda r, x: r["div"](r["mul"](x, _clip(r, r["add"](x, arb(3)), arb(0), arb(6))), arb(6)),
    "hardsigmoid": lambda r, x: r["div"](_clip(r, r["add"](x, arb(3)), arb(0), arb(6)), arb(6)),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda r, x: r["mul"](x, r["sigmoid"](x)),
    "mish": lambda r, x: r["mul"](x, r["tanh"](r["softplus"](x))),
    "elu": _elu,
    "selu": lambda r, x: r["mul"](arb(1.0507009873554804934193349852946), r.get("elu", partial(_elu, r))(x, SELU)),
    "celu": _celu,
    "softsign": lambda r, x: r["div"](x, r["add"](arb(1), r["abs"](x))),
    "square": lambda r, x: r["integer_power"](2, x),
    "reciprocal": lambda r, x: r["div"](arb(1), x),
    "asinh": lambda r, x: evaluated(ASINH, {"x": x}, r),
    "tan": lambda r, x: r["div"](r["sin"](x), r["cos"](x)),
    "soft_threshold": _soft_threshold,
}
_PARAMETERS = {"leaky_relu": 1, "hardtanh": 2, "clip": 2, "elu": 1, "celu": 1, "soft_threshold": 1}


# over series


def _first(a: Number) -> arb:
    return a[0] if isinstance(a, arb_series) else a


def _analytic(f: str, rule: Callable[[arb_series], Any], where: Callable[[arb], bool] = lambda a: True) -> Any:
    """An operation of a series; of a mere constant that of balls. Refused where it is not analytic."""

    def found(a: Number) -> Number:
        if not isinstance(a, arb_series):
            return BALLS[f](a)
        if not where(a[0]):
            raise Undecided(f)
        return rule(a)

    return found


def _series_sigmoid(a: arb_series) -> arb_series:
    """By the exponential that is small, so that wide balls in the tails stay tight."""
    if a[0].mid() < 0:
        w = a.exp()
        return _series_quotient(w, 1 + w)
    return _series_quotient(arb(1), 1 + (-a).exp())


def _series_softplus(a: arb_series) -> arb_series:
    positive = a[0].mid() > 0
    inner = 1 + (-a if positive else a).exp()
    return SERIES["log"](inner) + (a if positive else 0)


def _series_power(n: int, a: Number) -> Number:
    if not isinstance(a, arb_series):
        return BALLS["integer_power"](n, a)
    if n == 0:
        return arb(1)
    return _series_quotient(arb(1), a**-n) if n < 0 else a**n


def _series_quotient(a: Number, b: Number) -> Number:
    if _first(b).contains(0):
        raise Undecided("div")
    return a / b


def _general_power(a: Number, b: Number) -> Number:
    if not isinstance(a, arb_series) and not isinstance(b, arb_series):
        return BALLS["power"](a, b)
    return SERIES["exp"](b * SERIES["log"](a))


def switches(first: Callable[[Number], arb], either: Callable[[str, Number, Number], Number]) -> dict[str, Any]:
    """Switches between numbers that are compared by balls; `either` where these do not tell the larger of two."""

    def where(relation: str, a: Number, b: Number, then: Number, other: Number) -> Number:
        side = decided(relation, first(a), first(b))
        if side is None:
            raise Undecided("where")
        return then if side else other

    def extreme(op: str, sign: int) -> Callable[..., Number]:
        def of_two(a: Number, b: Number) -> Number:
            x, y = sign * first(a), sign * first(b)
            return b if x <= y else a if y <= x else either(op, a, b)

        return lambda *args: reduce(of_two, args)

    largest = extreme("max", 1)
    return {"where": where, "min": extreme("min", -1), "max": largest, "abs": lambda a: largest(a, -a)}


def _undecided(op: str, *args: Number) -> Number:
    raise Undecided(op)


SERIES: dict[str, Callable[..., Number]] = {
    "pi": arb.pi,
    "e": arb.const_e,
    "add": POINTS["add"],
    "mul": POINTS["mul"],
    "neg": POINTS["neg"],
    "div": _series_quotient,
    "integer_power": _series_power,
    "power": _general_power,
    **{name: _analytic(name, getattr(arb_series, name)) for name in ("exp", "sin", "cos", "erf", "erfc")},
    "expm1": _analytic("expm1", lambda a: a.exp() - 1),
    "log": _analytic("log", arb_series.log, lambda a: bool(a > 0)),
    "log1p": _analytic("log1p", lambda a: (1 + a).log(), lambda a: bool(a > -1)),
    "sqrt": _analytic("sqrt", arb_series.sqrt, lambda a: bool(a > 0)),
    "tanh": _analytic("tanh", lambda a: 2 * _series_sigmoid(2 * a) - 1),
    "sigmoid": _analytic("sigmoid", _series_sigmoid),
    "softplus": _analytic("softplus", _series_softplus),
    **switches(_first, _undecided),
}

_MANY = 10_000
OPERATIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(SERIES, (1, 1)),
    **dict.fromkeys(("add", "mul", "min", "max"), (_MANY, 1)),
    **dict.fromkeys(("div", "power"), (2, 2)),
    **dict.fromkeys(("pi", "e", "number", "variable"), (0, 0)),
    "where": (4, 4),
    **{op: (1 + _PARAMETERS.get(op, 0), 1 + _PARAMETERS.get(op, 0)) for op in NAMED},
}
"""How many arguments each takes, at most and at least."""
