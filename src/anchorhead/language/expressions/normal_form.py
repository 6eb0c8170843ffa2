"""On what an expression depends, however it is written: sums and products are multiplied out, and what cancels is gone.

An expression becomes a polynomial with rational coefficients in atoms: variables, and functions of polynomials. If a
variable occurs in none of the atoms that are left, the function does not depend on it, wherever it is defined.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import cast

from flint import fmpq

from anchorhead.language.expressions.expression import Expression, postorder

MAX_MONOMIALS = 500
MAX_POWER = 8
MAX_PRODUCTS = 20_000
MAX_BITS = 4_096
"""Of the coefficients: powers of powers would make them long."""
Monomial = frozenset[tuple["Atom", int]]
Polynomial = Mapping[Monomial, fmpq]
ONE: Monomial = frozenset()


@dataclass(frozen=True)
class Atom:
    """A variable, or an operation on polynomials; `names` are the variables in it."""

    op: str
    data: Hashable
    args: tuple[frozenset[tuple[Monomial, tuple[int, int]]], ...]
    names: frozenset[str]


def depends_on(expression: Expression) -> frozenset[str]:
    """The variables that are left when the expression is multiplied out; never too few of them."""
    return _names(polynomial(expression, {}))


def polynomial(expression: Expression, known: dict[Expression, Polynomial]) -> Polynomial:
    """The expression multiplied out; `known` are the forms of parts, to which those of its own parts are added."""
    if expression not in known:
        for node in postorder(expression, known):
            known[node] = _form(node, [known[arg] for arg in node.args])
    return known[expression]


def _form(node: Expression, args: list[Polynomial]) -> Polynomial:
    result = None
    match node.op:
        case "number":
            result = {ONE: fmpq(*float(node.data or 0).as_integer_ratio())}
        case "variable":
            atom = Atom("variable", node.data, (), frozenset({str(node.data)}))
            result = {frozenset({(atom, 1)}): fmpq(1)}
        case "add":
            result = _sum(args)
        case "neg":
            result = {monomial: -c for monomial, c in args[0].items()}
        case "mul":
            result = _product(args)
        case "integer_power" if 0 < int(node.data or 0) <= MAX_POWER:
            result = _product(args * int(node.data or 0))
        case "square":
            result = _product(args * 2)
        case "div":
            result = _product([args[0], _reciprocal(args[1])])
    if result is None or len(result) > MAX_MONOMIALS or any(c.height_bits() > MAX_BITS for c in result.values()):
        result = _atom(node.op, node.data, args)
    return {monomial: c for monomial, c in result.items() if c != 0}


def _sum(args: list[Polynomial]) -> Polynomial:
    result: dict[Monomial, fmpq] = {}
    for one in args:
        for monomial, c in one.items():
            result[monomial] = result.get(monomial, fmpq(0)) + c
    return result


def _product(args: list[Polynomial]) -> Polynomial | None:
    result: Polynomial = {ONE: fmpq(1)}
    for one in args:
        if len(result) > MAX_MONOMIALS or len(result) * len(one) > MAX_PRODUCTS:
            return None
        parts = [{_times(a, b): c * d} for a, c in result.items() for b, d in one.items()]
        result = {monomial: c for monomial, c in _sum(cast("list[Polynomial]", parts)).items() if c != 0}
    return result


def _times(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return frozenset(powers.items())


def _reciprocal(form: Polynomial) -> Polynomial:
    if set(form) == {ONE}:
        return {ONE: 1 / form[ONE]}
    return _atom("reciprocal", None, [form])


def _atom(op: str, data: Hashable, args: list[Polynomial]) -> Polynomial:
    frozen = tuple(frozenset((monomial, (int(c.p), int(c.q))) for monomial, c in form.items()) for form in args)
    names = frozenset(name for form in args for name in _names(form))
    return {frozenset({(Atom(op, data, frozen, names), 1)}): fmpq(1)}


def _names(form: Polynomial) -> frozenset[str]:
    return frozenset(name for monomial in form for atom, _ in monomial for name in atom.names)
