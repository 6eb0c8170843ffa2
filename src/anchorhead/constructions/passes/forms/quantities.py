"""Straight-line programs of scalar quantities: each is a function of one affine combination of earlier ones.

    q_j = phi_j(constant_j + sum_{i < j} c_ji q_i),        the first ones are the inputs.

Coefficients are balls, so that 1/3 and pi mean what they say. A quantity that is written twice is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from flint import arb

from anchorhead.errors import NotDefined
from anchorhead.language.analysis.edges import kept_inside, reached
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.targets.mlp import IDENTITY
from anchorhead.proof.enclosures.ranges import range_of

Ends = tuple[float, float]
CELLS = (64, 1024)
"""On so many cells a function is enclosed, as the proof does, so that what is defined here is there: a few do for most,
and the proof takes as many as the most."""
LARGEST = 1e300
"""Products of what is no larger than this with numbers of a few digits do not overflow."""


@dataclass(frozen=True, eq=False)
class Combination:
    """constant + sum_i coefficients[i] q_i, without coefficients that are 0."""

    coefficients: Mapping[int, arb] = field(default_factory=dict)
    constant: arb = field(default_factory=lambda: arb(0))

    def __mul__(self, factor: arb) -> Combination:
        if factor.is_zero():
            return Combination()
        return Combination({i: c * factor for i, c in self.coefficients.items()}, self.constant * factor)

    def __add__(self, other: Combination | arb) -> Combination:
        if isinstance(other, arb):
            return Combination(self.coefficients, self.constant + other)
        summed = dict(self.coefficients)
        for i, c in other.coefficients.items():
            summed[i] = summed[i] + c if i in summed else c
        kept = {i: c for i, c in summed.items() if not c.is_zero()}
        return Combination(kept, self.constant + other.constant)

    @property
    def key(self) -> tuple[object, ...]:
        """The same for the same numbers."""
        terms = sorted((i, *bits(c)) for i, c in self.coefficients.items())
        return (*terms, *bits(self.constant))


def total(combinations: Iterable[Combination]) -> Combination:
    return sum(combinations, Combination())


def bits(ball: arb) -> tuple[object, ...]:
    """What a ball is, to be compared; NotDefined where it is no number."""
    if not ball.is_finite():
        raise NotDefined("a constant part of the function is no finite number: write the function in another way")
    return tuple(part.man_exp() for part in (ball.mid(), ball.rad()))


@dataclass(frozen=True, eq=False)
class Step:
    """function(of), a function of x."""

    of: Combination
    function: Expression


class Quantities:
    """A program that grows: its inputs, its steps, and the ends between which each of them stays."""

    def __init__(self, variables: Sequence[str], low: Sequence[float], high: Sequence[float]) -> None:
        self.variables = tuple(variables)
        self.steps: list[Step] = []
        self.ranges: list[Ends] = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
        self._depths = [0] * len(self.variables)
        self._known: dict[tuple[object, ...], int] = {}

    def input(self, name: str) -> Combination:
        return Combination({self.variables.index(name): arb(1)})

    def apply(self, function: Expression, of: Combination) -> Combination:
        """function(of) as a quantity of its own; of a constant, the constant."""
        if function is IDENTITY:
            return of
        if not of.coefficients:
            return Combination({}, function.ball(dict.fromkeys(function.variables or ("x",), of.constant)))
        function = kept_inside(function, *self.range(of))
        place = self._known.setdefault((*of.key, function), len(self.ranges))
        if place == len(self.ranges):
            ends = _range_of(function, *self.range(of))
            self.steps.append(Step(of, function))
            self.ranges.append(ends)
            self._depths.append(self.depth(of) + 1)
        return Combination({place: arb(1)})

    def depth(self, of: Combination) -> int:
        """How many functions stand between the inputs and the combination."""
        return max((self._depths[i] for i in of.coefficients), default=0)

    def range(self, of: Combination) -> Ends:
        """Ends that the combination does not leave, its quantities taken as independent of one another; NotDefined
        beyond float64."""
        low, high = reached(of.coefficients, of.constant, dict(enumerate(self.ranges)))
        if not max(abs(low), abs(high)) <= LARGEST:
            raise NotDefined(
                f"a part of the function may be larger than {LARGEST:g}, as far as is known of its parts: choose a "
                "smaller box, or write the function in another way"
            )
        return low, high


def _least(function: Expression) -> float:
    """What a function is never below, by its name: balls around 0 say a little less."""
    even = function.op == "integer_power" and int(function.data or 0) % 2 == 0
    return 0.0 if even or function.op in ("square", "abs", "exp", "relu", "sqrt") else -np.inf


def _range_of(function: Expression, low: float, high: float) -> Ends:
    """Ends that the function does not leave on [low, high]; NotDefined where it has none."""
    for cells in CELLS:
        least, most = range_of(function, np.array([low]), np.array([high]), cells)
        if np.isfinite([least[0], most[0]]).all():
            return max(float(least[0]), _least(function)), float(most[0])
    raise NotDefined(
        f"a part of the function, {function}, is needed for x in [{low:.6g}, {high:.6g}], the bounds on its argument, "
        "and has no bounds there: choose a smaller box, or write the function in another way"
    )
