"""Networks for functions that files do not keep: verified given the function, and the constant that is assumed of it.

What is given is f from (n, inputs) to (n, outputs), or from (n, tokens, features) to (n, tokens, outputs), of float64
arrays; of one number from (n,). That it is the one that the network was made from, a digest of its values tells, at 64
points of numpy's default generator, seed 0, uniform in the program's box; for one number at 33 points that crowd
towards its ends. Its outputs are quantities of the program that lie within what the constant allows of the value at the
middle of the box. A head over a grid is then compared with each of them: by as many cells as the derivation mentions,
or more (`cover`); without any, by the lemma of even places (`uniform`).

Assumed: the constant, which values may contradict but never prove, and that values are right to 2 units in the last
place of float64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from anchorhead.verify.certificate import Certificate, require_only
from anchorhead.verify.claims import Explained, Pool, Unit
from anchorhead.verify.context import Context, Step
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.files import Stored
from anchorhead.verify.forms import Forms
from anchorhead.verify.grammar import Network
from anchorhead.verify.grids.cover import MAX_CELLS, Lipschitz, cover_bound, interval_bound
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.tensor import SAMPLES, GridReading, Grids, head_values
from anchorhead.verify.grids.uniform import VALUE_ERROR, verify_uniform_lipschitz
from anchorhead.verify.programs.exact import Exact
from anchorhead.verify.programs.program import Apply, Input, Opaque, Program
from anchorhead.verify.rounding import Arithmetic, arithmetic_of
from anchorhead.verify.walk import compared, walk

PROBES, CROWDED = 64, 33
NEEDED = (
    "this network is for a callable, which files do not keep: give it, as in ah.check(net, function=f) or "
    "anchorhead.verify.verify(path, function=f)"
)


@dataclass(frozen=True, eq=False)
class Given:
    """The function as one of (n, inputs), and what is assumed of it. low, high: the program's box, flattened."""

    function: Callable[..., Any]
    shape: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    lipschitz: Lipschitz

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(n, outputs); finite."""
        given = np.array(x, np.float64).reshape(len(x), *self.shape)
        found = np.asarray(self.function(given), np.float64).reshape(len(x), -1)
        require(bool(np.isfinite(found).all()), "the function that is given is not finite on the box")
        return found


def callable_bound(
    stored: Stored, network: Network, program: Program, certificate: Certificate, function: Callable[..., Any] | None
) -> tuple[float, list[Step], list[str]]:
    """The error that follows, what was explained, and what is assumed of the function."""
    if function is None:
        raise NotVerified(NEEDED)
    given = _given(program, certificate, function, _hint(stored, "samples"))
    enough = 0.999 * certificate.bound
    found, steps = _tried(stored, network, program, certificate, given, enough)
    if certificate.bound < found < 2 * certificate.bound:  # what maps behind heads add is known only now
        enough -= (found - certificate.bound) * 1.001
        found, steps = _tried(stored, network, program, certificate, given, enough)
    assumed = [str(given.lipschitz), f"values of f right to {VALUE_ERROR / 2.0**-52:g} ulp of float64"]
    return found, steps, assumed


def _tried(
    stored: Stored, network: Network, program: Program, certificate: Certificate, given: Given, enough: float
) -> tuple[float, list[Step]]:
    """What follows if an error of heads is good enough."""
    exact, model = _Exact(program, certificate, given), arithmetic_of(network.dtype)
    outputs = _Outputs(exact, model, _cells(stored), enough)
    grids = _Grids(exact, model, [1.0], outputs=outputs)
    context = _Context(exact, model, Pool(), grids=grids, outputs=outputs)
    return float(compared(walk(network, context), exact).size(exact.quantities).max()), context.steps


def _given(program: Program, certificate: Certificate, function: Callable[..., Any], samples: Any) -> Given:
    box = program.steps[0]
    opaque = {one for step in program.steps if isinstance(step, Apply) for one in step.functions}
    if not isinstance(box, Input) or box.low is None or box.high is None or len(opaque) != 1:
        raise NotVerified("a program that is more than one callable on a box")
    (one,) = opaque
    if not isinstance(one, Opaque):
        raise NotVerified("a program that is no callable")
    low, high = (np.broadcast_to(end, certificate.low.shape).reshape(-1) for end in (box.low, box.high))
    require_only(certificate, "assumed Lipschitz constant")
    require(len(certificate.conditions) == 1, "a callable whose certificate does not say what is assumed")
    constants = tuple(float(number) for number in certificate.conditions[0]["constants"])
    fits = constants == one.lipschitz and len(constants) in (1, len(low)) and all(0 <= c < np.inf for c in constants)
    require(fits, "the certificate assumes another constant than the program")
    shape = certificate.low.shape if program.token_axis else (len(low),) if len(low) > 1 else ()
    found = Given(function, shape, low, high, Lipschitz(constants, len(constants) == 1 and len(low) > 1))
    require(_is_same(found, one.digest, samples), "function= is not the one that the network is for: its values differ")
    return found


def _is_same(given: Given, digest: str, samples: Any) -> bool:
    """Whether values have the digest; of a function of one number, values that differ in their last digits from samples
    which have it do as well: not every machine has the same cosines."""
    if given.shape != ():
        return (
            _digest(given(np.random.default_rng(0).uniform(given.low, given.high, (PROBES, len(given.low))))) == digest
        )
    between = (1 - np.cos(np.linspace(0, np.pi, CROWDED))) / 2
    values = given(np.clip(given.low + (given.high - given.low) * between, given.low, given.high)[:, None])
    known = np.array(samples, np.float64) if isinstance(samples, list) else values
    close = known.shape == values.shape and np.allclose(values, known, rtol=1e-12, atol=1e-12)
    return _digest(values) == digest or (bool(close) and _digest(known) == digest)


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()


def _hint(stored: Stored, name: str) -> Any:
    """What the derivation mentions, never trusted."""
    data = (stored.derivation or {}).get("data")
    return data.get(name) if isinstance(data, dict) else None


def _cells(stored: Stored) -> list[int]:
    """How many cells along each axis the proof of the builder had: where to begin."""
    counts = _hint(stored, "cells")
    whole = isinstance(counts, list) and all(type(count) is int and 1 <= count <= MAX_CELLS for count in counts)
    return counts if whole and counts and prod(counts) <= MAX_CELLS else []


class _Exact(Exact):
    """The program's quantities, with the outputs of the one function that is given."""

    def __init__(self, program: Program, certificate: Certificate, given: Given) -> None:
        self.given, self.outputs = given, np.zeros(0, int)
        super().__init__(program, certificate.low, certificate.high)

    def _apply(self, step: Apply, place: int) -> Forms:
        """Feature r is output r; arguments are the inputs, in their order."""
        require(not len(self.outputs) and len(step.of) == len(self.inputs), "a callable of other than all inputs")
        eye = np.eye(len(self.inputs))
        for wanted, of in zip(eye, step.of, strict=True):
            z = self.of(of).aligned(self.inputs)
            require(not z.constant.any() and not z.error.any() and bool((z.coefficients == wanted).all()),
                    "a callable of something else than the inputs as they are")  # fmt: skip
        given = self.given
        middle = (given.low / 2 + given.high / 2)[None]
        values = given(middle)[0]
        require(len(values) == len(step.which), f"a function of {len(values)} outputs, where {len(step.which)} belong")
        reach = np.maximum(given.high - middle, middle - given.low)
        away = given.lipschitz.over(reach)[0] + 4 * VALUE_ERROR * np.abs(values)
        self.outputs = self.quantities.add(values - away, values + away)
        nothing = np.zeros((1, len(values)))
        return Forms(self.outputs, np.eye(len(values))[None], nothing, nothing, nothing)


