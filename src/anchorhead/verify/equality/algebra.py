"""Functions on a box in a normal form, polynomials in atoms with an error: equal functions are seen to be equal.

    v(x)  =  sum_k c_k M_k(x) + e(x),      |e| <= error on the whole box,     c_k balls, M_k products of powers of atoms

Atoms are inputs, functions of values (sin v, log |A|, exp v, a maximum) and sums that stand in a denominator. What is
done to values are identities, each where ranges show that it holds:

    exp(a) exp(b) = exp(a + b)      exp(n log A + r) = A^n exp(r)      log(c A^n exp(r)) = log c + n log A + r    A > 0
    log(t + u) = log t + log(1 + u/t)     sqrt(a) = exp(log(a)/2)      max(a, b) = b + relu(a - b)
    relu(e + max S - max T) = max((e + S) or T) - max T                |a| = 2 relu(a) - a

An atom f(v) is the same as an earlier f(w) up to an error if |v - w| is small: then f(v) = f(w) within slope |v - w|.
Numbers that were rounded (1/3, pi, rescalings) thus lead to the same atoms, and to an error. What cancels up to 2^-40
of its terms is put into the error. Points in the box only tell which terms come first and which atoms to compare:
nothing rests on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.equality.polynomials import CANCELS
from anchorhead.verify.equality.powers import LIPSCHITZ, Powers
from anchorhead.verify.equality.values import ZERO, Monomial, Value, in_cells
from anchorhead.verify.equality.work import Work
from anchorhead.verify.programs.expressions import Expression, evaluated
from anchorhead.verify.programs.numbers import RANGES

ASINH = arb(2) ** -200
"""How far what is taken for asinh may be from it."""


class Algebra(Powers):
    """All functions of expressions."""

    def __init__(self, low: np.ndarray, high: np.ndarray, work: Work | None = None) -> None:
        super().__init__(low, high, work)
        self.rules: dict[str, Callable[..., Any]] = {
            "pi": lambda: self.constant(arb.pi()), "e": lambda: self.constant(arb.const_e()), "add": self.add,
            "mul": lambda *all_of: reduce(self.mul, all_of), "neg": lambda a: self.scaled(a, arb(-1)),
            "div": lambda a, b: self.mul(a, self.power(b, -1)), "integer_power": lambda n, a: self.power(a, n),
            "power": self.general_power, "exp": self.exp, "log": self.log, "sqrt": self.sqrt,
            "expm1": lambda a: self.add(self.exp(a), self.constant(-1)), "softplus": self.softplus,
            "log1p": lambda a: self.log(self.add(self.constant(1), a)), "asinh": lambda a: self.asinh(a).off_by(ASINH),
            "max": lambda *all_of: reduce(self.larger, all_of), "abs": self.absolute, "where": self.where,
            "min": lambda *all_of: self.scaled(reduce(self.larger, [self.scaled(a, arb(-1)) for a in all_of]), arb(-1)),
            **{name: lambda a, name=name: self.function(name, a) for name in LIPSCHITZ if name != "asinh"},
        }  # fmt: skip

    def of(self, expression: Expression, at: Mapping[str, Value], cells: int) -> Value:
        """An expression of values, each of them split into so many cells."""
        split = {name: in_cells(value, cells) for name, value in at.items()}
        found = self._value(
            evaluated(expression, split, {op: self._of_values(rule) for op, rule in self.rules.items()})
        )
        return Value(found.terms, found.error, (found.range,))

    def _of_values(self, rule: Callable[..., Value]) -> Callable[..., Value]:
        def found(*args: str | int | Value | arb) -> Value:
            values = [one if isinstance(one, str | int) else self._value(one) for one in args]
            self.work.count(sum(len(one.ranges) for one in values if isinstance(one, Value)))
            return rule(*values)

        return found

    def _value(self, one: Value | arb) -> Value:
        return one if isinstance(one, Value) else self.constant(one)

    # switches

    def absolute(self, a: Value) -> Value:
        return self.add(self.scaled(self.relu(a), arb(2)), self.scaled(a, arb(-1))).ranged(RANGES["abs"], a)

    def larger(self, a: Value, b: Value) -> Value:
        return self.add(b, self.relu(self.add(a, self.scaled(b, arb(-1))))).ranged(RANGES["max"], a, b)

    def relu(self, a: Value) -> Value:
        """relu(e + k max S - k max T) = k max((e/k + S) or T) - k max T."""
        for side in (1, -1):
            alike = self.alike(self.scaled(a, arb(side)))
            if alike is not None:
                positive = (alike[0].range.low >= 0) == (side > 0)
                return (a if positive else self.constant(0)).off_by(2 * alike[1])
        found = {m: c for m, c in a.terms.items() if len(m) == 1 and m[0][1] == 1 and self._kind(m) == "max"}
        up, down = ([m for m, c in found.items() if sign * c > 0] for sign in (1, -1))
        k = abs(found[(up + down)[0]]).mid() if found else arb(1)
        alike = all((abs(c) - k).abs_upper() <= CANCELS * k for c in found.values())
        if not alike or len(up) > 1 or len(down) > 1:
            up, down, k = [], [], arb(1)
        zero, taken = self.constant(0), [*((m, -1) for m in up), *((m, 1) for m in down)]
        rest = self.add(a, *(self.made({m: sign * k}, arb(0)) for m, sign in taken))
        rest = self.scaled(rest, 1 / k)
        above_ = [self.add(rest, one) for one in ((zero, *self._members(up[0])) if up else (zero,))]
        below_ = [zero, *self._members(down[0])] if down else [zero]
        both, other = self.maximum([*above_, *below_]), self.maximum(below_)
        return self.scaled(self.add(both, self.scaled(other, arb(-1))), k).ranged(lambda x: RANGES["max"](x, ZERO), a)

    def maximum(self, all_of: Sequence[Value]) -> Value:
        """max = base + k max(0, (others - base)/k): k > 0 from the largest term of the second largest at a point."""
        order = sorted(all_of, key=lambda one: -self.at(one)[0])
        base = order[0]
        others = [self.add(one, self.scaled(base, arb(-1))) for one in order[1:]]
        lost = arb(0)
        kept = [self.constant(0)]
        for one in others:  # what is never larger than another is left out, and what is nearly the same
            less = [self.add(one, self.scaled(other, arb(-1))) for other in kept]
            if not any(by.range.high <= 0 for by in less):
                same = min([by.error.upper() for by in less if not by.terms], default=None)
                kept, lost = (kept, lost.max(same)) if same is not None else ([*kept, one], lost)
        distinct = kept[1:]
        if not distinct:
            return base.off_by(lost)
        k = distinct[0].terms[self._lead(distinct[0])].abs_lower()
        inside = [self.scaled(one, 1 / k) for one in distinct]
        reach = RANGES["max"](ZERO, *(one.range for one in inside))
        at = np.maximum(0.0, np.max([self.at(one) for one in inside], axis=0))
        atom, off = self.atom(("max", len(inside)), inside, reach, at)
        return self.add(base, self.made({((atom, 1),): k}, k * off + lost))

    def where(self, relation: str, a: Value, b: Value, then: Value, other: Value) -> Value:
        asked = self.add(a, self.scaled(b, arb(-1)))
        low, high = asked.range
        if high < 0 or (relation == "<=" and high <= 0):
            return then
        if low > 0 or (relation == "<" and low >= 0):
            return other
        for number in self.kinds[("where", relation)]:
            d, yes, no = self.atoms[number].of
            change, offs = self.distance(asked, d), [self.distance(*pair) for pair in ((then, yes), (other, no))]
            if change is not None and change.is_zero() and None not in offs:
                return self.made({((number, 1),): arb(1)}, max(offs))  # type: ignore[type-var]
        at = np.where(self.at(asked) < 0, self.at(then), self.at(other))
        atom = self._new(("where", relation), (asked, then, other), then.range.united(other.range), at)
        return self.made({((atom, 1),): arb(1)}, arb(0))

    def _members(self, m: Monomial) -> tuple[Value, ...]:
        return self.atoms[m[0][0]].of
