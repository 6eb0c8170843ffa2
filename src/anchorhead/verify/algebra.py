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

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.expressions import BALLS, Expression, Undecided, evaluated
from anchorhead.verify.ranges import RANGES, Range

CANCELS = arb(2) ** -40
MAX_TERMS, MAX_POWER = 20_000, 8
POINTS = 3
LIPSCHITZ = {"asinh": 1.0, "sin": 1.0, "cos": 1.0, "tanh": 1.0, "sigmoid": 0.25, "erf": 1.13, "erfc": 1.13}
"""Functions that have no rule of their own, and how fast they change at most: 2/sqrt(pi) < 1.13."""
ASINH = arb(2) ** -200
"""How far what is taken for asinh may be from it."""
SELU = 1.6732632423543772, 1.0507009873554804934193349852946
Monomial = tuple[tuple[int, int], ...]
"""Atoms, in the order of their numbers, and their exponents."""
Terms = Mapping[Monomial, arb]
ONE: Monomial = ()
ZERO, MINUS = Range(arb(0), arb(0)), Range(arb(-1), arb(-1))


@dataclass(frozen=True, eq=False)
class Value:
    """A function on the box. ranges: its values where `source` is in each of a row of cells, or one range for all."""

    terms: Terms
    error: arb
    ranges: tuple[Range, ...]
    source: object = None

    @cached_property
    def range(self) -> Range:
        return reduce(Range.united, self.ranges)

    def ranged(self, rule: Callable[..., Range], *of: Value) -> Value:
        """The same, that stays where the rule takes the ranges of what it is made of; these cell by cell, where all of
        them have the same cells."""
        sources = {one.source for one in of if one.source is not None}
        if len(sources) > 1:
            ranges, source = (rule(*(one.range for one in of)),), object()
        else:
            count = max(len(one.ranges) for one in of)
            rows = [one.ranges * (count if len(one.ranges) == 1 else 1) for one in of]
            ranges, source = tuple(rule(*row) for row in zip(*rows, strict=True)), next(iter(sources), None)
        return Value(self.terms, self.error, tuple(one.within(self.range) for one in ranges), source)

    def off_by(self, error: arb) -> Value:
        """What is at most so far from it."""
        if error.is_zero():
            return self
        return Value(self.terms, self.error + error, tuple(one.wider(error) for one in self.ranges), self.source)


@dataclass(frozen=True, eq=False)
class Atom:
    """kind, and the values that it is a function of; where it stays, and what it is at some points."""

    kind: str
    of: tuple[Value, ...]
    range: Range
    at: np.ndarray


