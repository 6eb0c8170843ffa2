"""The exact quantities of a program: every entry as an affine form in inputs and in what functions give.

A function of affine quantities becomes a new quantity with an interval. Functions that are lines on their interval make
none, and constants stay so. Heads are compared with entries of such steps. What a network was built of is the program
in the derivation (`read_lowered`): nothing is taken apart here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from flint import arb, arb_series

from anchorhead.verify.balls import above, below, coefficient, exact, hull, precision
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.forms import EXACT, LEAST, Forms, Quantities, joined, mapped, require_few, summed
from anchorhead.verify.functions import behaviour, range_on
from anchorhead.verify.grids.callables import Given
from anchorhead.verify.programs.expressions import Expression, Undecided
from anchorhead.verify.programs.numbers import Range
from anchorhead.verify.programs.program import Affine, Apply, Input, Opaque, Program


@dataclass(frozen=True, eq=False)
class Entry:
    """A feature of a token of an Apply: a function of forms (1, 1), one for each argument that it depends on.

    form    what it is, (1, 1): a quantity of its own, a line or a constant
    where   the step, token and feature, in words
    """

    function: Expression | Opaque
    arguments: Mapping[str, Forms]
    form: Forms
    where: str

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
        """excluded: open intervals in which, by a condition on the inputs, no argument of a function lies: of each
        token one number, of which the program puts out functions, so that it is plain what the condition speaks of;
        given: the one function that the program does not hold."""
        self.program, self.quantities, self.excluded, self.given = program, Quantities(), excluded, given
        self._known: dict[tuple, int] = {}
        self.forms: list[Forms | None] = []
        require_few(low.size, low.size)
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

    def entry(self, place: int, token: int, feature: int) -> Entry:
        """A feature of a token of a step that applies functions."""
        step, every = (of[place] if place < len(of) else None for of in (self.program.steps, self.forms))
        if not isinstance(step, Apply) or every is None or not (token < every.shape[0] and feature < every.shape[1]):
            raise NotVerified(f"a claim names the entry {(place, token, feature)}, which the program has not")
        function = step.functions[step.which[feature]]
        if isinstance(function, Opaque):
            function = replace(function, output=feature)
        # a constant is one of whatever is given
        names = function.arguments if isinstance(function, Opaque) else function.variables or step.arguments[:1]
        arguments, where = (
            self._arguments(step, token, feature, names),
            f"{self.program.name(place)}[{token},{feature}]",
        )
        return Entry(function, arguments, every.entry(token, feature), where)

    @property
    def output(self) -> Forms:
        require(len(self.program.outputs) == 1, "a program of several outputs")
        return self.of(self.program.outputs[0])

    def _affine(self, step: Affine, place: int) -> Forms | None:
        if any(self.forms[of] is None for of in step.of):
            return None
        terms = [
            _term(*of, self.quantities) for of in zip(step.weights, step.radii, map(self.of, step.of), strict=True)
        ]
        tokens, width = max([len(step.bias), *(term.shape[0] for term in terms)]), step.bias.shape[1]
        fits = all(term.shape[1] == width and term.shape[0] in (1, tokens) for term in terms)
        require(fits, f"step {place} of the program does not fit")
        bias = Forms.constants(np.broadcast_to(step.bias, (tokens, width)))
        if step.bias_radius is not None:
            bias = Forms(*(bias.ids, *bias.arrays[:3]), np.broadcast_to(step.bias_radius, (tokens, width)))
        terms = [term if term.shape[0] == tokens else term.tokens([0] * tokens) for term in terms]
        return summed([*terms, bias], self.quantities).pruned()

    def _apply(self, step: Apply, place: int) -> Forms | None:
        if any(self.forms[of] is None for of in step.of):
            return None
        given = [self.of(of) for of in step.of]
        tokens, width = max(one.shape[0] for one in given), len(step.which)
        fits = all(one.shape[0] in (1, tokens) and one.shape[1] in (1, width) for one in given)
        require(fits, f"step {place} of the program does not fit")
        if any(isinstance(one, Opaque) for one in step.functions):
            require(tokens == 1, "a callable of several tokens, one by one")
            return self._outputs(step, place)
        places = [(t, f) for t in range(tokens) for f in range(width)]
        applied = [(step.functions[step.which[f]], t, f) for t, f in places]
        jobs = [(one, self._arguments(step, t, f, one.variables)) for one, t, f in applied]  # type: ignore[union-attr]
        self._prepare(jobs)
        entries = [self._entry(*job) for job in jobs]
        alone = len(given) == 1 and given[0].alike and self.program.outputs == (place,)
        if self.excluded and not alone:
            raise NotVerified("a condition on arguments is modelled where functions of one number are put out")
        return joined(entries).reshaped(tokens, width)

    def _arguments(self, step: Apply, token: int, feature: int, names: Sequence[str]) -> Mapping[str, Forms]:
        """Some of the arguments of a feature, forms (1, 1)."""
        given = {name: self.of(of) for name, of in zip(step.arguments, step.of, strict=True) if name in names}
        return {
            name: one.entry(token if one.shape[0] > 1 else 0, feature if one.shape[1] > 1 else 0)
            for name, one in given.items()
        }

    def _outputs(self, step: Apply, place: int) -> Forms:
        """Feature r is output r of the function that is given; arguments are the inputs, in their order."""
        require(len(step.of) == len(self.inputs), "a callable of other than all inputs")
        if self.given is None or any(isinstance(one, Apply) for one in self.program.steps[:place]):
            raise NotVerified("a program that is more than one callable on a box")
        given = [self.of(of) for of in step.of]
        for wanted, one in zip(np.eye(len(given)), given, strict=True):
            z = one.aligned(self.inputs)
            require(not z.constant.any() and not z.error.any() and bool((z.coefficients == wanted).all()),
                    "a callable of something else than the inputs as they are")  # fmt: skip
        numbers = self.quantities.add(*self.given.ends(len(step.which)))
        nothing = np.zeros((1, len(numbers)))
        return Forms(numbers, np.eye(len(numbers))[None], nothing, nothing, nothing)

    def _prepare(self, jobs: list) -> None:
        """One look at each function of one argument, on the hull of all its arguments."""
        self._reach: dict[str, tuple[float, float]] = {}
        for function, arguments in jobs:
            if len(function.variables) == 1:
                low, high = self.ends(arguments[function.variables[0]])
                before = self._reach.get(function.key, (low, high))
                self._reach[function.key] = min(low, before[0]), max(high, before[1])

    def _entry(self, function: Expression, own: Mapping[str, Forms]) -> Forms:
        """One entry of an Apply, (1, 1), of the arguments that it depends on."""
        if all(not len(one.ids) and not one.error.any() for one in own.values()):
            at = {name: arb(float(one.constant[0, 0])) for name, one in own.items()}
            with precision():
                return _constant(function.ball(at))
        line = self._line(function, own)
        return self._quantity(function, own) if line is None else line

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
            constant = _constant(function.ball({name: arb(middle)}) - slope * arb(middle))
        steep = mapped(np.array([[float(slope)]]), None, z, self.quantities, EXACT)
        return summed([steep, constant], self.quantities).pruned()

    def _quantity(self, function: Expression, arguments: Mapping[str, Forms]) -> Forms:
        unsure = any(one.error.any() for one in arguments.values())  # what is alike up to errors may differ by these
        key = (
            function.key,
            len(self._known) if unsure else None,
            *((n, one.ids.tobytes(), *(a.tobytes() for a in one.arrays)) for n, one in arguments.items()),
        )
        if key not in self._known:
            low, high = self._range(function, arguments)
            self._known[key] = int(self.quantities.add(np.array([low]), np.array([high]))[0])
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


def _term(weight: np.ndarray, radius: np.ndarray | None, q: Forms, quantities: Quantities) -> Forms:
    """The weights, which may be so far off, of a quantity."""
    off = np.zeros(weight.shape) if radius is None else radius
    if weight.ndim == 3:  # as one across tokens, that has nothing to do with others than its own
        weight, off = (each[:, :, None] if len(q.constant) == 1 else _apart(each) for each in (weight, off))
    shape, fits = None, weight.shape[weight.ndim // 2 :] == q.shape[2 - weight.ndim // 2 :]
    require(fits, f"weights {weight.shape} of a quantity {q.shape} in the program")
    if weight.ndim == 4:
        shape, q = weight.shape[:2], q.reshaped(1, q.shape[0] * q.shape[1])
        weight, off = (each.reshape(shape[0] * shape[1], -1) for each in (weight, off))
    result = mapped(weight, None, q, quantities, EXACT)
    wrong = q.size(quantities) @ off.T * (1 + 1e-9) + (off > 0).any(axis=1) * LEAST
    result = Forms(result.ids, *result.arrays[:3], result.rounding + wrong)
    return result if shape is None else result.reshaped(*shape)


def _apart(weight: np.ndarray) -> np.ndarray:
    """(tokens, outputs, features) as (tokens, outputs, tokens, features)."""
    require_few(*weight.shape, len(weight))
    return np.einsum("tof,ts->tosf", weight, np.eye(len(weight)))


def _constant(value: arb) -> Forms:
    """What is not known of a constant of the program counts as rounding: no head is to blame for it."""
    if value.is_exact() and (value - float(value)).is_zero():
        return Forms.constants(np.array([[float(value)]]))
    form = Forms.between(np.array([[below(value)]]), np.array([[above(value)]]))
    return Forms(form.ids, form.coefficients, form.constant, form.rounding, form.approximation)
