"""Feed-forward networks that grow neuron by neuron: functions of one linear combination each, layer by layer.

What a later layer reads is carried by neurons that are the identity. All of this is exact: weights that are no floats
are kept as balls, and as floats with their errors in the network. Expressions are taken apart in
constructions.passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb

from anchorhead.language.analysis.edges import kept_inside, reached
from anchorhead.language.analysis.ridges import PRECISION, Box, Ridge, Structure, split_constant
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp

MAX_NEURONS = 2_000
"""How many neurons the network of an expression may have: dense matrices have the square of their number."""


@dataclass(frozen=True, eq=False)
class Read:
    """constant + sum_i coefficients[i] a_i, a_i the neurons of a layer; layer 0 is the inputs."""

    layer: int
    coefficients: Mapping[int, arb]
    constant: arb

    def scaled(self, factor: arb) -> Read:
        return Read(self.layer, {i: c * factor for i, c in self.coefficients.items()}, self.constant * factor)

    def shifted(self, constant: arb) -> Read:
        return Read(self.layer, self.coefficients, self.constant + constant)


Key = tuple[object, ...]


class Layered:
    """A network that grows: neurons with the same weights and function are one."""

    def __init__(self, variables: Sequence[str]) -> None:
        self.variables = tuple(variables)
        self.rows: list[list[tuple[Read, Expression]]] = []
        self._known: list[dict[Key, int]] = []

    def mlp(self, outputs: Sequence[Read], tokens: int | None = None, name: str = "") -> Mlp:
        """The network that gives these outputs, of one hidden layer at least."""
        depth = max(1, *(read.layer for read in outputs))
        outputs = [self.lifted(read, depth) for read in outputs]
        sizes = [len(self.variables), *(len(row) for row in self.rows)]
        if depth > len(self.rows):  # constants alone
            self.rows.append([])
            sizes.append(0)
        if not self.rows[0]:
            self.rows[0].append((Read(0, {}, arb(0)), IDENTITY))
            sizes[1] = 1
        hidden = []
        for number, row in enumerate(self.rows[:depth]):
            affine = _affine([read for read, _ in row], sizes[number])
            distinct = tuple(dict.fromkeys(function for _, function in row))
            hidden.append(Hidden(affine, distinct, np.array([distinct.index(function) for _, function in row])))
        return Mlp(tuple(hidden), _affine(outputs, sizes[depth]), tokens, name, self.variables)

    def neuron(self, inner: Read, function: Expression) -> Read:
        """function(inner), one layer on."""
        while len(self.rows) <= inner.layer:
            self.rows.append([])
            self._known.append({})
        known, row = self._known[inner.layer], self.rows[inner.layer]
        weights = sorted((i, *_bits(c)) for i, c in inner.coefficients.items())
        place = known.setdefault((*weights, *_bits(inner.constant), function), len(row))
        if place == len(row):
            row.append((inner, function))
        return Read(inner.layer + 1, {place: arb(1)}, arb(0))

    @property
    def neurons(self) -> int:
        return sum(len(row) for row in self.rows)

    def lifted(self, read: Read, layer: int) -> Read:
        """The same number, read from a later layer: the identity carries it, constants and a lone factor need not."""
        while read.layer < layer:
            if not read.coefficients:
                return Read(layer, {}, read.constant)
            factor = next(iter(read.coefficients.values())) if len(read.coefficients) == 1 else arb(1)
            inner = {i: arb(1) for i in read.coefficients} if len(read.coefficients) == 1 else read.coefficients
            read = self.neuron(Read(read.layer, inner, arb(0)), IDENTITY).scaled(factor).shifted(read.constant)
        return read

    def total(self, reads: Sequence[Read]) -> Read:
        """The sum; what is read from early layers is added up before it is carried on."""
        result = Read(0, {}, arb(0))
        for layer in sorted({read.layer for read in reads}):
            terms = [self.lifted(result, layer), *(read for read in reads if read.layer == layer)]
            coefficients: dict[int, arb] = {}
            for read in terms:
                for i, c in read.coefficients.items():
                    coefficients[i] = coefficients[i] + c if i in coefficients else c
            kept = {i: c for i, c in coefficients.items() if not c.is_zero()}
            result = Read(layer, kept, sum((read.constant for read in terms), arb(0)))
        return result

    def ridge(self, ridge: Ridge, box: Sequence[tuple[float, float]] | None = None) -> Read:
        """phi(w . x + b), constant factors taken out of phi; with values beyond the ends that inputs of the box reach,
        if it has them at these."""
        inner = Read(0, {i: c for i, c in enumerate(ridge.direction) if not c.is_zero()}, ridge.shift)
        scale, function = split_constant(ridge.function)
        form = function.affine()
        if form is not None:
            return inner.scaled(form[0].get("x", arb(0)) * scale).shifted(form[1] * scale)
        if box is not None:
            function = kept_inside(function, *reached(inner.coefficients, inner.constant, dict(enumerate(box))))
        return self.neuron(inner, function).scaled(arb(scale))


def ridge_network(
    structures: Sequence[Structure], variables: Sequence[str], tokens: int | None, name: str, box: Box | None = None
) -> Mlp:
    """The network of the ridges of each output; its affine parts are one neuron that is the identity.

    Neurons with the same weights and function serve several outputs.

    box   where the variables stay: functions whose edge they reach get values beyond it
    """
    with precision(PRECISION):
        layered, ends = Layered(variables), None if box is None else [box[name] for name in variables]
        outputs = []
        for one in structures:
            reads = [layered.ridge(ridge, ends) for ridge in one.ridges]
            outputs.append(layered.total(reads) if reads else Read(0, {}, arb(0)))
        return layered.mlp(outputs, tokens, name)


def _affine(rows: Sequence[Read], inputs: int) -> Affine:
    """The reads as one affine map of floats, each within its error of the ball."""
    weight, weight_error = np.zeros((len(rows), inputs)), np.zeros((len(rows), inputs))
    bias, bias_error = np.zeros(len(rows)), np.zeros(len(rows))
    for number, read in enumerate(rows):
        for place, ball in read.coefficients.items():
            weight[number, place], weight_error[number, place] = _float(ball)
        bias[number], bias_error[number] = _float(read.constant)
    return Affine(weight, bias, weight_error, bias_error)


def _float(ball: arb) -> tuple[float, float]:
    """A float and by how much it may be off."""
    near = float(ball.mid())
    off = abs(ball - near)
    return near, 0.0 if off.is_zero() else float(np.nextafter(float(off.upper()), np.inf))


def _bits(ball: arb) -> tuple[object, ...]:
    return tuple(part.man_exp() for part in (ball.mid(), ball.rad()))