class Algebra:
    """Values over a box. Conditions that ranges do not decide raise Undecided: finer cells may."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.atoms: list[Atom] = []
        self.kinds: dict[object, list[int]] = defaultdict(list)
        self._products: dict[Monomial, Value] = {}
        self._logs: dict[int, int] = {}
        self._bases: dict[int, int] = {}
        self._signed: list[Value] = []
        self.inputs: list[Value] = []
        for number, (a, b) in enumerate(zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)):
            parts = [0.1 + 0.8 * math.modf((POINTS * number + k + 1) * 0.6180339887)[0] for k in range(POINTS)]
            at = np.array([a + (b - a) * part for part in parts])
            atom = self._new("input", (), Range(arb(a), arb(b)), at)
            self.inputs.append(self.product({atom: 1}))
        self.rules: dict[str, Callable[..., Any]] = {
            "pi": lambda: self.constant(arb.pi()), "e": lambda: self.constant(arb.const_e()), "add": self.add,
            "mul": lambda *all_of: reduce(self.mul, all_of), "neg": lambda a: self.scaled(a, arb(-1)),
            "div": lambda a, b: self.mul(a, self.power(b, -1)), "integer_power": lambda n, a: self.power(a, n),
            "power": self.general_power, "exp": self.exp, "log": self.log, "sqrt": self.sqrt,
            "expm1": lambda a: self.add(self.exp(a), self.constant(-1)), "softplus": self.softplus,
            "log1p": lambda a: self.log(self.add(self.constant(1), a)), "asinh": lambda a: self.asinh(a).off_by(ASINH),
            "max": lambda *all_of: reduce(self.larger, all_of), "abs": self.absolute, "where": self.where,
            "min": lambda *all_of: self.scaled(reduce(self.larger, [self.scaled(a, arb(-1)) for a in all_of]), arb(-1)),
            "leaky_relu": lambda a, s: self.add(self.mul(s, a), self.mul(self.one_less(s), self.relu(a))),
            "elu": self.elu, "celu": lambda a, b: self.elu(a, b, b),
            "selu": lambda a: self.scaled(self.elu(a, self.constant(SELU[0])), arb(SELU[1])),
            **{name: lambda a, name=name: self.function(name, a) for name in LIPSCHITZ},
        }  # fmt: skip

    def of(self, expression: Expression, at: Mapping[str, Value], cells: int) -> Value:
        """An expression of values, each of them split into so many cells."""
        split = {name: _in_cells(value, cells) for name, value in at.items()}
        found = self._value(
            evaluated(expression, split, {op: self._of_values(rule) for op, rule in self.rules.items()})
        )
        return Value(found.terms, found.error, (found.range,))

    def _of_values(self, rule: Callable[..., Value]) -> Callable[..., Value]:
        return lambda *args: rule(*(one if isinstance(one, str | int) else self._value(one) for one in args))

    def _value(self, one: Value | arb) -> Value:
        return one if isinstance(one, Value) else self.constant(one)

    # values

    def constant(self, value: arb | float) -> Value:
        ball = arb(value)
        if not ball.is_finite():
            raise Undecided("a constant that is not finite")
        return Value({} if ball.is_zero() else {ONE: ball}, arb(0), (Range.hull(ball),))

    def made(self, terms: Terms, error: arb) -> Value:
        """The value of terms, within an error, wherever that is."""
        parts = [RANGES["mul"](Range.hull(c), self.range(m)) for m, c in terms.items()]
        return Value(terms, error, (RANGES["add"](Range.hull(-error, error), *parts),))

    def add(self, *all_of: Value) -> Value:
        terms: dict[Monomial, arb] = {}
        largest: dict[Monomial, arb] = {}
        for value in all_of:
            for m, c in value.terms.items():
                terms[m] = terms[m] + c if m in terms else c
                largest[m] = max(largest[m], c.abs_upper()) if m in largest else c.abs_upper()
        gone = [m for m, c in terms.items() if c.abs_upper() <= CANCELS * largest[m]]
        error = sum((value.error for value in all_of), arb(0))
        error += sum((terms[m].abs_upper() * self.largest(m) for m in gone if not terms[m].is_zero()), arb(0))
        kept = {m: c for m, c in terms.items() if m not in set(gone)}
        found = self.made(kept, error).ranged(RANGES["add"], *all_of)
        return found if found.range.sign else self.with_sign(found)

    def conjugate(self, a: Value) -> tuple[Value, Value, Value] | None:
        """Values r, b and n = r^2 - b^2 > 0 with r + b the terms of a, where r is a root: sqrt(b^2 + n) + b, if it is
        such, which has the sign of r."""
        if "conjugate" not in a.__dict__:
            a.__dict__["conjugate"] = self._conjugate(a)
        return a.__dict__["conjugate"]

    def _conjugate(self, a: Value) -> tuple[Value, Value, Value] | None:
        roots = [m for m in a.terms if any(self.atoms[atom].kind == "exp" for atom, _ in m)]
        if len(roots) != 1 or not 1 < len(a.terms) <= MAX_POWER:
            return None
        r = self.made({roots[0]: a.terms[roots[0]]}, arb(0))
        b = self.made({m: c for m, c in a.terms.items() if m not in roots}, arb(0))
        squares = self.mul(r, r), self.mul(b, b)
        if any(self.atoms[atom].kind == "exp" for m in squares[0].terms for atom, _ in m) or not r.range.sign:
            return None
        n = self.add(squares[0], self.scaled(squares[1], arb(-1)))
        cancelled = len(n.terms) < len(squares[0].terms) + len(squares[1].terms)
        return (r, b, n) if cancelled and n.range.low > 0 else None

    def with_sign(self, a: Value) -> Value:
        """|r + b| = n / |r - b|: the sign of r + b, where its range does not tell it."""
        found = self.conjugate(a)
        if found is None:
            return a
        r, b, n = found
        least = n.range.low / RANGES["add"](r.range, RANGES["mul"](b.range, MINUS)).most - a.error
        if not least > 0:
            return a
        here = Range.hull(least, a.range.most)
        return Value(a.terms, a.error, ((here if r.range.sign > 0 else RANGES["mul"](here, MINUS)).within(a.range),))

    def scaled(self, a: Value, factor: arb) -> Value:
        terms = {} if factor.is_zero() else {m: c * factor for m, c in a.terms.items()}
        by = Range.hull(factor)
        ranges = tuple(RANGES["mul"](one, by) for one in a.ranges)
        found = Value(terms, a.error * factor.abs_upper(), ranges, a.source)
        return self.with_factors(found, (a, 1), (self.constant(factor), 1)) if "factors" in a.__dict__ else found

    def mul(self, a: Value, b: Value) -> Value:
        for one, other in ((a, b), (b, a)):
            if set(one.terms) <= {ONE} and one.error.is_zero():
                return self.scaled(other, one.terms.get(ONE, arb(0)))
        if len(a.terms) * len(b.terms) > MAX_TERMS:
            raise NotVerified(f"a product of sums of {len(a.terms)} and {len(b.terms)} terms is too long to compare")
        plain: dict[Monomial, arb] = defaultdict(lambda: arb(0))
        parts: list[Value] = []
        for m, c in a.terms.items():
            for n, d in b.terms.items():
                product = self.product(_joined(m, n))
                if len(product.terms) == 1 and product.error.is_zero():
                    ((key, factor),) = product.terms.items()
                    plain[key] += c * d * factor
                else:
                    parts.append(self.scaled(product, c * d))
        wrong = (a.range.most + a.error) * b.error + b.range.most * a.error
        terms = {m: c for m, c in plain.items() if not c.is_zero()}
        found = self.add(self.made(terms, wrong), *parts) if parts else self.made(terms, wrong)
        if a is b:
            return self.with_factors(found.ranged(lambda x: RANGES["integer_power"](2, x), a), (a, 2))
        return self.with_factors(found.ranged(RANGES["mul"], a, b), (a, 1), (b, 1))

    def with_factors(self, product: Value, *factors: tuple[Value, int]) -> Value:
        """A product that remembers its factors, where one of them is a root that a logarithm takes apart."""
        known = any("factors" in one.__dict__ or self.conjugate(one) for one, _ in factors)
        if not known or not all(one.range.sign for one, _ in factors):
            return product
        product.__dict__["factors"] = [
            (inner, n * k) for one, n in factors for inner, k in one.__dict__.get("factors", [(one, 1)])
        ]
        return product

    def product(self, powers: Mapping[int, int]) -> Value:
        """Atoms to whole powers: at most one exponential, and no sum that is not in a denominator."""
        key = tuple(sorted((atom, n) for atom, n in powers.items() if n))
        if key not in self._products:
            exponents = [(atom, n) for atom, n in key if self.atoms[atom].kind == "exp"]
            sums = [(atom, n) for atom, n in key if self.atoms[atom].kind == "sum" and n > 0]
            if not sums and (not exponents or (len(exponents) == 1 and exponents[0][1] == 1)):
                found = self.made({key: arb(1)}, arb(0))
            else:
                found = self.product(dict(set(key) - set(exponents) - set(sums)))
                if exponents:
                    found = self.mul(found, self.exp(self.add(*(
                        self.scaled(self.atoms[atom].of[0], arb(n)) for atom, n in exponents
                    ))))  # fmt: skip
                for atom, n in sums:
                    found = self.mul(found, self.power(self.atoms[atom].of[0], n))
            self._products[key] = found
        return self._products[key]

    def range(self, m: Monomial) -> Range:
        powers = (RANGES["integer_power"](n, self.atoms[atom].range) for atom, n in m)
        return RANGES["mul"](Range.hull(arb(1)), *powers)

    def largest(self, m: Monomial) -> arb:
        return self.range(m).most

    def at(self, value: Value) -> np.ndarray:
        """About what a value is at the points."""
        if "at" not in value.__dict__:
            with np.errstate(all="ignore"):
                parts = (float(c.mid()) * self.at_of(m) for m, c in value.terms.items())
                value.__dict__["at"] = sum(parts, np.zeros(POINTS))
        return value.__dict__["at"]

    def at_of(self, m: Monomial) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.prod([self.atoms[atom].at ** float(n) for atom, n in m] or [np.ones(POINTS)], axis=0)

    # powers, logarithms, exponentials

    def alike(self, a: Value) -> tuple[Value, arb] | None:
        """A value whose sign is known, and how far it is from a at most: a itself, or one that was seen before, the
        same but written in another way."""
        if a.range.low >= 0 or a.range.high <= 0:
            self._signed.append(a)
            return a, arb(0)
        near = ((one, self.distance(a, one)) for one in self._signed)
        return next(((one, off) for one, off in near if off is not None), None)

    def signed(self, a: Value) -> Value:
        """The value, with a range that has a sign if one was seen to have it."""
        found = self.alike(a)
        return a if found is None else found[0].off_by(found[1])

    def power(self, a: Value, n: int) -> Value:
        """a^n for a whole number n."""

        def ranges(x: Range) -> Range:
            return RANGES["integer_power"](n, x)

        if n >= 0 and (len(a.terms) <= 1 or n <= MAX_POWER):
            found = reduce(self.mul, [a] * n, self.constant(1)).ranged(ranges, a)
            return self.with_factors(found, (a, n)) if n else found
        a = self.signed(a)
        sign = a.range.sign
        if abs(n) > MAX_POWER and len(a.terms) > 1:
            if sign:
                size_of = self.scaled(a, arb(sign))
                return self.scaled(self.exp(self.scaled(self.log(size_of), arb(n))), arb(sign**n)).ranged(ranges, a)
            return self.root(a, self.constant(n)) if n > 0 else self._undecided("a reciprocal")
        if not sign:
            self._undecided("a reciprocal")
        if "factors" in a.__dict__:
            return reduce(self.mul, (self.power(one, k * n) for one, k in a.__dict__["factors"])).ranged(ranges, a)
        root = self.conjugate(a)
        if root is not None:  # 1/(r + b) = (r - b)/n
            other = self.add(root[0], self.scaled(root[1], arb(-1)))
            found = self.mul(self.power(other, -n), self.power(root[2], n))
            return self.times_about_one(found, (1 - self.relative(a)) ** n - 1).ranged(ranges, a)
        lead, atom, wrong = self.factored(a)
        powers = {one: k * n for one, k in lead[0]}
        found = self.product(powers if atom is None else _joined(tuple(powers.items()), ((atom, n),)))
        found = self.scaled(found, lead[1] ** n)
        return self.times_about_one(found, (1 - wrong) ** -abs(n) - 1).ranged(ranges, a)

    def factored(self, a: Value) -> tuple[tuple[Monomial, arb], int | None, arb]:
        """t = c M, a sum S that is an atom, and w: a = t S (1 + u) with |u| <= w; without S for a single term.

        t is the largest term at the first point without the atoms that may be 0; a must not be 0 anywhere.
        """
        if not a.terms:
            self._undecided("a value that may be 0")
        lead = self._lead(a)
        factor = tuple((atom, n) for atom, n in lead if self.atoms[atom].range.sign)
        c = a.terms[lead]
        if c.contains(0):
            self._undecided("a coefficient that may be 0")
        wrong = self.relative(a)
        down = self.denominators(a)
        if down:
            whole = self.mul(Value(a.terms, arb(0), (a.range.wider(a.error),)), self.made({down: arb(1)}, arb(0)))
            (factor, c), atom, more = self.factored(whole)
            factor = tuple(_joined(factor, tuple((atom, -n) for atom, n in down)).items())
            return (factor, c), atom, self._small((1 + wrong) * (1 + more) - 1)
        if len(a.terms) == 1 and factor == lead:
            return (factor, c), None, wrong
        down = self.product({atom: -n for atom, n in factor})
        rest = self.mul(self.made({m: d / c for m, d in a.terms.items()}, arb(0)), down)
        divided = RANGES["integer_power"](-1, RANGES["mul"](Range.hull(c), self.range(factor)))
        inside = RANGES["mul"](a.range.wider(a.error), divided).wider(rest.error)
        kept = self.made(rest.terms, arb(0))
        kept = Value(kept.terms, arb(0), (inside.within(kept.range),))
        atom, off = self.atom("sum", kept, kept.range, self.at(kept))
        least = self.atoms[atom].range.least
        more = (off + rest.error) / least if least > 0 else arb(1)
        return (factor, c), atom, self._small((1 + wrong) * (1 + more) - 1)

    def relative(self, a: Value) -> arb:
        """A bound on u in a = p (1 + u), p the terms of a: less than a half."""
        return self._small(a.error / (a.range.least - a.error) if a.range.least > a.error else arb(1))

    def _small(self, relative: arb) -> arb:
        if not relative < 0.5:
            self._undecided("a value that may be 0")
        return relative

    def denominators(self, a: Value) -> Monomial:
        """Sums to the powers by which terms have to be multiplied so that none is left in a denominator."""
        down: dict[int, int] = {}
        for m in a.terms:
            for atom, n in m:
                if n < 0 and self.atoms[atom].kind == "sum":
                    down[atom] = max(down.get(atom, 0), -n)
        return tuple(down.items())

    def times_about_one(self, a: Value, relative: arb) -> Value:
        """The value of a (1 + u), |u| <= relative."""
        return a.off_by(self._small(relative) * a.range.most)

    def log(self, a: Value) -> Value:
        a = self.signed(a)
        if not a.range.low > 0:
            self._undecided("a logarithm")
        if set(a.terms) <= {ONE} and a.error.is_zero():
            return self.constant(a.terms[ONE].log())
        if "factors" in a.__dict__:
            parts = [
                self.scaled(self.log(self.scaled(one, arb(one.range.sign))), arb(n)) for one, n in a.__dict__["factors"]
            ]
            return self.add(*parts).ranged(RANGES["log"], a)
        root = self.conjugate(a)
        if root is not None:  # log(r + b) = log(n)/2 + asinh(b / sqrt(n))
            inner = self.mul(root[1], self.power(self.sqrt(root[2]), -1))
            found = self.add(self.scaled(self.log(root[2]), arb(0.5)), self.asinh(inner))
            return found.off_by(2 * self.relative(a)).ranged(RANGES["log"], a)
        (factor, c), atom, wrong = self.factored(a)
        parts = [self.constant(abs(c).log())]
        for one, n in (*factor, *(() if atom is None else ((atom, 1),))):
            known = self.atoms[one]
            part = known.of[0] if known.kind == "exp" else self.product({self.log_of(one): 1})
            parts.append(self.scaled(part, arb(n)))
        return self.add(*parts).off_by(2 * wrong).ranged(RANGES["log"], a)

    def softplus(self, a: Value) -> Value:
        """log(1 + exp(a)), which changes no faster than a."""
        plain = Value(a.terms, arb(0), tuple(one.wider(a.error) for one in a.ranges), a.source)
        return self.log(self.add(self.constant(1), self.exp(plain))).off_by(a.error).ranged(RANGES["softplus"], a)

    def log_of(self, atom: int) -> int:
        """log |A|."""
        if atom not in self._logs:
            base = self.atoms[atom]
            if not base.range.sign:
                self._undecided("a logarithm")
            with np.errstate(all="ignore"):
                at = np.log(np.abs(base.at))
            self._logs[atom] = self._new("log", (), RANGES["log"](RANGES["abs"](base.range)), at)
            self._bases[self._logs[atom]] = atom
        return self._logs[atom]

    def exp(self, a: Value) -> Value:
        powers: dict[int, int] = {}
        rest: dict[Monomial, arb] = {}
        factors: list[Value] = []
        wrong, sign, constant = a.error, 1, arb(0)
        for m, c in a.terms.items():
            if m == ONE:
                constant = c
            elif len(m) == 1 and m[0][1] == 1 and self._kind(m) == "asinh" and abs(c.mid()) < MAX_POWER:
                n = math.floor(float(c.mid()) + 2.0**-30)
                t = self.atoms[m[0][0]].of[0]
                one = self.add(self.sqrt(self.add(self.constant(1), self.power(t, 2))), self.scaled(t, arb(_side(n))))
                factors += [one.ranged(lambda x: RANGES["abs"](x), one)] * abs(n)
                left = c - n
                if left.abs_upper() < 2.0**-30:
                    wrong += left.abs_upper() * self.largest(m)
                else:
                    rest[m] = left
            elif len(m) == 1 and m[0][1] == 1 and m[0][0] in self._bases:
                base = self._bases[m[0][0]]
                n = math.floor(float(c.mid()) + 2.0**-30)
                n = n if abs(n) <= MAX_POWER or self.atoms[base].kind != "sum" else 0
                powers[base] = n
                sign *= self.atoms[base].range.sign ** (n % 2)
                left = c - n
                if left.abs_upper() < 2.0**-30:
                    wrong += left.abs_upper() * self.largest(m)
                else:
                    rest[m] = left
            else:
                rest[m] = c
        if rest:
            inner = self.made(rest, arb(0))
            with np.errstate(all="ignore"):
                at = np.exp(self.at(inner))
            atom, off = self.atom("exp", inner, RANGES["exp"](inner.range), at)
            wrong += off
            powers[atom] = 1
        if not a.range.known:
            self._undecided("an exponential")
        found = reduce(self.mul, factors, self.scaled(self.product(powers), constant.exp() * sign))
        return self.times_about_one(found, wrong.upper().expm1()).ranged(RANGES["exp"], a)

    def sqrt(self, a: Value) -> Value:
        return self.root(a, self.constant(arb(0.5))).ranged(RANGES["sqrt"], a)

    def general_power(self, a: Value, b: Value) -> Value:
        exponent = b.terms.get(ONE, arb(0)) if set(b.terms) <= {ONE} and b.error.is_zero() else None
        if exponent is not None and exponent.is_integer():
            return self.power(a, int(float(exponent)))
        return self.root(a, b).ranged(RANGES["power"], a, b)

    def root(self, a: Value, b: Value) -> Value:
        """a^b for a > 0; for a number b > 0, a >= 0 will do, and for a whole one any a."""
        a = self.signed(a)
        if a.range.low > 0:
            return self.exp(self.mul(b, self.log(a)))
        p = b.terms.get(ONE, arb(0))
        if set(a.terms) <= {ONE} and set(b.terms) <= {ONE} and a.error.is_zero() and b.error.is_zero() and p > 0:
            return self.constant(BALLS["power"](a.terms.get(ONE, arb(0)), p) if a.terms else arb(0))
        if not (a.range.low >= 0 or p.is_integer()) or not p > 0 or set(b.terms) != {ONE} or not a.terms:
            self._undecided("a root")
        c = a.terms[self._lead(a)].abs_lower()
        inside = self.scaled(a, 1 / c)
        inner = inside.range
        reach = RANGES["integer_power"](int(float(p)), inner) if p.is_integer() else RANGES["power"](inner, b.range)
        with np.errstate(all="ignore"):
            at = self.at(inside) ** float(p.mid())
        atom, off = self.atom(("root", p.str(60, radius=False)), [inside, b], reach, at)
        most, other = inner.most + off, self.atoms[atom].of[1].terms[ONE]
        moved = off if off.is_zero() else off**p if p <= 1 else p * most ** (p - 1) * off  # |u^p - v^p|
        other_power = (p - other).abs_upper()  # |v^p - v^q| <= |p - q| sup v^r |log v|
        if not other_power.is_zero():
            moved += other_power * (2 / p + (1 + most) ** (p.union(other) + 1))
        return self.scaled(self.made({((atom, 1),): arb(1)}, moved), c**p)

    # functions without rules, and switches

    def function(self, name: str, a: Value) -> Value:
        function = arb.asinh if name == "asinh" else BALLS[name]
        if set(a.terms) <= {ONE} and a.error.is_zero():
            return self.constant(function(a.terms.get(ONE, arb(0))))
        with np.errstate(all="ignore"):
            at = np.array([float(function(arb(float(one))).mid()) for one in self.at(a)])
        atom, off = self.atom(name, a, RANGES[name](a.range), at)
        return self.made({((atom, 1),): arb(1)}, off * LIPSCHITZ[name]).ranged(RANGES[name], a)

    def asinh(self, a: Value) -> Value:
        """asinh(a), or -asinh(-a), whichever is positive at a point."""
        side = arb(-1 if self.at(a)[0] < 0 else 1)
        return self.scaled(self.function("asinh", self.scaled(a, side)), side)

    def absolute(self, a: Value) -> Value:
        return self.add(self.scaled(self.relu(a), arb(2)), self.scaled(a, arb(-1))).ranged(RANGES["abs"], a)

    def elu(self, a: Value, height: Value, width: Value | None = None) -> Value:
        """relu(a) + height (exp(min(a, 0)/width) - 1)."""
        negative = self.add(a, self.scaled(self.relu(a), arb(-1))).ranged(lambda x: RANGES["min"](x, ZERO), a)
        inner = negative if width is None else self.mul(negative, self.power(width, -1))
        return self.add(self.relu(a), self.mul(height, self.add(self.exp(inner), self.constant(-1))))

    def one_less(self, a: Value) -> Value:
        return self.add(self.constant(1), self.scaled(a, arb(-1)))

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

    # atoms that are the same, nearly

    def atom(self, kind: Any, of: Value | Sequence[Value], inside: Range, at: np.ndarray) -> tuple[int, arb]:
        """An atom of this kind, and how far its arguments are from these at most."""
        values = (of,) if isinstance(of, Value) else tuple(of)
        for number in self.kinds[kind]:
            offs = [self.distance(*pair) for pair in zip(values, self.atoms[number].of, strict=True)]
            if None not in offs:
                return number, max(offs)  # type: ignore[type-var]
        if not inside.known:
            self._undecided("a value without bounds")
        return self._new(kind, values, inside, at), arb(0)

    def distance(self, a: Value, b: Value) -> arb | None:
        """A bound on |a - b| where that is small; None where it is not, or is not found to be."""
        here, there = self.at(a), self.at(b)
        if not np.allclose(here, there, rtol=1e-6, atol=1e-9):
            return None
        small = 1e-6 * (a.range.most + CANCELS)
        off = self.bound(self.add(a, self.scaled(b, arb(-1))), small)
        return off if off <= small else None

    def bound(self, a: Value, enough: arb) -> arb:
        """A bound on |a|: term by term, and, if that is not enough, with what is in denominators multiplied out."""
        found = min(sum((c.abs_upper() * self.largest(m) for m, c in a.terms.items()), a.error).upper(), a.range.most)
        down = self.denominators(a)
        if found <= enough or not down:
            return found
        least = reduce(lambda x, y: x * y, (self.atoms[atom].range.least ** n for atom, n in down))
        try:
            cleared = self.mul(self.made(a.terms, arb(0)), self.made({down: arb(1)}, arb(0)))
        except (Undecided, NotVerified):
            return found
        return min(found, (self.bound(cleared, enough * least) / least + a.error).upper())

    def _lead(self, a: Value) -> Monomial:
        """The largest term at the first point."""
        return max(a.terms, key=lambda m: (abs(float(a.terms[m].mid()) * self.at_of(m)[0]), m))

    def _new(self, kind: Any, of: tuple[Value, ...], inside: Range, at: np.ndarray) -> int:
        name = kind[0] if isinstance(kind, tuple) else kind
        self.atoms.append(Atom(name, of, inside, at))
        self.kinds[kind].append(len(self.atoms) - 1)
        return len(self.atoms) - 1

    def _kind(self, m: Monomial) -> str:
        return self.atoms[m[0][0]].kind

    def _members(self, m: Monomial) -> tuple[Value, ...]:
        return self.atoms[m[0][0]].of

    def _undecided(self, what: str) -> Any:
        raise Undecided(what)


def _joined(m: Monomial, n: Monomial) -> dict[int, int]:
    powers = dict(m)
    for atom, k in n:
        powers[atom] = powers.get(atom, 0) + k
    return powers


def _in_cells(value: Value, cells: int) -> Value:
    """The value with what it may be cut into so many cells of equal width."""
    low, high = value.range
    ends = [low, *((low + (high - low) * k / cells).mid() for k in range(1, cells)), high]
    return Value(value.terms, value.error, tuple(map(Range, ends, ends[1:])), object())


def _side(n: int) -> int:
    return 1 if n > 0 else -1
