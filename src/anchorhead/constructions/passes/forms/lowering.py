"""Expressions as programs of quantities, in forms that are equal on the box.

    a + b, c a      affine combinations          f(a)         a quantity
    max(a, b)       b + relu(a - b)              min(a, b)    b - relu(b - a),    of many in a tournament
    a b             ((a + b)^2 - (a - b)^2)/4,   both brought to one size before      a / b        a (1/b)

or, where a and b keep their signs, by logarithms, so that errors are relative and common factors cancel:

    log |a b|  =  log |a| + log |b|              log |a / b|  =  log |a| - log |b|           log |a^p|  =  p log |a|
    log(a + b)  =  log a + softplus(log b - log a)                                           log exp(a)  =  a
    sqrt(a^2 + b) + s a  =  sqrt(b) exp(s asinh(a / sqrt(b))),    s = 1 or -1: no cancellation is left

Which is the better one depends on ranges and on the error asked for: both are written, and estimates compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from flint import arb

from anchorhead.constructions.passes.forms.neurons import (
    EXP,
    LOG,
    RECIPROCAL,
    RELU,
    SQUARE,
    neuron,
    power_of,
)
from anchorhead.constructions.passes.forms.quantities import Combination, Quantities, total
from anchorhead.constructions.passes.forms.roots import ASINH, quadratic_root
from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.products import scales
from anchorhead.language.analysis.ridges import Ridge, X, box_of, ridge_of, structure
from anchorhead.language.expressions import build
from anchorhead.language.expressions.expression import Expression

SOFTPLUS = build.make("softplus", (X,))
Signed = tuple[int, Combination]
"""s and l with a = s exp(l)."""


class Lowering:
    """Writes expressions into a program, each part once."""

    def __init__(self, quantities: Quantities, logarithms: bool) -> None:
        self.quantities, self.logarithms = quantities, logarithms
        self._plain: dict[Expression, Combination] = {}
        self._logs: dict[Expression, Signed | None] = {}
        self._kept: dict[Expression, bool] = {}

    def plain(self, node: Expression) -> Combination:
        """The expression itself; AnchorheadError where a part of it is no composition that is known here."""
        if node not in self._plain:
            self._plain[node] = self._write(node)
        return self._plain[node]

    def ridges(self, terms: Sequence[Expression]) -> list[Combination]:
        """What adds up to the terms, each a function of one linear combination: those of the same one put together."""
        if not terms:
            return []
        variables = self.quantities.variables
        box = box_of(variables, *zip(*self.quantities.ranges[: len(variables)], strict=True))
        found = structure(build.add(*terms), variables, box).ridges
        return [self._neuron(one.function, _along(one)) for one in found]

    def log(self, node: Expression) -> Signed | None:
        """The logarithm of its size, and its sign; None where it has none for certain."""
        if node not in self._logs:
            self._logs[node] = self._from_parts(node) or self._log_of_plain(node) if self.logarithms else None
        return self._logs[node]

    def _write(self, node: Expression) -> Combination:
        form = node.affine()
        if form is not None:
            terms = (self.quantities.input(name) * slope for name, slope in form[0].items())
            return total(terms) + form[1]
        inside = self._ridge(node)
        if inside is not None and node.op not in ("add", "max", "min"):
            return self._neuron(inside[1], inside[0])
        if self._is_kept_as_log(node):
            signed = self.log(node)
            if signed is not None:
                return self._neuron(EXP, signed[1]) * arb(signed[0])
        return self._by_operation(node)

    def _by_operation(self, node: Expression) -> Combination:
        args = node.args
        match node.op:
            case "add":
                return total(map(self.plain, args))
            case "neg":
                return self.plain(args[0]) * arb(-1)
            case "mul":
                return self._tournament(self._factors(args), self._product)
            case "div":
                return self._product(self.plain(args[0]), self._reciprocal(args[1]))
            case "max":
                return self._tournament(list(map(self.plain, args)), self._larger)
            case "min":
                return self._tournament([self.plain(arg) * arb(-1) for arg in args], self._larger) * arb(-1)
            case "log" if self.logarithms and (found := self.log(args[0])) is not None and found[0] > 0:
                return found[1]
        varying = [place for place, arg in enumerate(args) if arg.variables]
        if len(varying) != 1:
            raise AnchorheadError(f"{node}: {node.op} of {len(varying)} parts that vary is no function of one variable")
        inside = tuple(X if place == varying[0] else arg for place, arg in enumerate(args))
        return self._neuron(build.make(node.op, inside, node.data), self.plain(args[varying[0]]))

    def _neuron(self, function: Expression, of: Combination) -> Combination:
        return neuron(self.quantities, function, of)

    def _ridge(self, node: Expression) -> tuple[Combination, Expression] | None:
        """w . x + b and phi with node = phi(w . x + b), if there are such."""
        ridge = ridge_of(node, self.quantities.variables)
        return None if ridge is None else (_along(ridge), ridge.function)

    def _factors(self, args: Sequence[Expression]) -> list[Combination]:
        """What is to be multiplied: those that keep their signs are one factor, if there are several of them."""
        logs = [self.log(arg) if arg.variables else None for arg in args]
        signed = [one for one in logs if one is not None]
        product = _times(signed, [arb(1)] * len(signed))
        if len(signed) < 2 or product is None:
            return [self.plain(arg) for arg in args]
        rest = [self.plain(arg) for arg, one in zip(args, logs, strict=True) if one is None]
        return [self._neuron(EXP, product[1]) * arb(product[0]), *rest]

    def _reciprocal(self, node: Expression) -> Combination:
        signed = self.log(node) if self._is_kept_as_log(node) else None
        if signed is not None:
            return self._neuron(EXP, signed[1] * arb(-1)) * arb(signed[0])
        return self._neuron(RECIPROCAL, self.plain(node))

    def _tournament(
        self, all_of: list[Combination], join: Callable[[Combination, Combination], Combination]
    ) -> Combination:
        """All of them in pairs, those that are known early first."""
        while len(all_of) > 1:
            all_of = sorted(all_of, key=self.quantities.depth)
            pairs = [join(*all_of[i : i + 2]) for i in range(0, len(all_of) - 1, 2)]
            all_of = pairs + all_of[len(all_of) - len(all_of) % 2 :]
        return all_of[0]

    def _larger(self, a: Combination, b: Combination) -> Combination:
        return b + self._neuron(RELU, a + b * arb(-1))

    def _product(self, a: Combination, b: Combination) -> Combination:
        """By squares of a/2^i + b/2^j and a/2^i - b/2^j, of which neither drowns the other (analysis.products)."""
        for one, other in ((a, b), (b, a)):
            if not one.coefficients:
                return other * one.constant
        if a.key == b.key:
            return self._neuron(SQUARE, a)
        by = scales(self.quantities.range(a), self.quantities.range(b))
        (c, d), (u, v) = (tuple(map(arb, pair)) for pair in (by.centres, by.units))
        plus, minus = (self._neuron(SQUARE, (a + -c) * (1 / u) + (b + -d) * (sign / v)) for sign in (arb(1), arb(-1)))
        squares = (plus + minus * arb(-1)) * arb(by.factor)
        return squares + a * d + b * c + -(c * d) if by.centres != (0.0, 0.0) else squares

    def _is_kept_as_log(self, node: Expression) -> bool:
        """Whether it is known by its logarithm first, and would be the exponential of that."""
        if node not in self._kept:
            able = self.logarithms and self._ridge(node) is None and self._by_log(node)
            self._kept[node] = able and self._from_parts(node) is not None
        return self._kept[node]

    def _by_log(self, node: Expression) -> bool:
        """Whether its logarithm is made of what is there already, and not of one more logarithm for every part."""
        match node.op:
            case "mul" | "div":
                varying = [arg for arg in node.args if arg.variables]
                return len(varying) > 1 or self._is_kept_as_log(varying[0])
            case "exp":
                return True
            case "neg":
                return self._is_kept_as_log(node.args[0])
            case "add":
                return quadratic_root(node) is not None and self._log_of_root(node) is not None
        power = power_of(node)
        return power is not None and self._is_kept_as_log(power[0])

    def _from_parts(self, node: Expression) -> Signed | None:
        """The logarithm from those of its parts; None where it can only be that of the expression itself."""
        args = node.args
        if not node.variables:
            return self._log_of_constant(node.ball({}))
        match node.op:
            case "mul":
                return _times([self.log(arg) for arg in args], [arb(1)] * len(args))
            case "div":
                return _times([self.log(arg) for arg in args], [arb(1), arb(-1)])
            case "neg":
                return _times([self.log(args[0]), (-1, Combination())], [arb(1), arb(1)])
            case "exp":
                return 1, self.plain(args[0])
            case "add":
                return self._log_of_root(node) or self._log_of_sum(node)
        power = power_of(node)
        base = None if power is None else self.log(power[0])
        if power is None or base is None:
            return None
        whole = power[1].is_integer()
        if base[0] < 0 and not whole:
            return None
        return base[0] if whole and int(float(power[1])) % 2 else 1, base[1] * power[1]

    def _log_of_constant(self, value: arb) -> Signed | None:
        for sign in (1, -1):
            if value * sign > 0:
                return sign, Combination({}, (value * sign).log())
        return None

    def _log_of_plain(self, node: Expression) -> Signed | None:
        """log(s a) as a function of a, or of what a is a function of."""
        inside = None if node.affine() is not None else self._ridge(node)
        of = self.plain(node)
        low, high = self.quantities.range(of)
        if low <= 0 <= high:
            return None
        sign = 1 if low > 0 else -1
        if inside is None:
            return sign, self._neuron(LOG, of * arb(sign))
        function = inside[1] if sign > 0 else build.neg(inside[1])
        return sign, self._neuron(build.make("log", (function,)), inside[0])

    def _log_of_sum(self, node: Expression) -> Signed | None:
        """All terms of one sign, and some of them known by their logarithms: log(a + b) = log a + softplus(...)."""
        by_log = [arg for arg in node.args if self._is_kept_as_log(arg)]
        if not by_log:
            return None
        found = [self.log(arg) for arg in by_log]
        others = [arg for arg in node.args if arg not in by_log]
        if others:
            rest = build.add(*others)
            found.append(self.log(rest))
        signs = {one[0] for one in found if one is not None}
        if None in found or len(signs) != 1:
            return None
        logs = sorted((one[1] for one in found if one is not None), key=partial(_middle, self.quantities))
        return signs.pop(), self._tournament(logs, self._log_sum)

    def _log_sum(self, a: Combination, b: Combination) -> Combination:
        large, small = (b, a) if _middle(self.quantities, b) >= _middle(self.quantities, a) else (a, b)
        return large + self._neuron(SOFTPLUS, small + large * arb(-1))

    def _log_of_root(self, node: Expression) -> Signed | None:
        """log |sqrt(a^2 + b) + s a| = log(b)/2 + s asinh(a / sqrt(b))."""
        found = quadratic_root(node)
        b = None if found is None else self.log(found.b)
        if found is None or b is None or b[0] < 0:
            return None
        root = self._neuron(EXP, b[1] * arb(-0.5))
        angle = self._neuron(ASINH, self._product(self.plain(found.a), root))
        return found.sign, b[1] * arb(0.5) + angle * arb(found.side)


def _along(ridge: Ridge) -> Combination:
    return Combination({i: c for i, c in enumerate(ridge.direction) if not c.is_zero()}, ridge.shift)


def _middle(quantities: Quantities, one: Combination) -> float:
    return sum(quantities.range(one)) / 2


def _times(logs: Sequence[Signed | None], exponents: Sequence[arb]) -> Signed | None:
    sign, summed = 1, Combination()
    for one, exponent in zip(logs, exponents, strict=True):
        if one is None:
            return None
        sign, summed = sign * one[0], summed + one[1] * exponent
    return sign, summed
