"""Grids within a walk: a softmax over a tensor grid of registers read as a function of several inputs.

The key of a register splits into one block an axis, block j depending on its index along axis j alone. An axis whose
query is constant and of which a single point is heard is a gate: it picks that point, and the others are silent. Along
every other axis the query is an input less an origin, rounded once, or 0 where an input is hidden. Then the head is
that of `head`, and it is compared with a sum of the program's functions of these inputs, found by looking at some
points.

How far a grid may be off is not known before all else is: it is an allowance, for which the lemma is proven at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod

import numpy as np
from flint import arb

from anchorhead.verify.balls import precision
from anchorhead.verify.claims import Explained, Unit
from anchorhead.verify.forms import Forms, summed
from anchorhead.verify.grids.cells import cover
from anchorhead.verify.grids.functions import known_of
from anchorhead.verify.grids.head import Box, Grid, Unsettled
from anchorhead.verify.grids.rounding import log_weights
from anchorhead.verify.grids.smooth import verify_grid
from anchorhead.verify.programs.exact import Atom, Exact, is_plain_quantity
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.readings import Reading, heard, lowered
from anchorhead.verify.rounding import Arithmetic

SAMPLES = 48
GATE = 4000.0
STEEP, FEW = 24.0, 2
"""How far logits may differ over half a box before so many boxes of cells are looked at first."""


@dataclass(frozen=True, eq=False)
class GridReading:
    """Axes with slopes, offsets and origin, each along the input `ids`; of the points, those that the gates pick."""

    ids: tuple[int, ...]
    axes: tuple[tuple[np.ndarray, np.ndarray], ...]
    origins: np.ndarray
    places: np.ndarray


def grid_reading(
    query: Forms, keys: Forms, sides: Sequence[int], exact: Exact, model: Arithmetic
) -> GridReading | None:
    """The axes of a query (1, size) to registers (points, size); None where they are not those of a grid."""
    size = query.shape[1] // len(sides)
    quantities = exact.quantities
    found: list[Reading] = []
    for j, side in enumerate(sides):
        own, stride = slice(j * size, (j + 1) * size), prod(sides[j + 1 :])
        one = lowered(
            query.features(own), keys.tokens(slice(0, side * stride, stride)).features(own), quantities, model
        )
        if one is None or one.logits.wrong.any() or one.logits.wrong_slope.any():
            return None
        found.append(one)
    reach = sum(_largest(one) for one in found if not (one.constant and _gates(one)))
    axes: list[tuple[int, float, tuple[np.ndarray, np.ndarray]]] = []
    index = [np.arange(side) for side in sides]
    for j, one in enumerate(found):
        logits, hidden = one.logits, None
        if one.constant and not _gates(one) and not (logits.terms > 1).any():
            hidden = _hidden(query, keys, j, sides, exact)
        if hidden is not None:
            axes.append((hidden[0], 0.0, (hidden[1], logits.offsets)))
        elif one.constant:
            (loud,) = heard([one])
            index[j] = np.array(loud.keys if loud is not None else (), int)
            picks = [logits.offsets[k] == 0 and logits.terms[k] == 0 for k in index[j]]
            others = np.delete(logits.offsets, index[j])
            if picks != [True] or (others > -GATE - 8 * reach).any():
                return None
            along = query.features(slice(j * size, (j + 1) * size)).pruned().ids
            if sides[j] == 1 and len(along) == 1 and along[0] in exact.inputs:  # weighs 1, whatever it is asked
                axes.append((int(along[0]), 0.0, (np.zeros(1), np.zeros(1))))
        else:
            origin = _origin(one.t, one.ends, logits.terms, exact, model)
            if origin is None:
                return None
            axes.append((int(one.t.ids[0]), origin, (logits.slopes, logits.offsets)))
    ids, origins, pairs = zip(*axes, strict=True) if axes else ((), (), ())
    if not ids or len(set(ids)) < len(ids):
        return None
    places = np.ravel_multi_index(np.ix_(*index), sides).reshape([len(slopes) for slopes, _ in pairs])
    return GridReading(ids, pairs, np.array(origins), places)


def _origin(t: Forms, ends: tuple[float, float], terms: np.ndarray, exact: Exact, model: Arithmetic) -> float | None:
    """The origin, if t is an input less that, rounded once, and offsets of logits are single products."""
    if len(t.ids) != 1 or t.ids[0] not in exact.inputs or t.coefficients[0, 0, 0] != 1 or (terms > 1).any():
        return None
    rounded = model.unit * max(map(abs, ends)) if t.constant[0, 0] else 0.0
    return None if t.error[0, 0] > (1 + 1e-7) * rounded + 64 * model.tiny else -float(t.constant[0, 0])


def _gates(one: Reading) -> bool:
    """Whether a single point of a constant axis is heard."""
    (loud,) = heard([one])
    return loud is not None and len(loud.keys) == 1


def _hidden(query: Forms, keys: Forms, j: int, sides: Sequence[int], exact: Exact) -> tuple[int, np.ndarray] | None:
    """An axis that is asked at its origin, because its input is hidden: along a quantity that is 0, and its slopes."""
    size, stride = query.shape[1] // len(sides), prod(sides[j + 1 :])
    along = keys.tokens(slice(0, sides[j] * stride, stride))
    silent = [e for e in range(j * size, (j + 1) * size) if query.zero[0, e] and along.constant[:, e].any()]
    if len(silent) != 1 or not along.fixed[:, silent[0]].all() or along.error[:, silent[0]].any():
        return None
    return int(exact.quantities.add(np.zeros(1), np.zeros(1))[0]), along.constant[:, silent[0]]


def _largest(one: Reading) -> float:
    return float((np.abs(one.logits.slopes) * max(abs(end) for end in one.ends) + np.abs(one.logits.offsets)).max())


@dataclass(eq=False)
class Grids:
    """The grids of a walk, with what each is allowed; `hints`: errors in proportion to which that is shared out."""

    exact: Exact
    model: Arithmetic
    hints: Sequence[float]
    scale: float = 0.0
    waiting: list[Callable[[], object]] = field(default_factory=list)
    _met: list[GridReading] = field(default_factory=list)

    def explain(
        self, reading: GridReading, values: np.ndarray, betas: Sequence[float]
    ) -> tuple[Forms, float, str] | None:
        """What is read of values, (points,), as a form (1, 1), a bound on it, and in words; betas: constants that may
        be missing from a function."""
        quantities, inputs = self.exact.quantities, self.exact.inputs.tolist()
        if self.exact.given is not None:
            if not set(reading.ids) <= set(inputs):  # a function that is given has no input to hide
                return None
            reading = _of_all(reading, inputs)
        grid = Grid(reading.axes, reading.origins, values[reading.places])
        low, high = (end[list(reading.ids)] for end in (quantities.low, quantities.high))
        x = low + (high - low) * np.random.default_rng(0).random((SAMPLES, len(low)))
        x = np.concatenate([x, np.array(list(product(*zip(low, high, strict=True))))])
        read = _read(grid, x)
        best: tuple[float, Forms, float] | None = None
        for form in _sums(self.exact, set(reading.ids)):
            y = self._values(form, reading.ids, x)
            if y is None:
                continue
            middle = float((read - y).min() / 2 + (read - y).max() / 2)
            for beta, handicap in [*((b, 1.0) for b in betas), (middle, 3.0)]:
                error = handicap * max(float(np.abs(read - y - beta).max()), 1e-15)
                if best is None or error < best[0]:
                    best = error, form, beta
        if best is None:
            return None
        allowed = self.scale * self.hints[self._number(reading) % len(self.hints)]
        _, form, beta = best
        self.waiting.append(partial(self._prove, grid, form, beta, reading.ids, allowed))
        constant = Forms.constants(np.array([[beta]]))
        found = summed([form, constant], quantities)
        found = Forms(found.ids, *found.arrays[:2], found.approximation + allowed, found.rounding)
        names = ", ".join(f"x{q}" for q in reading.ids)
        sides = " x ".join(map(str, grid.values.shape))
        size = float(np.abs(grid.values).max()) * (1 + 4 * float(self.model.gamma(grid.values.size + 2)))
        return found, size, f"a grid of {sides} along {names}"

    def of_unit(self, unit: Unit) -> Explained | None:
        """A head on one number, the only input, that stands for a function which is given: a grid of one axis."""
        (part, *more), t = unit.parts, unit.reading.t
        wrong = (
            part.wrong.any() or part.wrong_slope.any() or part.value_error.any() or part.lean or part.own is not None
        )
        origin = _origin(t, unit.reading.ends, part.terms, self.exact, self.model)
        if more or wrong or origin is None:
            return None
        reading = GridReading(
            (int(t.ids[0]),), ((part.slopes, part.offsets),), np.array([origin]), np.arange(len(part.slopes))
        )
        betas = [0.0, *(beta for pairs in unit.hints.values() for alpha, beta in pairs if alpha == 1)]
        found = self.explain(reading, part.values, betas)
        if found is None:
            return None
        form, size, words = found
        return Explained(form, size, size, len(part.slopes), words, float(form.approximation[0, 0]))

    def _number(self, reading: GridReading) -> int:
        """How many other grids were met before: several outputs, and tokens that do not see an input, may read one."""
        for number, one in enumerate(self._met):
            pairs = zip(one.ids, reading.ids, strict=False)
            inputs = all(a == b or not {a, b} <= set(self.exact.inputs.tolist()) for a, b in pairs)
            if inputs and [list(map(bytes, axis)) for axis in one.axes] == [
                list(map(bytes, axis)) for axis in reading.axes
            ]:
                return number
        self._met.append(reading)
        return len(self._met) - 1

    def _values(self, form: Forms, ids: tuple[int, ...], x: np.ndarray) -> np.ndarray | None:
        """A sum of functions at places, in float64, to choose by."""
        if self.exact.given is not None:
            return self.exact.given.summed(_outputs(self.exact, form), form, 0.0)(x[:, np.argsort(ids)])[0]
        expression = _expression(self.exact, form, 0.0)
        with precision(64):
            rows = [{f"x{q}": arb(float(value)) for q, value in zip(ids, row, strict=True)} for row in x]
            found = np.array([float(expression.point(row).mid()) for row in rows])
        return found if np.isfinite(found).all() else None

    def verify(self, tell: Callable[[int, int, str], object]) -> None:
        """Every grid for its allowance; raises where that does not do. tell: told how far it is."""
        for number, one in enumerate(self.waiting):
            tell(number, len(self.waiting), f"grid {number + 1}")
            one()

    def _prove(self, grid: Grid, form: Forms, beta: float, ids: tuple[int, ...], allowed: float) -> None:
        """That the grid is off a sum of functions of the inputs `ids`, and beta, by no more than is allowed."""
        given, quantities = self.exact.given, self.exact.quantities
        box = [(float(quantities.low[q]), float(quantities.high[q])) for q in ids]
        if given is None:
            function, names = _expression(self.exact, form, beta), [f"x{q}" for q in ids]
            prove(grid, function, names, box, self.model, allowed)
            return
        back, sums = np.argsort(ids), given.summed(_outputs(self.exact, form), form, beta)
        lipschitz = given.lipschitz.of_sum(ids, float(np.abs(form.coefficients).sum()))
        cover(grid, lipschitz.known(lambda x: sums(x[:, back])), box, self.model, allowed)


def prove(
    grid: Grid, function: Expression, variables: Sequence[str], box: Box, model: Arithmetic, allowed: float
) -> int:
    """By the lemma of smooth functions, or by cells; where the softmax is steep, by a few cells first."""
    known = known_of(function, variables)
    steep = max(np.ptp(slopes) * (b - a) / 2 for (slopes, _), (a, b) in zip(grid.axes, box, strict=True)) > STEEP
    with suppress(Unsettled):
        return cover(grid, known, box, model, allowed, FEW if steep else 0)
    with suppress(Unsettled):
        return verify_grid(grid, function, variables, box, model, allowed)
    return cover(grid, known, box, model, allowed)


def _of_all(reading: GridReading, inputs: list[int]) -> GridReading:
    """The reading with an axis of one anchor for every input that it does not depend on."""
    more = [q for q in inputs if q not in reading.ids]
    flat = [(np.zeros(1), np.zeros(1))] * len(more)
    origins = np.concatenate([reading.origins, np.zeros(len(more))])
    places = reading.places.reshape(reading.places.shape + (1,) * len(more))
    return GridReading((*reading.ids, *more), (*reading.axes, *flat), origins, places)


def _outputs(exact: Exact, form: Forms) -> list[int]:
    """Which outputs of the function that is given a form is a sum of."""
    return [exact.atoms[q].function.output for q in form.ids.tolist()]  # type: ignore[union-attr]


def _read(grid: Grid, x: np.ndarray) -> np.ndarray:
    """The head at points, in float64, to choose by."""
    result = np.broadcast_to(grid.values, (len(x), *grid.values.shape))
    for j, column in enumerate(x.T):
        result = np.einsum("nk...,nk->n...", result, np.exp(log_weights(grid, j, column)[0]))
    return result


def _sums(exact: Exact, ids: set[int]) -> list[Forms]:
    """Sums of the program's functions of these inputs: of all of an output, of those of several inputs, of each."""
    found: list[Forms] = []
    form, nothing = exact.output, np.zeros((1, 1))
    for t in range(form.shape[0]):
        for f in range(form.shape[1]):
            entry = form.tokens([t]).features([f]).pruned()
            own = [q for q in entry.ids.tolist() if _inputs(exact, q) <= ids]
            several = [q for q in own if len(_inputs(exact, q)) > 1]
            functions = [q for q in own if q in exact.atoms]
            for some in (own, functions, several, *([q] for q in several)):
                keep = np.isin(entry.ids, some)
                if keep.any():
                    found.append(Forms(entry.ids[keep], entry.coefficients[:, :, keep], nothing, nothing, nothing))
    unique = {(form.ids.tobytes(), form.coefficients.tobytes()): form for form in found}
    return list(unique.values())


