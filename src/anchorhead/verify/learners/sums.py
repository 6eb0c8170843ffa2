"""Expressions as sums, to see that two of them are the same function, or that one does not depend on a variable.

An expression is a sum of rational multiples of atoms: 1, variables, and every other operation together with the sums
that it is applied to. Only linear steps, and operations on constants, are carried out, exactly; so equal sums are equal
functions. (That unequal ones differ is not said.) Atoms have numbers, the same for the same atom.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import Any

from anchorhead.verify.errors import require
from anchorhead.verify.programs.expressions import Expression

Sum = dict[int, Fraction]
"""By the number of an atom, its factor, which is not 0."""
ONE = 0
MAX_BITS = 2**15


class Sums:
    """The atoms that were met, and the variables in each."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {("one",): ONE}
        self._names: list[set[str]] = [set()]

    def _atom(self, key: tuple[Any, ...], names: set[str]) -> Sum:
        if key not in self._numbers:
            self._numbers[key] = len(self._names)
            self._names.append(names)
        return {self._numbers[key]: Fraction(1)}

    def variable(self, name: str) -> Sum:
        return self._atom(("variable", name), {name})

    def depends(self, one: Sum, name: str) -> bool:
        return any(name in self._names[atom] for atom in one)

    def key(self, one: Sum) -> tuple[Any, ...]:
        """What a sum of one atom applies to which sums: (operation, data, sums...)."""
        found = [key for key, number in self._numbers.items() if one == {number: 1}]
        return found[0] if found else ()

    def line(self, one: Sum, name: str) -> tuple[Fraction, Fraction] | None:
        """Slope and constant, where it is a line in the variable."""
        (own,) = self.variable(name)
        return (one.get(own, Fraction(0)), one.get(ONE, Fraction(0))) if set(one) <= {own, ONE} else None

    def of(self, expression: Expression, at: Mapping[str, Sum]) -> Sum:
        """The expression, with sums in the place of some variables."""
        found: list[Sum] = []
        for op, data, places in expression.nodes:
            made = plus(self._made(op, data, [found[place] for place in places], at))
            bits = max(
                (value.numerator.bit_length() + value.denominator.bit_length() for value in made.values()), default=0
            )
            require(bits < MAX_BITS, "an expression whose constants have too many digits")
            found.append(made)
        return found[-1]

    def _made(self, op: str, data: Any, known: list[Sum], at: Mapping[str, Sum]) -> Sum:
        fixed = [one.get(ONE, Fraction(0)) if set(one) <= {ONE} else None for one in known]
        match op:
            case "number":
                return constant(data)
            case "variable":
                return at[data] if data in at else self.variable(data)
            case "neg":
                return scaled(known[0], -1)
            case "add":
                return plus(*known)
            case "mul":
                factor = prod((one for one in fixed if one is not None), start=Fraction(1))
                known = [one for one, number in zip(known, fixed, strict=True) if number is None]
                if len(known) <= 1:
                    return scaled(known[0] if known else constant(1.0), factor)
                return scaled(self._applied(op, data, known), factor)
            case "div" if fixed[1]:
                return scaled(known[0], 1 / fixed[1])
            case "integer_power" if fixed[0] is not None and data > 0:
                return {ONE: fixed[0] ** data}
        return self._applied(op, data, known)

    def _applied(self, op: str, data: Any, known: list[Sum]) -> Sum:
        names = {name for one in known for atom in one for name in self._names[atom]}
        return self._atom((op, data, *(tuple(sorted(one.items())) for one in known)), names)


def constant(number: float) -> Sum:
    return {ONE: Fraction(number)}


def scaled(one: Sum, factor: Fraction | int) -> Sum:
    return {atom: factor * value for atom, value in one.items()}


def plus(*sums: Sum) -> Sum:
    atoms = {atom for one in sums for atom in one}
    found = {atom: sum((one.get(atom, Fraction(0)) for one in sums), Fraction(0)) for atom in atoms}
    return {atom: value for atom, value in found.items() if value}


Node = tuple[str, Any, tuple[int, ...]]


def put(expression: Expression, at: Mapping[str, Node]) -> Expression:
    """The expression with numbers or variables in the place of variables; what is then multiplied by 0 is left out."""
    made: list[Node] = []
    where: list[int] = []
    for op, data, places in expression.nodes:
        args = [where[place] for place in places]
        node: Node = at[data] if op == "variable" and data in at else (op, data, tuple(args))
        if op == "neg" and made[args[0]][0] == "number":
            node = ("number", -made[args[0]][1], ())
        if op in ("add", "mul"):
            neutral = ("number", float(op == "mul"))
            args = [one for one in args if made[one][:2] != neutral]
            nothing = op == "mul" and any(made[one][:2] == ("number", 0.0) for one in args)
            node = ("number", 0.0, ()) if nothing else (*neutral, ()) if not args else (op, data, tuple(args))
            if len(args) == 1 and not nothing:
                where.append(args[0])
                continue
        made.append(node)
        where.append(len(made) - 1)
    used = [False] * len(made)
    used[where[-1]] = True
    for place in range(where[-1], -1, -1):
        for one in made[place][2] if used[place] else ():
            used[one] = True
    kept = [place for place, one in enumerate(used) if one]
    moved = {place: number for number, place in enumerate(kept)}
    return Expression.of(tuple((*made[one][:2], tuple(moved[arg] for arg in made[one][2])) for one in kept))
