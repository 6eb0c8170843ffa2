"""Expressions as feed-forward networks: functions of one linear combination each, layer by layer.

    a + b, c a      linear maps              f(a)            a neuron of the next layer
    a b             ((a + b)^2 - (a - b)^2)/4                 a / b       a (1/b)
    max(a, b)       b + relu(a - b)          min(a, b)       b - relu(b - a),    of many in a tournament

What a later layer reads is carried by neurons that are the identity. All of this is exact: weights that are no floats
are kept as balls, and as floats with their errors in the network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb

from anchorhead.targets import build
from anchorhead.targets.expression import Expression
from anchorhead.targets.mlp import IDENTITY, Affine, Hidden, Mlp
from anchorhead.targets.ridges import Ridge, X, ridge_of, split_constant

RELU, SQUARE, RECIPROCAL = (build.make(op, (X,)) for op in ("relu", "square", "reciprocal"))
MOST_NEURONS = 2_000
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
        self._compiled: dict[Expression, Read | None] = {}

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

    def ridge(self, ridge: Ridge) -> Read:
        """phi(w . x + b), constant factors taken out of phi."""
        inner = Read(0, {i: c for i, c in enumerate(ridge.direction) if not c.is_zero()}, ridge.shift)
        scale, function = split_constant(ridge.function)
        form = function.affine()
        if form is not None:
            return inner.scaled(form[0].get("x", arb(0)) * scale).shifted(form[1] * scale)
        return self.neuron(inner, function).scaled(arb(scale))

    def compiled(self, node: Expression) -> Read | None:
        """The expression as something to read; None where a part of it is no composition that is known here."""
        if node not in self._compiled:
            self._compiled[node] = self._compile(node) if self.neurons <= MOST_NEURONS else None
        return self._compiled[node]

    def _compile(self, node: Expression) -> Read | None:
        form = node.affine()
        if form is not None:
            return Read(0, {self.variables.index(name): slope for name, slope in form[0].items()}, form[1])
        ridge = ridge_of(node, self.variables)
        if ridge is not None and node.op not in ("add", "max", "min"):
            return self.ridge(ridge)
        args = [self.compiled(arg) for arg in node.args]
        reads = [arg for arg in args if arg is not None]
        if len(reads) < len(args):
            return None
        varying = [place for place, arg in enumerate(node.args) if arg.variables]
        match node.op:
            case "add":
                return self.total(reads)
            case "neg":
                return reads[0].scaled(arb(-1))
            case "mul":
                return self._pairwise(reads, self.product)
            case "div":
                return self._quotient(*reads)
            case "max":
                return self._pairwise(reads, self._larger)
            case "min":
                smaller = self._pairwise([read.scaled(arb(-1)) for read in reads], self._larger)
                return smaller.scaled(arb(-1))
            case _ if len(varying) == 1:
                inside = tuple(X if place == varying[0] else arg for place, arg in enumerate(node.args))
                return self.neuron(reads[varying[0]], build.make(node.op, inside, node.data))
        return None

    def _pairwise(self, reads: list[Read], join: Callable[[Read, Read], Read]) -> Read:
        """All of them in a tournament, those of early layers first."""
        while len(reads) > 1:
            reads = sorted(reads, key=lambda read: read.layer)
            pairs = [join(*reads[i : i + 2]) for i in range(0, len(reads) - 1, 2)]
            reads = pairs + reads[len(reads) - len(reads) % 2 :]
        return reads[0]

    def product(self, a: Read, b: Read) -> Read:
        for one, other in ((a, b), (b, a)):
            if not one.coefficients:
                return other.scaled(one.constant)
        if a is b:
            return self.neuron(a, SQUARE)
        plus, minus = (self.neuron(self.total([a, b.scaled(arb(sign))]), SQUARE) for sign in (1, -1))
        return self.total([plus, minus.scaled(arb(-1))]).scaled(arb(1) / 4)

    def _quotient(self, a: Read, b: Read) -> Read:
        return self.product(a, self.neuron(b, RECIPROCAL) if b.coefficients else Read(0, {}, 1 / b.constant))

    def _larger(self, a: Read, b: Read) -> Read:
        return self.total([b, self.neuron(self.total([a, b.scaled(arb(-1))]), RELU)])


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
