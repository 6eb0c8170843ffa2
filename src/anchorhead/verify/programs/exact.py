"""The exact quantities of a program: every entry as an affine form in inputs and in what functions give.

A function of an affine quantity becomes a new quantity, an atom, of which its function, its argument and an interval
are kept: heads are compared with atoms. Functions that are affine themselves make no atoms, and constants stay so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, below, coefficient, exact, hull, precision
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.forms import EXACT, Forms, Quantities, joined, mapped, summed
from anchorhead.verify.functions import behaviour, range_on
from anchorhead.verify.grids.callables import Given
from anchorhead.verify.programs.expressions import Expression, Undecided
from anchorhead.verify.programs.numbers import Range
from anchorhead.verify.programs.program import Affine, Apply, Input, Opaque, Program


@dataclass(frozen=True, eq=False)
class Atom:
    """The quantity `number`: a function of forms (1, 1), one for each argument that it depends on.

    where   the step, token and feature of the program, in words
    parts   the quantity as a sum of simpler ones, as a form, where its function is a sum, a product or a ridge
    """

    number: int
    function: Expression | Opaque
    arguments: Mapping[str, Forms]
    where: str
    parts: Forms | None = None

    @property
    def argument(self) -> Forms | None:
        """The one argument, if there is one."""
        return next(iter(self.arguments.values())) if len(self.arguments) == 1 else None


class Exact:
    """The program's quantities over a box of inputs (tokens, features)."""

    def __init__(
        self,
        program: Program,
        low: np.ndarray,
        high: np.ndarray,
        excluded: tuple[tuple[float, float], ...] = (),
        given: Given | None = None,
    ) -> None:
        """excluded: open intervals in which, by a condition on the inputs, no argument of a function lies; given: the
        one function that the program does not hold."""
        self.program, self.quantities, self.excluded, self.given = program, Quantities(), excluded, given
        self.atoms: dict[int, Atom] = {}
        self._known: dict[tuple, int] = {}
        self.forms: list[Forms | None] = []
        self.inputs = self.quantities.add(low.reshape(-1), high.reshape(-1))
        tokens, features = low.shape
        for place, step in enumerate(program.steps):
            match step:
                case Input():
                    require(place == 0, "a program of several inputs is not modelled")
                    eye = np.eye(low.size).reshape(tokens, features, low.size)
                    nothing = np.zeros((tokens, features))
                    self.forms.append(Forms(self.inputs, eye, nothing, nothing, nothing))
                case Affine():
                    self.forms.append(self._affine(step, place))
                case Apply():
                    self.forms.append(self._apply(step, place))
                case _:
                    self.forms.append(None)

    def of(self, place: int) -> Forms:
        found = self.forms[place]
        if found is None:
            kind = type(self.program.steps[place]).__name__
            raise NotVerified(f"step {place} of the program ({kind}) is no affine form of known quantities")
        return found

    @property
    def output(self) -> Forms:
        require(len(self.program.outputs) == 1, "a program of several outputs")
        return self.of(self.program.outputs[0])

    def expanded(self, form: Forms) -> Forms:
        """The form with every quantity that has parts replaced by them, and theirs by theirs."""
        while True:
            sums = [q for q in form.ids.tolist() if q in self.atoms and self.atoms[q].parts is not None]
            if not sums:
                return form
            columns = {q: place for place, q in enumerate(form.ids.tolist())}
            rest = form.coefficients.copy()
            rest[:, :, [columns[q] for q in sums]] = 0.0
            terms = [Forms(form.ids, rest, *form.arrays[1:])]
            flat = form.coefficients.reshape(-1, len(form.ids))
            for q in sums:
                part = mapped(flat[:, [columns[q]]], None, self.atoms[q].parts, self.quantities, EXACT)  # type: ignore[arg-type]
                terms.append(part.reshaped(*form.shape))
            form = summed(terms, self.quantities).pruned()

    def _affine(self, step: Affine, place: int) -> Forms | None:
        if any(self.forms[of] is None for of in step.of):
            return None
        terms = []
        for of, weight, radius in zip(step.of, step.weights, step.radii, strict=True):
            q = self.of(of)
            features = q.shape[1] if weight.ndim < 4 else q.shape[0] * q.shape[1]
            if (
                weight.size // (np.prod(weight.shape[:2]) if weight.ndim == 4 else weight.size // weight.shape[-1])
            ) != features:
                raise NotVerified(f"step {place} of the program: weights {weight.shape} of a quantity {q.shape}")
            terms.append(_term(weight, radius, q, self.quantities))
        tokens = max([len(step.bias), *(term.shape[0] for term in terms)])
        width = step.bias.shape[1]
        for term in terms:
            require(
                term.shape[1] == width and term.shape[0] in (1, tokens), f"step {place} of the program does not fit"
            )
        bias = Forms.constants(np.broadcast_to(step.bias, (tokens, width)))
        if step.bias_radius is not None:
            bias = Forms(*(bias.ids, *bias.arrays[:3]), np.broadcast_to(step.bias_radius, (tokens, width)))
        terms = [term if term.shape[0] == tokens else term.tokens([0] * tokens) for term in terms]
        return summed([*terms, bias], self.quantities).pruned()

    def _apply(self, step: Apply, place: int) -> Forms | None:
        if any(self.forms[of] is None for of in step.of):
            return None
        if any(isinstance(one, Opaque) for one in step.functions):
            return self._outputs(step, place)
        given = [self.of(of) for of in step.of]
        tokens, width = max(one.shape[0] for one in given), len(step.which)
        for one in given:
            require(
                one.shape[0] in (1, tokens) and one.shape[1] in (1, width), f"step {place} of the program does not fit"
            )
        jobs = []
        for t in range(tokens):
            for f in range(width):
                arguments = {
                    name: one.tokens([t if one.shape[0] > 1 else 0]).features([f if one.shape[1] > 1 else 0]).pruned()
                    for name, one in zip(step.arguments, given, strict=True)
                }
                jobs.append((step.functions[step.which[f]], arguments, f"{self.program.name(place)}[{t},{f}]"))
        self._prepare(jobs)
        entries = [self._entry(*job) for job in jobs]
        before = any(isinstance(one, Apply) for one in self.program.steps[:place])
        if self.excluded and (before or len(step.of) > 1):
            raise NotVerified("a condition on arguments is modelled for one function of one argument")
        return joined(entries).reshaped(tokens, width)

    def _outputs(self, step: Apply, place: int) -> Forms:
        """Feature r is output r of the function that is given; arguments are the inputs, in their order."""
        require(len(step.of) == len(self.inputs), "a callable of other than all inputs")
        if self.given is None or self.atoms:
            raise NotVerified("a program that is more than one callable on a box")
        given = [self.of(of) for of in step.of]
        for wanted, one in zip(np.eye(len(given)), given, strict=True):
            z = one.aligned(self.inputs)
            require(not z.constant.any() and not z.error.any() and bool((z.coefficients == wanted).all()),
                    "a callable of something else than the inputs as they are")  # fmt: skip
        numbers = self.quantities.add(*self.given.ends(len(step.which)))
        arguments = {name: one.pruned() for name, one in zip(step.arguments, given, strict=True)}
        for r, number in enumerate(numbers.tolist()):
            function = replace(step.functions[step.which[r]], output=r)  # type: ignore[type-var]
            self.atoms[number] = Atom(number, function, arguments, f"{self.program.name(place)}[{r}]")
        nothing = np.zeros((1, len(numbers)))
        return Forms(numbers, np.eye(len(numbers))[None], nothing, nothing, nothing)

    def _prepare(self, jobs: list) -> None:
        """One look at each function of one argument, on the hull of all its arguments."""
        self._reach: dict[str, tuple[float, float]] = {}
        for function, arguments, _ in jobs:
            if len(function.variables) == 1:
                low, high = self.ends(arguments[function.variables[0]])
                before = self._reach.get(function.key, (low, high))
                self._reach[function.key] = min(low, before[0]), max(high, before[1])

    def _entry(self, function: Expression, arguments: Mapping[str, Forms], where: str) -> Forms:
        """One entry of an Apply, (1, 1)."""
        own = {name: arguments[name] for name in function.variables}
        linear = split(function)
        if all(part.nodes[-1][0] == "variable" for part, _ in linear.terms):
            return self._sum(linear, own, where)
        constant = all(not len(one.ids) and not one.error.any() for one in own.values())
        if constant or not own:
            at = {name: arb(float(one.constant[0, 0])) for name, one in own.items()}
            with precision():
                low, high = below(function.ball(at)), above(function.ball(at))
            return _as_error(Forms.between(np.array([[low]]), np.array([[high]])))
        line = self._line(function, own)
        if line is not None:
            return line
        if len(linear.terms) == 1:
            parts = self._ridges(function, own, where)
            linear = multiplied_out(function) if parts is None else linear
        else:
            parts = None
        if parts is None and len(linear.terms) > 1:
            parts = self._sum(linear, own, where)
        return self._atom(function, own, where, parts)

    def _line(self, function: Expression, own: Mapping[str, Forms]) -> Forms | None:
        """A function that is affine between the ends of its one argument, as relu is on one side: that line."""
        if len(own) != 1:
            return None
        name, z = next(iter(own.items()))
        low, high = self.ends(z)
        with precision(cap=4):
            try:
                found = function.series({name: arb_series([hull(low, high), 1], prec=3)})
            except Undecided:
                return None
            slope, bend = (coefficient(found, n) for n in (1, 2))
            if not (bend.is_zero() and slope.is_exact() and (slope - float(slope)).is_zero()):
                return None
            middle = low / 2 + high / 2
            constant = function.ball({name: arb(middle)}) - slope * arb(middle)
            parts = [_scaled(z, slope, self.quantities), _constant(constant)]
        return summed(parts, self.quantities).pruned()

    def _ridges(self, function: Expression, own: Mapping[str, Forms], where: str) -> Forms | None:
        """A function of several quantities by functions of one: f(a) for an affine a, and a b as squares of a + b and
        a - b, a quarter each."""
        op, data, places = function.nodes[-1]
        if len(own) < 2 or len(places) > 2 or (len(places) == 2 and op != "mul"):
            return None
        inner = []
        for place in places:
            linear = split(function.part(place))
            if not linear.terms or any(part.nodes[-1][0] != "variable" for part, _ in linear.terms):
                return None
            inner.append(self._sum(linear, own, where))
        if len(inner) == 1:
            return self._atom(Expression.of((("variable", "u", ()), (op, data, (0,)))), {"u": inner[0]}, where)
        square = Expression.of((("variable", "u", ()), ("square", None, (0,))))
        terms = []
        for sign in (1.0, -1.0):
            other = mapped(np.array([[sign]]), None, inner[1], self.quantities, EXACT)
            both = summed([inner[0], other], self.quantities).pruned()
            terms.append(
                mapped(np.array([[sign / 4]]), None, self._atom(square, {"u": both}, where), self.quantities, EXACT)
            )
        return summed(terms, self.quantities).pruned()

    def _sum(self, linear: Split, own: Mapping[str, Forms], where: str) -> Forms:
        terms = [_constant(linear.constant)]
        for part, factor in linear.terms:
            inner = own[part.variables[0]] if part.nodes[-1][0] == "variable" else self._entry(
                part, {name: own[name] for name in part.variables}, where
            )  # fmt: skip
            terms.append(_scaled(inner, factor, self.quantities))
        return summed(terms, self.quantities).pruned()

    def _atom(
        self, function: Expression, arguments: Mapping[str, Forms], where: str, parts: Forms | None = None
    ) -> Forms:
        key = (
            function.key,
            *((n, one.ids.tobytes(), *(a.tobytes() for a in one.arrays)) for n, one in arguments.items()),
        )
        if key not in self._known:
            low, high = self._range(function, arguments)
            number = int(self.quantities.add(np.array([low]), np.array([high]))[0])
            self._known[key] = number
            self.atoms[number] = Atom(number, function, dict(arguments), where, parts)
        zero = np.zeros((1, 1))
        return Forms(np.array([self._known[key]]), np.ones((1, 1, 1)), zero, zero, zero)

    def ends(self, z: Forms) -> tuple[float, float]:
        """Between what an argument lies; of a quantity as it is, just where that does."""
        low, high = z.ends(self.quantities)
        if is_plain_quantity(z):
            low, high = ([[end[z.ids[0]]]] for end in (self.quantities.low, self.quantities.high))
        return float(low[0][0]), float(high[0][0])

    def _range(self, function: Expression, arguments: Mapping[str, Forms]) -> tuple[float, float]:
        ends = {name: self.ends(one) for name, one in arguments.items()}
        if len(ends) == 1:
            low, high = next(iter(ends.values()))
            whole = self._reach.get(function.key, (low, high))
            whole = min(low, whole[0]), max(high, whole[1])
            return range_on(function, behaviour(function, *whole), low, high)
        with precision():
            found = function.range({name: Range(*map(exact, one)) for name, one in ends.items()})
        require(found.known, f"{function} is not known to be defined and bounded on the whole box")
        return below(found.low), above(found.high)


