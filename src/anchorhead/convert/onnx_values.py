"""Values on the way through an ONNX graph: an affine map, and on it a function of one variable that is still growing.

A value is outer(core(inner(z))), entry by entry, with z an affine map of the sources, inner and outer lines a x + b and
core an expression in x. Functions that a file spells out in several nodes (x * sigmoid(x), or gelu by erf) so come
together again: two values on the same z combine to one expression. Where a linear map follows, the value becomes a
source: a layer of neurons.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from jaxtyping import Int

from anchorhead.convert.onnx_maps import Map, Work, added, picking, product, scaled, shifted, stacked
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions import build
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.underflow import LEAST
from anchorhead.language.targets.mlp import IDENTITY

MAX_SIZE = 1_000_000
"""How many entries a value may have."""
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Line:
    """x -> slope x + shift, exactly; both are floats, or quotients of two floats."""

    slope: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)

    def then(self, after: Line) -> Line | None:
        """after(self(x)), None where its numbers take too many digits."""
        line = Line(after.slope * self.slope, after.slope * self.shift + after.shift)
        return line if build.fraction(line.slope) and build.fraction(line.shift) else None

    def of(self, x: Expression) -> Expression:
        slope, shift = build.fraction(self.slope), build.fraction(self.shift)
        if slope is None or shift is None:
            raise AnchorheadError("a constant of the graph has too many digits")
        scaled = x if self.slope == 1 else build.mul(slope, x)
        return scaled if not self.shift else build.add(scaled, shift)


SAME = Line()


@dataclass(frozen=True, eq=False)
class Source:
    """A layer of neurons: functions of one variable, each of an entry of an affine map of earlier sources.

    The input is the source of depth 0, without a map.
    """

    size: int
    depth: int
    affine: Map | None = None
    activations: tuple[Expression, ...] = ()
    which: Int[np.ndarray, " neurons"] | None = None


@dataclass(frozen=True, eq=False)
class Value:
    """An array of this shape, whose entries are outer(core(inner(z_r))), z = affine."""

    shape: Shape
    affine: Map
    inner: Line = SAME
    core: Expression = IDENTITY
    outer: Line = SAME

    @property
    def expression(self) -> Expression:
        """What becomes of an entry of z."""
        inner = self.inner.of(IDENTITY)
        core = build.rebuild(self.core, lambda node: inner if node is IDENTITY else None)
        return build.check_size(self.outer.of(core))


@dataclass(eq=False)
class Tape:
    """The sources so far, and how values are made from values."""

    sources: list[Source] = field(default_factory=list)
    work: Work = field(default_factory=Work)
    made: dict[tuple[int, Line, Expression], tuple[Map, int]] = field(default_factory=dict)

    def input(self, shape: Shape) -> Value:
        size = checked_size(shape)
        self.sources.append(Source(size, 0))
        return Value(shape, Map.identity(0, size))

    def constant(self, array: np.ndarray) -> Value:
        """A constant among values."""
        checked_size(array.shape)
        return Value(array.shape, Map({}, array.astype(np.float64).ravel()))

    def affine(self, value: Value) -> Map:
        """The value as an affine map of sources; a core becomes a source of its own, once."""
        if value.core is IDENTITY:
            return self._on_line(value.affine, value.outer)
        key = (id(value.affine), value.inner, value.core)
        if key not in self.made:
            inside = self._on_line(value.affine, value.inner)
            self.made[key] = (value.affine, self.source(inside, (value.core,), np.zeros(inside.size, int)))
        number = self.made[key][1]
        return self._on_line(Map.identity(number, self.sources[number].size), value.outer)

    def source(self, inside: Map, activations: tuple[Expression, ...], which: Int[np.ndarray, " neurons"]) -> int:
        depth = 1 + max((self.sources[source].depth for source in inside.terms), default=0)
        self.sources.append(Source(inside.size, depth, inside, activations, which))
        return len(self.sources) - 1

    def _on_line(self, inner: Map, line: Line) -> Map:
        if line == SAME:
            return inner
        (slope, slope_error), (shift, shift_error) = (_near(one, inner.size) for one in (line.slope, line.shift))
        return shifted(scaled(inner, slope, slope_error), shift, shift_error)

    def lined(self, value: Value, line: Line) -> Value:
        """slope value + shift."""
        outer = value.outer.then(line)
        if outer is not None:
            return replace(value, outer=outer)
        if value.core is IDENTITY:
            return Value(value.shape, self.affine(value), outer=line)
        return replace(value, core=build.check_size(value.outer.of(value.core)), outer=line)

    def applied(self, value: Value, function: Callable[[Expression], Expression]) -> Value:
        """function(value), entry by entry."""
        if value.core is IDENTITY:
            return Value(value.shape, value.affine, value.outer, build.check_size(function(IDENTITY)))
        return replace(value, core=build.check_size(function(value.outer.of(value.core))), outer=SAME)

    def combined(self, one: Value, two: Value, function: Callable[..., Expression]) -> Value | None:
        """function(one, two), entry by entry; None where the two are not functions of the same entries."""
        if one.affine is not two.affine or one.shape != two.shape:
            return None
        if one.inner == two.inner and IDENTITY not in (one.core, two.core):
            cores = (one.outer.of(one.core), two.outer.of(two.core))
            return Value(one.shape, one.affine, one.inner, build.check_size(function(*cores)))
        core = build.check_size(function(one.expression, two.expression))
        return Value(one.shape, one.affine, SAME, core)

    def picked(self, value: Value, places: np.ndarray) -> Value:
        """The value's entries at places; -1 makes 0."""
        size = checked_size(places.shape)
        count = value.affine.size
        if size == count and np.array_equal(places.ravel(), np.arange(size)):
            return replace(value, shape=places.shape)
        if (places < 0).any() or (value.core is not IDENTITY and size > count):
            value = Value(value.shape, self.affine(value))
        return replace(value, shape=places.shape, affine=product(self.work, picking(places, count), value.affine))

    def joined(self, values: list[Value], shape: Shape) -> Value:
        """The entries of several values, one after the other."""
        return Value(shape, stacked(self.affine(value) for value in values))

    def times(self, value: Value, matrix: object, shape: Shape) -> Value:
        """matrix @ value, both flat."""
        checked_size(shape)
        return Value(shape, product(self.work, matrix, self.affine(value)))  # type: ignore[arg-type]

    def plus(self, one: Value, two: Value) -> Value:
        return Value(one.shape, added(self.affine(one), self.affine(two)))

    def rows(self, value: Value, factor: np.ndarray, shift: np.ndarray, errors: tuple[np.ndarray, np.ndarray]) -> Value:
        """factor value + shift, entry by entry, both known within errors."""
        by = scaled(self.affine(value), factor.ravel(), errors[0].ravel())
        return Value(value.shape, shifted(by, shift.ravel(), errors[1].ravel()))


def _near(value: Fraction, size: int) -> tuple[np.ndarray, np.ndarray]:
    """So many copies of the nearest float, and of the distance to it."""
    near = float(value)
    away = abs(Fraction(near) - value)
    return np.full(size, near), np.full(size, float(away) * (1 + 1e-10) + LEAST if away else 0.0)


def checked_size(shape: Shape) -> int:
    size = math.prod(int(side) for side in shape)
    if not 1 <= size <= MAX_SIZE or any(side < 1 for side in shape):
        raise AnchorheadError(f"a value of shape {shape} has {size:,} entries: 1 to {MAX_SIZE:,} are allowed")
    return size