def _inputs(exact: Exact, q: int) -> set[int]:
    """The inputs on which a quantity depends; -1 stands for what is not the plain value of one."""
    if q not in exact.atoms:
        return {q}
    found: set[int] = set()
    for z in exact.atoms[q].arguments.values():
        found |= {int(z.ids[0])} if is_plain_quantity(z) and z.ids[0] in exact.inputs else {-1}
    return found


def _expression(exact: Exact, form: Forms, beta: float) -> Expression:
    """sum of coefficient times quantity, and beta, as one expression of x<number of the input>."""
    nodes: list[tuple] = [("number", float(beta), ())]
    terms = [0]
    for q, factor in zip(form.ids.tolist(), form.coefficients[0, 0].tolist(), strict=True):
        if q in exact.atoms:
            last = _copied(exact.atoms[q], nodes)
        else:
            nodes.append(("variable", f"x{q}", ()))
            last = len(nodes) - 1
        nodes += [("number", factor, ()), ("mul", None, (last, len(nodes)))]
        terms.append(len(nodes) - 1)
    nodes.append(("add", None, tuple(terms)))
    return Expression.of(tuple(nodes))


def _copied(atom: Atom, nodes: list[tuple]) -> int:
    first = len(nodes)
    if not isinstance(atom.function, Expression):
        raise TypeError("a function that is not known")
    for op, data, places in atom.function.nodes:
        name = f"x{int(atom.arguments[data].ids[0])}" if op == "variable" else data
        nodes.append((op, name, tuple(first + place for place in places)))
    return len(nodes) - 1
