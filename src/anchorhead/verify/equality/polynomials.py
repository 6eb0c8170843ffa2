"""Sums and products of values, and which values are the same.

What cancels up to 2^-40 of its terms is put into the error. Of atoms f(v) and f(w) one is enough if |v - w| is small.
Points in the box only tell which terms come first and which atoms to compare: nothing rests on them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.equality.values import MINUS, ONE, Atom, Monomial, Terms, Value, joined
from anchorhead.verify.equality.work import Work
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.expressions import Undecided
from anchorhead.verify.programs.numbers import RANGES, Range

CANCELS = arb(2) ** -40
MAX_TERMS, MAX_POWER = 20_000, 8
POINTS = 3


class Polynomials(ABC):
    """Values over a box. Conditions that ranges do not decide raise Undecided: finer cells may."""

    def __init__(self, low: np.ndarray, high: np.ndarray, work: Work | None = None) -> None:
        self.work = work or Work()
        self.work.count(low.size)
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

    @abstractmethod
    def exp(self, a: Value) -> Value: ...

    @abstractmethod
    def power(self, a: Value, n: int) -> Value: ...

    def constant(self, value: arb | float) -> Value:
        ball = arb(value)
        if not ball.is_finite():
            raise Undecided("a constant that is not finite")
        return Value({} if ball.is_zero() else {ONE: ball}, arb(0), (Range.hull(ball),))

    def made(self, terms: Terms, error: arb) -> Value:
        """The value of terms, within an error, wherever that is."""
        self.work.count(1 + len(terms))
        parts = [RANGES["mul"](Range.hull(c), self.range(m)) for m, c in terms.items()]
        return Value(terms, error, (RANGES["add"](Range.hull(-error, error), *parts),))

    def add(self, *all_of: Value) -> Value:
        self.work.count(sum(len(value.terms) + len(value.ranges) for value in all_of))
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

    def scaled(self, a: Value, factor: arb) -> Value:
        self.work.count(len(a.terms) + len(a.ranges))
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
        self.work.count(len(a.terms) * len(b.terms) + len(a.ranges) + len(b.ranges))
        plain: dict[Monomial, arb] = defaultdict(lambda: arb(0))
        parts: list[Value] = []
        for m, c in a.terms.items():
            for n, d in b.terms.items():
                product = self.product(joined(m, n))
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

    # roots, which are sums as well

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

    def with_factors(self, product: Value, *factors: tuple[Value, int]) -> Value:
        """A product that remembers its factors, where one of them is a root that a logarithm takes apart."""
        known = any("factors" in one.__dict__ or self.conjugate(one) for one, _ in factors)
        if not known or not all(one.range.sign for one, _ in factors):
            return product
        product.__dict__["factors"] = [
            (inner, n * k) for one, n in factors for inner, k in one.__dict__.get("factors", [(one, 1)])
        ]
        return product

    # what is the same, nearly

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
        self.work.count(1)
        pairs = zip(self.at(a).tolist(), self.at(b).tolist(), strict=True)
        if not all(math.isclose(*pair, rel_tol=1e-6, abs_tol=1e-9) for pair in pairs):
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

    def denominators(self, a: Value) -> Monomial:
        """Sums to the powers by which terms have to be multiplied so that none is left in a denominator."""
        down: dict[int, int] = {}
        for m in a.terms:
            for atom, n in m:
                if n < 0 and self.atoms[atom].kind == "sum":
                    down[atom] = max(down.get(atom, 0), -n)
        return tuple(down.items())

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

    def _undecided(self, what: str) -> Any:
        raise Undecided(what)
