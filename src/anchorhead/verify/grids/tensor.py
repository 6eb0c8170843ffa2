"""Grids within a walk: a softmax over a tensor grid of registers read as a function of several inputs.

The key of a register splits into one block an axis, block j depending on its index along axis j alone. An axis whose
query is constant and of which a single point is heard is a gate: it picks that point, and the others are silent. Along
every other axis the query is an input less an origin, rounded once, or 0 where an input is hidden. Then the head is
that of `head`, and it is compared with the function of these inputs that it is said to compute, less a constant.

How far a grid may be off is not known before all else is: it is an allowance, for which the lemma is proven at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import prod

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.forms import Forms, summed
from anchorhead.verify.grids.cells import cover
from anchorhead.verify.grids.functions import known_of
from anchorhead.verify.grids.head import Box, Grid, Unsettled
from anchorhead.verify.grids.smooth import verify_grid
from anchorhead.verify.named import Named
from anchorhead.verify.programs.exact import Entry, Exact, is_plain_quantity
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.readings import Reading, heard, lowered
from anchorhead.verify.rounding import Arithmetic

GATE = 4000.0


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
    """The grids of a walk. Each is allowed `scale` times what it is said to be off by."""

    exact: Exact
    model: Arithmetic
    scale: float = 0.0
    waiting: list[Callable[[], object]] = field(default_factory=list)

    def explain(self, reading: GridReading, values: np.ndarray, named: Named) -> tuple[Forms, float, str]:
        """What is read of values, (points,), as a form (1, 1), a bound on it, and in words."""
        entry = self.exact.entry(*named.entry)
        plain = all(is_plain_quantity(z) and z.ids[0] in self.exact.inputs for z in entry.arguments.values())
        require(plain and named.alpha == 1, f"a grid that is said to compute {entry.where}, of something but inputs")
        if self.exact.given is not None:
            inputs = self.exact.inputs.tolist()
            require(set(reading.ids) <= set(inputs), "a function that is given has no input to hide")
            reading = _of_all(reading, inputs)
        asked = {int(z.ids[0]) for z in entry.arguments.values()}
        require(asked <= set(reading.ids), f"{entry.where} depends on an input that is hidden from its grid")
        grid, allowed = Grid(reading.axes, reading.origins, values[reading.places]), self.scale * abs(named.error)
        self.waiting.append(partial(self._prove, grid, entry, named.beta, reading.ids, allowed))
        found = summed([entry.form, Forms.constants(np.array([[named.beta]]))], self.exact.quantities)
        found = Forms(found.ids, *found.arrays[:2], found.approximation + allowed, found.rounding)
        names = ", ".join(f"x{q}" for q in reading.ids)
        sides = " x ".join(map(str, grid.values.shape))
        size = float(np.abs(grid.values).max()) * (1 + 4 * float(self.model.gamma(grid.values.size + 2)))
        return found, size, f"a grid of {sides} along {names}"

    def verify(self, tell: Callable[[int, int, str], object]) -> None:
        """Every grid for its allowance; raises where that does not do. tell: told how far it is."""
        for number, one in enumerate(self.waiting):
            tell(number, len(self.waiting), f"grid {number + 1}")
            one()

    def _prove(self, grid: Grid, entry: Entry, beta: float, ids: tuple[int, ...], allowed: float) -> None:
        """That the grid is off a function of the inputs `ids`, and beta, by no more than is allowed."""
        given, quantities = self.exact.given, self.exact.quantities
        box = [(float(quantities.low[q]), float(quantities.high[q])) for q in ids]
        if isinstance(entry.function, Expression):
            prove(grid, _expression(entry, beta), [f"x{q}" for q in ids], box, self.model, allowed)
        elif given is not None:
            back, values = np.argsort(ids), given.plus(entry.function.output, beta)
            cover(grid, given.lipschitz.ordered(ids).known(lambda x: values(x[:, back])), box, self.model, allowed)


def prove(
    grid: Grid, function: Expression, variables: Sequence[str], box: Box, model: Arithmetic, allowed: float
) -> int:
    """By the lemma of smooth functions, or by cells."""
    with suppress(Unsettled):
        return verify_grid(grid, function, variables, box, model, allowed)
    return cover(grid, known_of(function, variables), box, model, allowed)


def _of_all(reading: GridReading, inputs: list[int]) -> GridReading:
    """The reading with an axis of one anchor for every input that it does not depend on."""
    more = [q for q in inputs if q not in reading.ids]
    flat = [(np.zeros(1), np.zeros(1))] * len(more)
    origins = np.concatenate([reading.origins, np.zeros(len(more))])
    places = reading.places.reshape(reading.places.shape + (1,) * len(more))
    return GridReading((*reading.ids, *more), (*reading.axes, *flat), origins, places)


def _expression(entry: Entry, beta: float) -> Expression:
    """The function of an entry, and beta, as an expression of x<number of the input>."""
    nodes: list[tuple] = []
    for op, data, places in entry.function.nodes:  # type: ignore[union-attr]
        nodes.append((op, f"x{int(entry.arguments[data].ids[0])}" if op == "variable" else data, places))
    last = len(nodes)
    return Expression.of((*nodes, ("number", float(beta), ()), ("add", None, (last - 1, last))))