def is_plain_quantity(z: Forms) -> bool:
    """Whether a form (1, 1) is a quantity as it is."""
    one = len(z.ids) == 1 and z.coefficients[0, 0, 0] == 1 and z.constant[0, 0] == 0
    return bool(one and not z.error.any())


@dataclass(frozen=True, eq=False)
class Split:
    """An expression as sum factor_i part_i + constant, parts that are no sums."""

    terms: list[tuple[Expression, arb]]
    constant: arb


def split(expression: Expression) -> Split:
    """Sums, differences and constant factors taken apart; whatever else stands in the sum is a part."""
    with precision():
        factors, constant = _linear(expression, len(expression.nodes) - 1)
    return Split([(expression.part(place), factor) for place, factor in factors.items()], constant)


def multiplied_out(expression: Expression) -> Split:
    """a (f b + g c + h) as f a b + g a c + h a, if each of these depends on fewer variables than the whole; else the
    whole, as it is. So no more than the variables are the sums that can be taken apart within one another."""
    op, _, places = expression.nodes[-1]
    for n, place in enumerate(places if op == "mul" else ()):
        linear = split(expression.part(place))
        others = [expression.part(other) for other in (*places[:n], *places[n + 1 :])]
        terms = [(_product([*others, part]), factor) for part, factor in linear.terms]
        if not linear.constant.is_zero():
            terms.append((_product(others), linear.constant))
        if len(terms) > 1 and all(len(part.variables) < len(expression.variables) for part, _ in terms):
            return Split(terms, arb(0))
    return Split([(expression, arb(1))], arb(0))


