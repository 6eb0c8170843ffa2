"""The operations of expressions on values: identities, each where ranges show that it holds.

    exp(a) exp(b) = exp(a + b)      exp(n log A + r) = A^n exp(r)      log(c A^n exp(r)) = log c + n log A + r    A > 0
    log(t + u) = log t + log(1 + u/t)     a^p = exp(p log a)           sqrt(n + b^2) - b = n / (sqrt(n + b^2) + b)
    max(a, b) = b + relu(a - b)           |a| = 2 relu(a) - a
    relu(e + k max S - l max T) = max((e + k S) or l T) - l max T      asinh(a) = log(a + sqrt(1 + a^2))

An atom f(v) is the same as an earlier f(w) up to an error if |v - w| is small: then f(v) = f(w) within slope |v - w|.
Numbers that were rounded (1/3, pi, rescalings) thus lead to the same atoms, and to an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from flint import arb

from anchorhead.verify.equality.polynomials import ONE, SUMS, Atom, Monomial, Polynomials, Value, joined
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.numbers import BALLS, RANGES, Range

MAX_POWER = 8
"""Sums are multiplied out up to this power."""
CLOSE = arb(2) ** -30
"""Exponents that are so close to whole numbers are these, up to an error."""
HALVINGS = 6
"""Of the ranges of atoms, where a sign is to be seen."""
LIPSCHITZ = {"sin": 1.0, "cos": 1.0, "tanh": 1.0, "sigmoid": 0.25, "erf": 1.13, "erfc": 1.13}
"""Functions that have no rule of their own, and how fast they change at most: 2/sqrt(pi) < 1.13."""


class Algebra(Polynomials):
    """All functions of expressions."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self._logs: dict[int, int] = {}
        self._bases: dict[int, int] = {}
        super().__init__(low, high)
        one, half, minus = map(self.constant, (1, 0.5, -1))
        rules: dict[str, Callable[..., Value]] = {
            "pi": lambda: self.constant(arb.pi()), "e": lambda: self.constant(arb.const_e()), "add": self.add,
            "mul": lambda *all_of: reduce(self.mul, all_of), "neg": lambda a: self.scaled(a, arb(-1)),
            "div": lambda a, b: self.mul(a, self.power(b, minus)), "power": self.power,
            "integer_power": lambda n, a: self.power(a, self.constant(n)), "sqrt": lambda a: self.power(a, half),
            "exp": self.exp, "expm1": lambda a: self.add(self.exp(a), minus), "log": self.log, "asinh": self.asinh,
            "log1p": lambda a: self.log(self.add(one, a)), "softplus": lambda a: self.log(self.add(one, self.exp(a))),
            "max": lambda *all_of: reduce(self.larger, all_of), "where": self.where,
            "min": lambda *all_of: self.scaled(reduce(self.larger, [self.scaled(a, arb(-1)) for a in all_of]), arb(-1)),
            "abs": lambda a: self.minus(self.scaled(self.relu(a), arb(2)), a),
            **{name: lambda a, name=name: self.function(name, a) for name in LIPSCHITZ},
        }  # fmt: skip
        self.rules = {op: self._ranged(op, rule) for op, rule in rules.items()}
        self.rules["number"] = lambda number, radius=0.0: self.constant(arb(number, radius))
        self.rules["opaque"] = self._opaque

    def _ranged(self, op: str, rule: Callable[..., Value]) -> Callable[..., Value]:
        """The rule, of numbers as well, with the range that follows from those of its arguments."""

        def found(*args: Any) -> Value:
            data = [one for one in args if isinstance(one, str | int)]
            values = [one if isinstance(one, Value) else self.constant(one) for one in args[len(data) :]]
            numbers = [one.number for one in values]
            if None not in numbers:
                return self.constant(BALLS[op](*data, *numbers))
            return rule(*data, *values).within(RANGES[op](*data, *(one.range for one in values)))

        return found

    def _opaque(self, *args: Value) -> Value:
        raise NotVerified("a function that is known by its values alone is not compared")

    # powers

    def power(self, a: Value, b: Value) -> Value:
        """a^b for a > 0, for any a != 0 where b is a whole number, and for a = 0 as well where it is positive."""
        p = b.number
        if p is not None and a.number is not None:
            return self.constant(BALLS["power"](a.number, p))
        n = None if p is None or not p.is_integer() else int(p.unique_fmpz())  # type: ignore[arg-type]
        if n is not None and n >= 0 and len(a.terms) == 1:
            ((m, c),) = a.terms.items()
            found = self.scaled(self.product({atom: k * n for atom, k in m}), c**n)
            return found.within(RANGES["integer_power"](n, a.range))
        if n is not None and 0 <= n <= MAX_POWER:
            return reduce(self.mul, [a] * n, self.constant(1)).within(RANGES["integer_power"](n, a.range))
        a = self._with_sign(a)
        sign = a.range.sign
        if sign > 0 or (sign and n is not None):
            size = self.exp(self.mul(b, self.log(self.scaled(a, arb(sign)))))
            return self.scaled(size, arb(sign if n is not None and n % 2 else 1))
        if p is None or not p > 0 or (n is None and not a.range.low >= 0):
            self.undecided("a power, a root or a reciprocal")
        return self._root(a, p)

    def _root(self, a: Value, p: arb) -> Value:
        """c^p (a/c)^p for what may be 0."""
        c = a.terms[self.lead(a)].abs_lower()
        if not c > 0:
            self.undecided("a root of a value that may be 0")
        inside = self.scaled(a, 1 / c)
        atom, off = self.atom("power", inside, self.constant(p.mid()))
        most, moved = inside.range.most + off, arb(0)
        if not off.is_zero():  # |u^p - v^p| for p <= 1, for p >= 1, or for what may be either
            moved = reduce(arb.max, [*([] if p > 1 else [off**p]), *([] if p <= 1 else [p * most ** (p - 1) * off])])
        apart = (p - self.atoms[atom].of[1].terms[ONE]).abs_upper()
        moved += apart * (2 / p + (1 + most) ** (p + 1 + apart))  # |v^p - v^q| <= |p - q| sup v^r |log v|
        return self.scaled(self.off_by(self.product({atom: 1}), moved), c**p)

    def factored(self, a: Value) -> tuple[arb, dict[int, int]]:
        """c and exponents of atoms, the product of which is a: the largest term without the atoms that may be 0, and a
        sum that is an atom. a is not 0 anywhere."""
        a, off = self.parted(a)
        wrong = self._about_one(off, a.range.least)
        down = self.denominators(a)
        if down:
            c, powers = self.factored(self.mul(a, self.made([(down, arb(1))])))
            return c * wrong, joined(tuple(powers.items()), tuple((atom, -n) for atom, n in down))
        root = self._as_root(a)
        if root is not None:
            ((m, c),) = root.terms.items()
            return c * wrong, dict(m)
        lead = self.lead(a)
        c = a.terms[lead] * wrong
        factor = {atom: n for atom, n in lead if self.atoms[atom].range.sign}
        if len(a.terms) == 1 and len(factor) == len(lead):
            return c, factor
        rest = self.mul(self.scaled(a, 1 / a.terms[lead]), self.product({atom: -n for atom, n in factor.items()}))
        rest, off = self.parted(rest)
        atom, more = self.atom("sum", rest, inside=rest.range)
        factor[atom] = 1
        return c * self._about_one(off + more, max(self.atoms[atom].range.least, rest.range.least - more)), factor

    def _about_one(self, off: arb, least: arb) -> arb:
        """All of 1 + u/v with |u| <= off and |v| >= least."""
        if not off < least / 2:
            self.undecided("a value that may be 0")
        return arb(1, (off / least).upper())

    def log(self, a: Value) -> Value:
        a = self._with_sign(a)
        if not a.range.low > 0:
            self.undecided("a logarithm")
        c, powers = self.factored(a)
        parts = [self.constant(abs(c).log())]
        for atom, n in powers.items():
            known = self.atoms[atom]
            part = known.of[0] if known.op == "exp" else self.product({self._log_of(atom): 1})
            parts.append(self.scaled(part, arb(n)))
        return self.add(*parts).within(RANGES["log"](a.range))

    def _log_of(self, atom: int) -> int:
        """log |A|."""
        if atom not in self._logs:
            base = self.atoms[atom]
            inside, at = RANGES["log"](RANGES["abs"](base.range)), (abs(one).log().mid() for one in base.at)
            self._logs[atom] = self.new("log", (), inside, tuple(at))
            self._bases[self._logs[atom]] = atom
        return self._logs[atom]

    def exp(self, a: Value) -> Value:
        powers: dict[int, int] = {}
        rest: list[tuple[Monomial, arb]] = []
        factor = a.terms.get(ONE, arb(0)).exp()
        for m, c in a.terms.items():
            base = self._bases.get(m[0][0]) if len(m) == 1 and m[0][1] == 1 else None
            if base is not None:
                n = math.floor(float(c.mid()) + float(CLOSE))
                n = n if abs(n) <= MAX_POWER or self.atoms[base].op not in SUMS else 0
                powers[base] = n
                factor *= self.atoms[base].range.sign ** (n % 2)
                c -= n
                if c.abs_upper() < CLOSE:
                    factor *= (c * self.known(m)[0].ball).exp()
                    continue
            rest += [(m, c)] if m else []
        if rest:
            inner = self.made(rest)
            atom, off = self.atom("exp", inner)
            factor *= arb(0, off.upper()).exp()
            powers[atom] = powers.get(atom, 0) + 1
        inside = RANGES["exp"](a.range)
        return self.scaled(self.product(powers).within(RANGES["div"](inside, factor)), factor).within(inside)

    def function(self, name: str, a: Value) -> Value:
        atom, off = self.atom(name, a)
        return self.off_by(self.product({atom: 1}), off * LIPSCHITZ[name])

    def lead(self, a: Value) -> Monomial:
        """The largest term at the first point."""
        if not a.terms:
            self.undecided("a value that may be 0")
        return max(a.terms, key=lambda m: abs((a.terms[m] * self.known(m)[1][0]).mid()))

    # signs

    def _with_sign(self, a: Value) -> Value:
        """The value, with a range that has a sign if that can be seen."""
        box = {atom: self.atoms[atom].range for m in a.terms for atom, _ in m}
        return a if a.range.sign else a.within(self._halved(a, box, HALVINGS))

    def _halved(self, a: Value, box: Mapping[int, Range], times: int) -> Range:
        """Where a stays while its atoms are in a box, halved so many times until a has a sign on every part. Where a
        grows or falls in an atom throughout, it stays between what it is at the ends of that, whatever the others."""
        self.count(len(a.terms) * len(box))
        found = _range_of(a.terms.items(), box)
        if found.sign or not times:
            return found
        slopes = {atom: _range_of(_derivative(a, atom), box) for atom, side in box.items() if side.low < side.high}
        if not slopes:
            return found
        steady = [atom for atom, slope in slopes.items() if slope.low >= 0 or slope.high <= 0]
        atom = (*steady, *sorted(slopes, key=lambda one: -(box[one].high - box[one].low) * slopes[one].most))[0]
        low, high = box[atom]
        middle = ((low + high) / 2).mid()
        parts = [(low, low), (high, high)] if steady else [(low, middle), (middle, high)]
        return reduce(Range.united, (self._halved(a, {**box, atom: Range(*ends)}, times - 1) for ends in parts))

    # roots, which are sums as well

    def add(self, *all_of: Value) -> Value:
        """A sum; of a root and what cancels with it, the quotient that it is."""
        found = super().add(*all_of)
        plain, off = self.parted(found)
        root = self._as_root(plain)
        if root is None:
            return found
        ((m, _),) = root.terms.items()
        root = self.off_by(root, off)
        return root if any(n < 0 and self.atoms[atom].op == "root" for atom, n in m) else found.within(root.range)

    def _as_root(self, a: Value) -> Value | None:
        """r + b with n = r^2 - b^2 > 0 as sqrt(n) (sqrt(1 + t^2) + t), t = b / sqrt(n), where r is a root, r > 0."""
        for root in a.terms if 1 < len(a.terms) <= MAX_POWER else ():
            if not any(self.atoms[atom].op == "exp" for atom, _ in root):
                continue
            r = self.made([(root, a.terms[root])])
            b = self.made((m, c) for m, c in a.terms.items() if m != root)
            squares = self.mul(r, r), self.mul(b, b)
            n = self.minus(*squares)
            whole = not any(self.atoms[atom].op == "exp" for m in n.terms for atom, _ in m)
            if set(squares[1].terms) <= {*squares[0].terms, ONE} and whole and r.range.sign and n.range.low > 0:
                size = self.power(n, self.constant(0.5))
                if len(size.terms) != 1:
                    continue
                t = self.mul(self.scaled(b, arb(r.range.sign)), self.power(size, self.constant(-1)))
                atom, side, off = self._root_of(t)
                ((m, c),) = size.terms.items()
                return self.made([(tuple(sorted(joined(m, ((atom, side),)).items())), c * r.range.sign * off)])
        return None

    def _root_of(self, t: Value) -> tuple[int, int, arb]:
        """sqrt(1 + t^2) + t = exp(asinh(t)) as an atom to the power 1 or -1, as is positive at a point, times a ball:
        asinh changes no faster than t."""
        side = -1 if t.at[0] < 0 else 1
        atom, off = self.atom("root", self.scaled(t, arb(side)))
        return atom, side, arb(0, off.upper()).exp()

    def asinh(self, t: Value) -> Value:
        atom, side, off = self._root_of(t)
        return self.add(self.scaled(self.product({self._log_of(atom): 1}), arb(side)), self.constant(off.log()))

    def terms_of(self, sum_or_root: Atom) -> Value:
        (t,) = sum_or_root.of
        if sum_or_root.op == "sum":
            return t
        inside = super().add(self.constant(1), self.power(t, self.constant(2)))
        return super().add(t, self.power(inside, self.constant(0.5))).within(sum_or_root.range)

    # switches

    def larger(self, a: Value, b: Value) -> Value:
        return self.add(b, self.relu(self.add(a, self.scaled(b, arb(-1))))).within(RANGES["max"](a.range, b.range))

    def relu(self, a: Value) -> Value:
        """relu(e + k max S - l max T) = max((e + k S) or l T) - l max T."""
        if a.range.low >= 0 or a.range.high <= 0:
            return a if a.range.low >= 0 else self.constant(0)
        maxima = [m for m in a.terms if len(m) == 1 and m[0][1] == 1 and self.atoms[m[0][0]].op == "max"]
        up, down = ([m for m in maxima if sign * a.terms[m] > 0] for sign in (1, -1))
        up, down = up if len(up) == 1 else [], down if len(down) == 1 else []
        rest = self.made((m, c) for m, c in a.terms.items() if m not in (*up, *down))
        above = [self.add(rest, one) for one in self._members(a, up, 1)]
        below = self._members(a, down, -1)
        both = self.minus(self.maximum([*above, *below]), self.maximum(below))
        return both.within(RANGES["max"](a.range, arb(0)))

    def _members(self, a: Value, m: Sequence[Monomial], sign: int) -> list[Value]:
        """What the maximum is of that is a term of a, as large as there; 0 where there is none."""
        return (
            [self.scaled(one, sign * a.terms[m[0]]) for one in self.atoms[m[0][0][0]].of] if m else [self.constant(0)]
        )

    def maximum(self, all_of: Sequence[Value]) -> Value:
        """max = base + k max(0, (others - base)/k): k > 0 from the largest term of the second largest at a point."""
        base, *others = sorted(all_of, key=lambda one: -one.at[0])
        lost, kept = arb(0), [self.constant(0)]
        for one in (self.minus(other, base) for other in others):
            less = [self.minus(one, other) for other in kept]
            numbers = [by.number for by in less if by.number is not None]
            same = min([by.abs_upper() for by in numbers if by.contains(0)], default=None)
            if same is not None:
                lost = lost.max(same)
            elif not any(by.range.high <= 0 for by in less):  # else it is never larger than another
                kept.append(one)
        if len(kept) == 1:
            return self.off_by(base, lost)
        k = kept[1].terms[self.lead(kept[1])].abs_lower()
        if not k > 0:
            self.undecided("a maximum of what may be 0")
        atom, off = self.atom("max", *(self.scaled(one, 1 / k) for one in kept))
        return self.off_by(self.add(base, self.made([(((atom, 1),), k)])), k * off + lost)

    def where(self, relation: str, a: Value, b: Value, then: Value, other: Value) -> Value:
        asked = self.minus(a, b)
        low, high = asked.range
        if high < 0 or (relation == "<=" and high <= 0):
            return then
        if low > 0 or (relation == "<" and low >= 0):
            return other
        for number in self.kinds[relation]:
            d, yes, no = self.atoms[number].of
            change, offs = self.distance(asked, d), [self.distance(*pair) for pair in ((then, yes), (other, no))]
            if change is not None and change.is_zero() and None not in offs:
                return self.off_by(self.product({number: 1}), max(offs))  # type: ignore[type-var]
        at = tuple(y if d < 0 else n for d, y, n in zip(asked.at, then.at, other.at, strict=True))
        atom = self.new("where", (asked, then, other), then.range.united(other.range), at, relation)
        return self.product({atom: 1})


def _range_of(terms: Iterable[tuple[Monomial, arb]], box: Mapping[int, Range]) -> Range:
    powers = ((c, [RANGES["integer_power"](n, box[atom]) for atom, n in m]) for m, c in terms)
    return RANGES["add"](*(RANGES["mul"](c, *inside) for c, inside in powers))


def _derivative(a: Value, atom: int) -> list[tuple[Monomial, arb]]:
    return [
        (tuple((one, n - (one == atom)) for one, n in m), c * dict(m)[atom])
        for m, c in a.terms.items()
        if atom in dict(m)
    ]
