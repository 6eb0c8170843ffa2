"""The same function with less to do: what cancels is left out before anything is evaluated, enclosed or solved for.

    x - x = 0      x*y - y*x + z = z      0*sin(x) = 0      x + x = 2 x      (x + 1)**2 - x**2 - 2 x = 1
    max(max(a, b), a) = max(a, b)         abs(abs(a)) = abs(a)             1 a = a/1 = a**1 = a

Enclosures do not see that two terms are the same: that of x - x over [-1, 1] is [-2, 2]. Equal terms of a sum are
found by their exact rational coefficients, times equal powers of equal parts. A part is left out only where it has a
value for all real variables, so that nothing becomes defined where it was not: log(x) - log(x) stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpq

from anchorhead.language.expressions import build
from anchorhead.language.expressions.expression import SWITCHES, Expression
from anchorhead.language.expressions.normal_form import ONE, Polynomial, polynomial

_TOTAL = frozenset(
    ("number", "pi", "e", "variable", "add", "mul", "neg", "exp", "expm1", "sin", "cos", "tanh", "sigmoid", "softplus")
) | {"erf", "erfc", *SWITCHES}
"""Operations that have a value wherever their arguments do."""
Term = tuple[fmpq, frozenset[tuple[Expression, int]]]
"""A coefficient, and parts with their exponents."""


def simplified(root: Expression) -> Expression:
    """The function of `root`, an expression in core operations."""
    return build.rebuild(root, _Simplifier().simpler)


class _Simplifier:
    """Looks at nodes one after the other, arguments first."""

    def __init__(self) -> None:
        self.terms: dict[Expression, Term] = {}
        self.forms: dict[Expression, Polynomial] = {}
        self.totals: dict[Expression, bool] = {}

    def simpler(self, node: Expression) -> Expression:
        found = self._simpler(node)
        for one in (node, found):  # its parts are known, or were looked at with it
            self.totals.setdefault(one, self._total(one))
        if found.op in ("add", "mul") and self._total(found):
            form = polynomial(found, self.forms)
            if set(form) <= {ONE}:
                found = build.exact(form.get(ONE, fmpq(0))) or found
        return found

    def _simpler(self, node: Expression) -> Expression:
        args = node.args
        match node.op:
            case "add":
                return self._sum(args)
            case "mul":
                return self._product(args)
            case "min" | "max":
                return build.make(node.op, _distinct(node.op, args))
            case "abs" if args[0].op == "abs":
                return args[0]
            case "div" if args[1] is build.ONE:
                return args[0]
            case "integer_power" if node.data == 1:
                return args[0]
            case _:
                return node

    def _sum(self, args: Sequence[Expression]) -> Expression:
        """Equal terms together; those that cancel left out."""
        terms = [term for arg in args for term in _terms(arg)]
        groups: dict[frozenset[tuple[Expression, int]], list[Expression]] = {}
        for term in terms:
            groups.setdefault(self._term(term)[1], []).append(term)
        kept = [one for key, group in groups.items() for one in self._together(key, group)]
        if len(kept) == len(terms):
            return build.add(*args)
        return build.add(*kept) if kept else build.ZERO

    def _together(self, key: frozenset[tuple[Expression, int]], group: list[Expression]) -> list[Expression]:
        coefficients = [self._term(one)[0] for one in group]
        total = sum(coefficients, fmpq(0))
        if total == 0:
            return [] if all(map(self._total, group)) else group
        if len(group) == 1:
            return group
        if not key:
            constant = build.exact(total)
            return group if constant is None else [constant]
        times = build.exact(total / coefficients[0])
        if times is None:
            return group
        return [group[0] if times is build.ONE else build.mul(times, group[0])]

    def _product(self, args: Sequence[Expression]) -> Expression:
        if build.ZERO in args and all(map(self._total, args)):
            return build.ZERO
        kept = [arg for arg in args if arg is not build.ONE]
        return build.mul(*kept) if kept else build.ONE

    def _term(self, node: Expression) -> Term:
        if node not in self.terms:
            self.terms[node] = self._new_term(node)
        return self.terms[node]

    def _new_term(self, node: Expression) -> Term:
        match node.op:
            case "number":
                return fmpq(*float(node.data or 0).as_integer_ratio()), frozenset()
            case "neg":
                coefficient, parts = self._term(node.args[0])
                return -coefficient, parts
            case "mul":
                return _times([self._term(arg) for arg in node.args])
            case "integer_power" if node.args[0].op != "number" and 0 < int(node.data or 0) <= build.MAX_EXPONENT:
                return fmpq(1), frozenset({(node.args[0], int(node.data or 0))})
            case _:
                return fmpq(1), frozenset({(node, 1)})

    def _total(self, node: Expression) -> bool:
        if node not in self.totals:
            able = node.op in _TOTAL
            able = able or (node.op == "integer_power" and int(node.data or 0) >= 0)
            able = able or (node.op == "div" and node.args[1].op == "number" and node.args[1] is not build.ZERO)
            self.totals[node] = able and all(map(self._total, node.args))
        return self.totals[node]


def _times(terms: Sequence[Term]) -> Term:
    coefficient, powers = fmpq(1), {}
    for factor, parts in terms:
        coefficient *= factor
        for part, exponent in parts:
            powers[part] = powers.get(part, 0) + exponent
    return coefficient, frozenset(powers.items())


def _terms(node: Expression) -> Sequence[Expression]:
    """The terms of a sum, or of minus a sum; anything else is one term."""
    if node.op == "neg" and node.args[0].op == "add":
        return [build.neg(one) for one in node.args[0].args]
    return node.args if node.op == "add" else (node,)


def _distinct(op: str, args: Sequence[Expression]) -> tuple[Expression, ...]:
    """The arguments of a minimum or maximum, those of such arguments among them, each once."""
    flat = [inner for arg in args for inner in (arg.args if arg.op == op else (arg,))]
    return tuple(dict.fromkeys(flat))