def _product(factors: Sequence[Expression]) -> Expression:
    if len(factors) == 1:
        return factors[0]
    nodes: list[tuple] = []
    last = []
    for factor in factors:
        first = len(nodes)
        nodes += [(op, data, tuple(first + place for place in places)) for op, data, places in factor.nodes]
        last.append(len(nodes) - 1)
    return Expression.of((*nodes, ("mul", None, tuple(last))))


def _linear(expression: Expression, place: int) -> tuple[dict[int, arb], arb]:
    op, data, places = expression.nodes[place]
    if op == "number":
        return {}, arb(data)
    if op in ("pi", "e"):
        return {}, arb.pi() if op == "pi" else arb.const_e()
    if op in ("add", "neg"):
        factors: dict[int, arb] = {}
        constant = arb(0)
        sign = -1 if op == "neg" else 1
        for argument in places:
            inner, more = _linear(expression, argument)
            constant += sign * more
            for key, factor in inner.items():
                factors[key] = factors.get(key, arb(0)) + sign * factor
        return factors, constant
    if op in ("mul", "div"):
        parts = [_linear(expression, argument) for argument in places]
        varying = [n for n, (inner, _) in enumerate(parts) if inner]
        if not varying or (len(varying) == 1 and (op == "mul" or varying[0] == 0)):
            scale = arb(1)
            for n, (inner, constant) in enumerate(parts):
                if not inner:
                    scale = scale / constant if op == "div" and n == 1 else scale * constant
            if scale.is_finite():
                inner, constant = parts[varying[0]] if varying else ({}, arb(1))
                return {key: factor * scale for key, factor in inner.items()}, constant * scale
    return {place: arb(1)}, arb(0)


