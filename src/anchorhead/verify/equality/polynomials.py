"""Functions on a box as polynomials in atoms: sums and products of them, and which of them are the same.

    v(x)  =  sum_k c_k(x) M_k(x),      c_k(x) in a ball for every x of the box,      M_k products of powers of atoms

An error is the ball of a coefficient, often that of the constant term: all arithmetic of values is that of balls, and
holds whatever numbers of the balls are meant. Atoms are inputs, functions of values, and sums in denominators. What
cancels up to 2^-40 of its terms is put into the constant's ball. Of atoms f(v) and f(w) one is enough if |v - w| is
small. Points in the box only tell which terms come first and which atoms to compare: nothing rests on them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul as times
from typing import NoReturn

import numpy as np
from flint import arb

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.expressions import Undecided
from anchorhead.verify.programs.numbers import POINTS, RANGES, Range

CANCELS = arb(2) ** -40
MAX_TERMS = 20_000
MAX_WORK = 300_000
"""Terms that are looked at, some twenty microseconds each: a small file must not lead to work without end."""
SUMS = ("sum", "root")
"""Atoms that are sums: v, and t + sqrt(1 + t^2)."""
PLACES = 3
"""Points in the box."""
Monomial = tuple[tuple[int, int], ...]
"""Atoms, in the order of their numbers, and their exponents."""
ONE: Monomial = ()
At = tuple[arb, ...]
AT = {**POINTS, "sum": lambda a: a, "root": lambda t: t.asinh().exp()}
WITHIN = {**RANGES, "sum": lambda a: a, "root": lambda t: RANGES["exp"](RANGES["asinh"](t))}
"""What atoms are at points, and where they stay."""


@dataclass(frozen=True, eq=False)
class Value:
    """A function on the box: its terms, where it stays, and about what it is at some points."""

    terms: Mapping[Monomial, arb]
    range: Range
    at: At

    def within(self, known: Range) -> Value:
        """The same, which is known to stay there as well."""
        return replace(self, range=known.within(self.range))

    @property
    def number(self) -> arb | None:
        """The ball in which it is, if it has no other term than a constant."""
        return self.terms.get(ONE, arb(0)) if set(self.terms) <= {ONE} else None


@dataclass(frozen=True, eq=False)
class Atom:
    """The operation, the values that it is of, and what is known of it, as of a value."""

    op: str
    of: tuple[Value, ...]
    range: Range
    at: At


class Polynomials(ABC):
    """Values over a box. Conditions that ranges do not decide raise Undecided."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.done = 0
        self.atoms: list[Atom] = []
        self.kinds: dict[object, list[int]] = defaultdict(list)
        self._products: dict[Monomial, Value] = {}
        self._known: dict[Monomial, tuple[Range, At]] = {}
        self.inputs: list[Value] = []
        for number, (a, b) in enumerate(zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)):
            parts = [0.1 + 0.8 * math.modf((PLACES * number + k + 1) * 0.6180339887)[0] for k in range(PLACES)]
            at = tuple(arb(a) + (arb(b) - arb(a)) * part for part in parts)
            self.inputs.append(self.product({self.new("input", (), Range(arb(a), arb(b)), at): 1}))

    @abstractmethod
    def exp(self, a: Value) -> Value: ...

    @abstractmethod
    def power(self, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def terms_of(self, sum_or_root: Atom) -> Value: ...

    def count(self, steps: int) -> None:
        """Whoever counts beyond the most is refused, and so is all that comes later."""
        self.done += steps
        if self.done > MAX_WORK:
            raise NotVerified(
                f"the program and what it was rewritten as are too long to compare in {MAX_WORK:,} steps: one of fewer "
                "terms, or of fewer products of sums, can be compared"
            )

    def constant(self, value: arb | float) -> Value:
        ball = arb(value)
        if not ball.is_finite():
            self.undecided("a constant")
        return Value({} if ball.is_zero() else {ONE: ball}, Range.hull(ball), (ball.mid(),) * PLACES)

    def made(self, terms: Iterable[tuple[Monomial, arb]]) -> Value:
        """The sum of terms; those that cancel, or that may be 0, are in the constant's ball."""
        sums: dict[Monomial, arb] = {}
        largest: dict[Monomial, arb] = {}
        for m, c in terms:
            self.count(1)
            sums[m] = sums[m] + c if m in sums else c
            largest[m] = max(largest[m], c.abs_upper()) if m in largest else c.abs_upper()
        nothing = {m for m, c in sums.items() if c.abs_upper() <= CANCELS * largest[m] or (m and c.contains(0))}
        off = sum((sums[m].abs_upper() * self.known(m)[0].most for m in nothing), arb(0)).upper()
        kept = {m: c for m, c in sums.items() if m not in nothing}
        if not off.is_zero():
            kept[ONE] = kept.get(ONE, arb(0)) + arb(0, off)
        if not all(c.is_finite() for c in kept.values()):
            self.undecided("a value without bounds")
        known = [(c, *self.known(m)) for m, c in kept.items()]
        inside = RANGES["add"](*(RANGES["mul"](c, within) for c, within, _ in known))
        at = (sum((c.mid() * at[k] for c, _, at in known), arb(0)).mid() for k in range(PLACES))
        return Value(kept, inside, tuple(at))

    def add(self, *all_of: Value) -> Value:
        found = self.made(term for value in all_of for term in value.terms.items())
        return found.within(RANGES["add"](*(value.range for value in all_of)))

    def scaled(self, a: Value, factor: arb) -> Value:
        """The value times a number of a ball. What is not known of that counts once, for the sum of many terms may be
        far smaller than these."""
        by, off = (factor, arb(0)) if len(a.terms) < 2 else (factor.mid(), factor.rad() * a.range.most)
        terms = [(m, c * by) for m, c in a.terms.items()]
        return self.made([*terms, (ONE, arb(0, off.upper()))]).within(RANGES["mul"](a.range, factor))

    def minus(self, a: Value, b: Value) -> Value:
        return Polynomials.add(self, a, self.scaled(b, arb(-1)))

    def off_by(self, a: Value, error: arb) -> Value:
        """What is at most so far from it."""
        return a if error.is_zero() else self.add(a, self.constant(arb(0, error.upper())))

    def mul(self, a: Value, b: Value) -> Value:
        if len(a.terms) * len(b.terms) > MAX_TERMS:
            raise NotVerified(f"a product of sums of {len(a.terms)} and {len(b.terms)} terms is too long to compare")
        parts = []
        for m, c in a.terms.items():
            for n, d in b.terms.items():
                parts += [(k, c * d * e) for k, e in self.product(joined(m, n)).terms.items()]
        inside = RANGES["integer_power"](2, a.range) if a is b else RANGES["mul"](a.range, b.range)
        return self.made(parts).within(inside)

    def product(self, powers: Mapping[int, int]) -> Value:
        """Atoms to whole powers: at most one exponential, and no sum or root that is not in a denominator."""
        key = tuple(sorted((atom, n) for atom, n in powers.items() if n))
        if key not in self._products:
            exponents = [(atom, n) for atom, n in key if self.atoms[atom].op == "exp"]
            sums = [(atom, n) for atom, n in key if self.atoms[atom].op in SUMS and n > 0]
            if not sums and (not exponents or (len(exponents) == 1 and exponents[0][1] == 1)):
                found = self.made([(key, arb(1))])
            else:
                found = self.product(dict(set(key) - set(exponents) - set(sums)))
                if exponents:
                    parts = (self.scaled(self.atoms[atom].of[0], arb(n)) for atom, n in exponents)
                    found = self.mul(found, self.exp(self.add(*parts)))
                for atom, n in sums:
                    found = self.mul(found, self.power(self.terms_of(self.atoms[atom]), self.constant(n)))
            self._products[key] = found
        return self._products[key]

    def known(self, m: Monomial) -> tuple[Range, At]:
        """The range of a product of powers of atoms, and about what it is at the points."""
        if m not in self._known:
            atoms = [(self.atoms[atom], n) for atom, n in m]
            inside = RANGES["mul"](arb(1), *(RANGES["integer_power"](n, atom.range) for atom, n in atoms))
            at = (reduce(times, (atom.at[k] ** n for atom, n in atoms), arb(1)).mid() for k in range(PLACES))
            self._known[m] = inside, tuple(at)
        return self._known[m]

    # what is the same, nearly

    def new(self, op: str, of: tuple[Value, ...], inside: Range, at: At, kind: object = None) -> int:
        if not inside.known:
            self.undecided(f"{op} of a value without bounds")
        self.atoms.append(Atom(op, of, inside, at))
        self.kinds[kind or op].append(len(self.atoms) - 1)
        return len(self.atoms) - 1

    def atom(self, op: str, *of: Value, inside: Range | None = None) -> tuple[int, arb]:
        """The operation of values as an atom, and how far the arguments of that are from these at most."""
        kind = op, len(of)
        for number in self.kinds[kind]:
            offs = [self.distance(*pair) for pair in zip(of, self.atoms[number].of, strict=True)]
            if None not in offs:
                return number, max(offs)  # type: ignore[type-var]
        inside = inside or WITHIN[op](*(one.range for one in of))
        at = tuple(AT[op](*here).mid() for here in zip(*(one.at for one in of), strict=True))
        return self.new(op, of, inside, at, kind), arb(0)

    def distance(self, a: Value, b: Value) -> arb | None:
        """A bound on |a - b| where that is small; None where it is not, or is not found to be."""
        self.count(1)
        if not all(abs(x - y) <= 1e-6 * abs(x) + 1e-9 for x, y in zip(a.at, b.at, strict=True)):
            return None
        small = 1e-6 * (a.range.most + CANCELS)
        off = self.bound(self.minus(a, b), small)
        return off if off <= small else None

    def bound(self, a: Value, enough: arb) -> arb:
        """A bound on |a|: term by term, and, if that is not enough, with what is in denominators multiplied out."""
        sizes = (c.abs_upper() * self.known(m)[0].most for m, c in a.terms.items())
        found = min(sum(sizes, arb(0)).upper(), a.range.most)
        down = self.denominators(a)
        if found <= enough or not down:
            return found
        least, (plain, off) = self.known(down)[0].least, self.parted(a)
        try:
            cleared = self.mul(plain, self.made([(down, arb(1))]))
        except (Undecided, NotVerified):
            return found
        return min(found, (self.bound(cleared, enough * least) / least + off).upper())

    def parted(self, a: Value) -> tuple[Value, arb]:
        """The value without a constant that may be 0, and a bound on that."""
        off = a.terms.get(ONE, arb(1))
        if not off.contains(0):
            return a, arb(0)
        rest = self.made((m, c) for m, c in a.terms.items() if m)
        return rest.within(a.range.wider(off.abs_upper())), off.abs_upper()

    def denominators(self, a: Value) -> Monomial:
        """Sums to the powers by which terms have to be multiplied so that none is left in a denominator."""
        down: dict[int, int] = {}
        for m in a.terms:
            for atom, n in m:
                if n < 0 and self.atoms[atom].op in SUMS:
                    down[atom] = max(down.get(atom, 0), -n)
        return tuple(sorted(down.items()))

    def undecided(self, what: str) -> NoReturn:
        raise Undecided(what)


def joined(m: Monomial, n: Monomial) -> dict[int, int]:
    powers = dict(m)
    for atom, k in n:
        powers[atom] = powers.get(atom, 0) + k
    return powers
