"""Constructors of expressions: they check what a node may hold and keep one form for one structure.

a - b   is add(a, neg(b));      -3, neg(3)   are number(-3);      neg(neg(a))   is a
(a + b) + c   is add(a, b, c), as Python reads a + b + c; the same for products; a + (b + c) stays as it is
a > b   is b < a
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

from flint import fmpq

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import CORE, SMOOTH, Data, Expression, postorder
from anchorhead.language.expressions.precision import precision

MAX_EXPONENT = 64
MAX_NODES = 2_000
MAX_DEPTH = 50
VARIABLE = re.compile(r"[A-Za-z_]\w*(\[\d{1,9}(,\d{1,9})*\])?", re.ASCII)

_ARITY = {"neg": 1, "div": 2, "integer_power": 1, "power": 2, "abs": 1, "where": 4} | dict.fromkeys(SMOOTH, 1)
_CHAINS = ("add", "mul", "div")


def number(value: float) -> Expression:
    """A constant: the float64 that is given, exactly."""
    value = float(value)
    if not math.isfinite(value):
        raise AnchorheadError(f"{value} is not finite: numbers up to about 1.8e308 are allowed")
    return Expression("number", (), value + 0.0)  # + 0.0: one zero


def exact(value: Fraction | fmpq) -> Expression | None:
    """The rational number, if it is a float64."""
    parts = int(value.numerator), int(value.denominator)
    try:
        near = parts[0] / parts[1]
    except OverflowError:
        return None
    return number(near) if near.as_integer_ratio() == parts else None


def fraction(value: Fraction | fmpq) -> Expression | None:
    """The rational number: a float64, or a quotient of two, if it is either."""
    whole = exact(value)
    above, below = (exact(Fraction(int(part))) for part in (value.numerator, value.denominator))
    return whole if whole is not None or above is None or below is None else div(above, below)


def variable(name: str) -> Expression:
    if not VARIABLE.fullmatch(name):
        raise AnchorheadError(f"{name!r} is not a variable's name: give letters, digits and _, or an entry as x[0,1]")
    return Expression("variable", (), name)


PI = Expression("pi")
E = Expression("e")
ZERO, ONE, MINUS_ONE, TWO = number(0), number(1), number(-1), number(2)


def add(*terms: Expression) -> Expression:
    return _chain("add", terms)


def mul(*factors: Expression) -> Expression:
    return _chain("mul", factors)


def _chain(op: str, args: tuple[Expression, ...]) -> Expression:
    if len(args) == 1:
        return args[0]
    return Expression(op, (*args[0].args, *args[1:]) if args[0].op == op else args)


def neg(a: Expression) -> Expression:
    if a.op == "number":
        return number(-float(a.data or 0))
    return a.args[0] if a.op == "neg" else Expression("neg", (a,))


def sub(a: Expression, b: Expression) -> Expression:
    return add(a, neg(b))


def div(a: Expression, b: Expression) -> Expression:
    return Expression("div", (a, b))


def where(relation: str, a: Expression, b: Expression, then: Expression, other: Expression) -> Expression:
    if relation not in ("<", "<=", ">", ">="):
        raise AnchorheadError(f"a comparison {relation!r}: where takes <, <=, > and >=")
    if relation.startswith(">"):
        a, b, relation = b, a, relation.replace(">", "<")
    return Expression("where", (a, b, then, other), relation)


@precision(128)
def power(base: Expression, exponent: Expression) -> Expression:
    """base**exponent: an integer |n| <= 64; a real constant, for a positive base; or a constant base > 0."""
    if not exponent.variables:
        value = exponent.ball({})
        if not value.is_finite() or not abs(value) <= MAX_EXPONENT:
            raise AnchorheadError(
                f"the exponent {exponent} is out of range: exponents from -{MAX_EXPONENT} to {MAX_EXPONENT} are allowed"
            )
        if value.is_exact() and value.is_integer():
            return integer_power(base, int(float(value)))
        return Expression("power", (base, exponent))
    if not base.variables and base.ball({}) > 0:
        return Expression("power", (base, exponent))
    raise AnchorheadError(
        f"the exponent {exponent} is not constant: give a number, "
        f"or write exp({exponent}*log({base})) for a positive base"
    )


def integer_power(base: Expression, exponent: int) -> Expression:
    if isinstance(exponent, bool) or not isinstance(exponent, int) or abs(exponent) > MAX_EXPONENT:
        raise AnchorheadError(
            f"the exponent {exponent!r} is out of range: integers from -{MAX_EXPONENT} to {MAX_EXPONENT} are allowed"
        )
    return Expression("integer_power", (base,), exponent)


def make(op: str, args: tuple[Expression, ...], data: Data = None) -> Expression:
    """Any node, with its arguments checked and in its one form."""
    if op == "number" or op == "variable":
        if args or not isinstance(data, float if op == "number" else str):
            raise AnchorheadError(f"a {op} with {data!r} and {len(args)} arguments: give one value")
        return number(data) if isinstance(data, float) else variable(str(data))
    if op not in CORE:
        from anchorhead.language.expressions.named import call

        return call(op, args)
    arity = _ARITY.get(op, 0 if op in ("pi", "e") else None)
    if (len(args) != arity) if arity is not None else not args:
        raise AnchorheadError(f"{op} takes {'one or more' if arity is None else arity} arguments, not {len(args)}")
    match op:
        case "add" | "mul":
            return _chain(op, args)
        case "neg":
            return neg(*args)
        case "integer_power":
            return integer_power(args[0], data)  # type: ignore[arg-type]
        case "power":
            return power(*args)
        case "where":
            return where(str(data), *args)
        case "min" | "max" if len(args) == 1:
            return args[0]
        case _:
            return Expression(op, args)


def rebuild(root: Expression, replace: Callable[[Expression], Expression | None]) -> Expression:
    """`root` with nodes replaced bottom-up: `replace` gets each node over new arguments, None keeps it."""
    new: dict[Expression, Expression] = {}
    for node in postorder(root):
        args = tuple(new[arg] for arg in node.args)
        same = node if args == node.args else make(node.op, args, node.data)
        replaced = replace(same)
        new[node] = same if replaced is None else replaced
    return new[root]


def check_size(root: Expression) -> Expression:
    """`root`, unless it is larger, written out as a tree, or nested deeper than an expression may be.

    Sums, products and quotients that continue to the right (a + b*c/d - ...) do not count as nesting.
    """
    size: dict[Expression, int] = {}
    depth: dict[Expression, int] = {}
    for node in postorder(root):
        size[node] = 1 + sum(size[arg] for arg in node.args)
        depths = [depth[arg] + 1 for arg in node.args]
        if depths and node.op in _CHAINS and node.args[0].op in _CHAINS:
            depths[0] -= 1
        depth[node] = max(depths, default=0)
    if size[root] > MAX_NODES:
        raise AnchorheadError(
            f"the expression has {min(size[root], 10**9):,} parts or more: "
            f"at most {MAX_NODES:,} are allowed; split it up"
        )
    if depth[root] > MAX_DEPTH:
        raise AnchorheadError(
            f"the expression is nested {depth[root]} deep: at most {MAX_DEPTH} are allowed; split it up"
        )
    return root
