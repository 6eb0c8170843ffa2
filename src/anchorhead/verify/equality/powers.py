"""Powers, logarithms and exponentials of values, where their ranges show that they have them."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from flint import arb

from anchorhead.verify.equality.polynomials import MAX_POWER, Polynomials
from anchorhead.verify.equality.values import ONE, Monomial, Value, joined
from anchorhead.verify.errors import require
from anchorhead.verify.programs.expressions import MAX_EXPONENT
from anchorhead.verify.programs.numbers import POINTS, RANGES, Range

LIPSCHITZ = {"asinh": 1.0, "sin": 1.0, "cos": 1.0, "tanh": 1.0, "sigmoid": 0.25, "erf": 1.13, "erfc": 1.13}
"""Functions that have no rule of their own, and how fast they change at most: 2/sqrt(pi) < 1.13."""


class Powers(Polynomials):
    """exp(a) exp(b) = exp(a + b), exp(n log A + r) = A^n exp(r), log(c A^n exp(r)) = log c + n log A + r."""

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
        found = self.product(powers if atom is None else joined(tuple(powers.items()), ((atom, n),)))
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
            factor = tuple(joined(factor, tuple((atom, -n) for atom, n in down)).items())
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
            few = abs(exponent) <= MAX_EXPONENT
            return self.power(a, _whole(exponent)) if few else self.root(a, b)  # whose range may be negative
        return self.root(a, b).ranged(RANGES["power"], a, b)

    def root(self, a: Value, b: Value) -> Value:
        """a^b for a > 0; for a number b > 0, a >= 0 will do, and for a whole one any a."""
        a = self.signed(a)
        if a.range.low > 0:
            return self.exp(self.mul(b, self.log(a)))
        p = b.terms.get(ONE, arb(0))
        if set(a.terms) <= {ONE} and set(b.terms) <= {ONE} and a.error.is_zero() and b.error.is_zero() and p > 0:
            return self.constant(POINTS["power"](a.terms.get(ONE, arb(0)), p) if a.terms else arb(0))
        number = set(b.terms) == {ONE} and b.error.is_zero()
        if not (a.range.low >= 0 or p.is_integer()) or not p > 0 or not number or not a.terms:
            self._undecided("a root")
        c = a.terms[self._lead(a)].abs_lower()
        inside = self.scaled(a, 1 / c)
        inner = inside.range
        reach = RANGES["integer_power"](_whole(p), inner) if p.is_integer() else RANGES["power"](inner, b.range)
        with np.errstate(all="ignore"):
            at = self.at(inside) ** float(p.mid())
        atom, off = self.atom(("root", p.str(60, radius=False)), [inside, b], reach, at)
        most, other = inner.most + off, self.atoms[atom].of[1].terms[ONE]
        moved = arb(0)
        if not off.is_zero():  # |u^p - v^p| for p <= 1, for p >= 1, or for what may be either
            moved = reduce(arb.max, [*([] if p > 1 else [off**p]), *([] if p <= 1 else [p * most ** (p - 1) * off])])
        other_power = (p - other).abs_upper()  # |v^p - v^q| <= |p - q| sup v^r |log v|
        if not other_power.is_zero():
            moved += other_power * (2 / p + (1 + most) ** (p.union(other) + 1))
        return self.scaled(self.made({((atom, 1),): arb(1)}, moved), c**p)

    def function(self, name: str, a: Value) -> Value:
        function = POINTS[name]
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


def _whole(ball: arb) -> int:
    """The one whole number that a ball holds, as large as it may be."""
    found = ball.unique_fmpz()
    require(found is not None, "an exponent that holds no whole number, or several")
    return int(found)  # type: ignore[arg-type]


def _side(n: int) -> int:
    return 1 if n > 0 else -1