@dataclass(frozen=True, eq=False)
class _Outputs:
    """Heads explained as outputs of the function.

    counts   how many cells along each axis to begin with; none: even places     enough   an error that would do
    """

    exact: _Exact
    model: Arithmetic
    counts: Sequence[int]
    enough: float

    def closest(self, reading: GridReading, table: np.ndarray, betas: Sequence[float]) -> tuple[int, float]:
        """The output k and the beta for which f_k + beta is closest to what is read of values (p_1, …, p_d)."""
        x = np.random.default_rng(0).uniform(*self._ends(reading), (SAMPLES, len(reading.ids)))
        truth = self.exact.given(x[:, np.argsort(reading.ids)])
        off = (head_values(reading, table, x)[:, None] - truth)[..., None] - np.array(betas)
        k, which = np.unravel_index(int(np.abs(off).max(axis=0).argmin()), off.shape[1:])
        return int(k), float(betas[int(which)])

    def form(self, k: int, beta: float, error: float) -> Forms:
        return Forms(
            self.exact.outputs[[k]], np.ones((1, 1, 1)), np.array([[beta]]), np.array([[error]]), np.zeros((1, 1))
        )

    def _ends(self, reading: GridReading) -> tuple[list[float], list[float]]:
        low, high = self.exact.quantities.low, self.exact.quantities.high
        return [float(low[q]) for q in reading.ids], [float(high[q]) for q in reading.ids]

    def error(self, reading: GridReading, table: np.ndarray, k: int, beta: float) -> float:
        """How far a grid is off output k plus beta."""
        given, (low, high) = self.exact.given, self._ends(reading)
        back = np.argsort(reading.ids)

        def function(x: np.ndarray) -> np.ndarray:
            return given(x[:, back])[:, k]

        lipschitz = given.lipschitz
        if not lipschitz.euclidean:
            lipschitz = Lipschitz(tuple(lipschitz.constants[q] for q in reading.ids), euclidean=False)
        grid = Grid(reading.axes, reading.origins, table[..., None], np.zeros(1))
        if len(self.counts) == len(low):
            counts = [self.counts[q] for q in reading.ids]
            return cover_bound(grid, function, beta, lipschitz, low, high, self.model, counts, self.enough)
        biased = replace(grid, bias=np.array([-beta]))
        constants = lipschitz.constants, lipschitz.euclidean
        return verify_uniform_lipschitz(
            biased, lambda x: function(x)[:, None], *constants, low, high, self.model.dtype, np.inf
        )