def _term(weight: np.ndarray, radius: np.ndarray | None, q: Forms, quantities: Quantities) -> Forms:
    if weight.ndim == 2:
        result, uncertain = mapped(weight, None, q, quantities, EXACT), None
        if radius is not None:
            uncertain = q.size(quantities) @ radius.T
    elif weight.ndim == 3:
        result = joined([mapped(w, None, q.tokens([i]), quantities, EXACT) for i, w in enumerate(weight)])
        uncertain = None if radius is None else np.einsum("tof,tf->to", radius, q.size(quantities))
    else:
        tokens, outputs = weight.shape[:2]
        flat = q.reshaped(1, q.shape[0] * q.shape[1])
        result = mapped(weight.reshape(tokens * outputs, -1), None, flat, quantities, EXACT).reshaped(tokens, outputs)
        uncertain = None if radius is None else np.einsum("jonf,nf->jo", radius, q.size(quantities))
    if uncertain is None:
        return result
    return Forms(result.ids, *result.arrays[:3], result.rounding + uncertain * (1 + 1e-9))


def _scaled(form: Forms, factor: arb, quantities: Quantities) -> Forms:
    middle = float(factor.mid())
    off = max(above(factor) - middle, middle - below(factor)) if not (factor - middle).is_zero() else 0.0
    result = mapped(np.array([[middle]]), None, form, quantities, EXACT)
    return Forms(result.ids, *result.arrays[:3], result.rounding + off * form.size(quantities))


def _constant(value: arb) -> Forms:
    if value.is_exact() and (value - float(value)).is_zero():
        return Forms.constants(np.array([[float(value)]]))
    return _as_error(Forms.between(np.array([[below(value)]]), np.array([[above(value)]])))


def _as_error(form: Forms) -> Forms:
    """What is not known of a constant of the program counts as rounding: no head is to blame for it."""
    return Forms(form.ids, form.coefficients, form.constant, form.rounding, form.approximation)