@dataclass(eq=False)
class _Grids(Grids):
    """Of several inputs: grids of the walk."""

    outputs: _Outputs | None = None

    def explain(
        self, reading: GridReading, values: np.ndarray, betas: Sequence[float]
    ) -> tuple[Forms, float, str] | None:
        inputs = self.exact.inputs.tolist()
        if self.outputs is None or not set(reading.ids) <= set(inputs):
            return None
        reading = _of_all(reading, inputs)
        table = values[reading.places]
        k, beta = self.outputs.closest(reading, table, betas)
        form = self.outputs.form(k, beta, self.outputs.error(reading, table, k, beta))
        size = float(form.size(self.exact.quantities)[0, 0])
        return form, size, f"a grid of {' x '.join(map(str, table.shape))} against output {k} of the function"


@dataclass(eq=False)
class _Context(Context):
    """Of one input: heads on a scalar."""

    outputs: _Outputs | None = None

    def explained(self, units: Sequence[Unit], where: str) -> list[Explained | None]:
        return [self._one(unit, where) for unit in units]

    def _one(self, unit: Unit, where: str) -> Explained | None:
        (part, *more), t = unit.parts, unit.reading.t
        exactly = not (part.wrong.any() or part.wrong_slope.any() or part.value_error.any() or (part.terms > 1).any())
        rounded = self.model.unit * max(map(abs, unit.reading.ends)) if t.constant[0, 0] else 0.0
        plain = t.ids.tolist() == self.exact.inputs.tolist() == [0] and t.coefficients[0, 0, 0] == 1
        if self.outputs is None or more or not exactly or not plain:
            return None
        if t.error[0, 0] > (1 + 1e-7) * rounded + 64 * self.model.tiny:
            return None
        reading = GridReading((0,), ((part.slopes, part.offsets),), -t.constant[0], np.arange(len(part.slopes)))
        betas = [0.0, *(beta for pairs in unit.hints.values() for alpha, beta in pairs if alpha == 1)]
        k, beta = self.outputs.closest(reading, part.values, betas)
        given, leaning = self.outputs.exact.given, replace(part, lean=part.lean + float(t.error[0, 0]))
        ends = float(self.quantities.low[0]), float(self.quantities.high[0])
        error = interval_bound(
            leaning,
            -float(t.constant[0, 0]),
            lambda x: given(x)[:, k],
            beta,
            given.lipschitz,
            ends,
            self.outputs.enough,
        )
        words = f"{len(part.slopes)} anchors against output {k} of the function"
        self.steps.append(Step(where, "scalar head", words, error))
        form = self.outputs.form(k, beta, error)
        size = float(form.size(self.quantities)[0, 0])
        return Explained(form, size, size, len(part.slopes), words, error)


def _of_all(reading: GridReading, inputs: list[int]) -> GridReading:
    """The reading with an axis of one anchor for every input that it does not depend on."""
    more = [q for q in inputs if q not in reading.ids]
    flat = [(np.zeros(1), np.zeros(1))] * len(more)
    origins = np.concatenate([reading.origins, np.zeros(len(more))])
    places = reading.places.reshape(reading.places.shape + (1,) * len(more))
    return GridReading((*reading.ids, *more), (*reading.axes, *flat), origins, places)


def is_callable(program: Program) -> bool:
    """Whether a program is one function that the file does not hold, and maps of inputs and outputs."""
    applied: list[Any] = [one for step in program.steps if isinstance(step, Apply) for one in step.functions]
    return any(isinstance(one, Opaque) for one in applied)
