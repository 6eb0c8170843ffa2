"""What is proven of a head over a grid, however it was proven, and the claim that an attention has to meet with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb
from jaxtyping import Bool, Float

from anchorhead.certificate import Worst
from anchorhead.conditions import Condition
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.statement import Statement
from anchorhead.terms import Term, added_up


@dataclass(frozen=True, eq=False)
class ProvenGrid:
    """A grid, and bounds for every x of the box from low to high, in every output.

    exact       |r(x) - f(x)|, in exact arithmetic, with the weights as stored
    terms       what it adds up
    rounding    what the dtype adds to that until the bias is added
    found, at   the largest difference in exact arithmetic that was seen, if any was, and where; else where the bound is
                largest
    conditions  what it is proven for beside the box
    """

    atom: GridAtom
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    terms: tuple[Term, ...]
    rounding: float
    method: str
    found: float | None = None
    at: tuple[float, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def ends(self) -> tuple[list[float], list[float]]:
        return self.low.tolist(), self.high.tolist()

    @property
    def exact(self) -> float:
        return added_up(self.terms) * UP

    @property
    def total(self) -> float:
        return (self.exact + self.rounding) * UP

    def statement(self, target: str, rounding: float) -> Statement:
        """With the rounding of the network that the grid is part of."""
        terms = (*self.terms, Term("rounding", rounding, "softmax"))
        worst = None if self.found is None else Worst(self.found, self.at)
        return Statement(added_up(terms) * UP, terms, self.method, target, self.conditions, worst=worst)


@dataclass(frozen=True, eq=False)
class GridClaim:
    """Functions f_n of the program, which a grid is to compute.

    grid     the grid, and what is proven of it
    places   for each axis the source that it is along
    tokens   for each function the token that reads it
    depends  (functions, axes) on which variables each depends, as far as is known
    ranges   between what the exact functions lie
    step     which step of the program applies the functions, each a feature
    """

    grid: ProvenGrid
    places: tuple[int, ...]
    tokens: tuple[int, ...]
    depends: Bool[np.ndarray, "functions axes"]
    ranges: Sources
    step: int | None = None

    @classmethod
    def of(
        cls,
        grid: ProvenGrid,
        places: Sequence[int],
        tokens: Sequence[int],
        variables: Sequence[str] = (),
        expressions: Sequence[Expression] = (),
        step: int | None = None,
    ) -> GridClaim:
        """The claim for functions that are known as expressions in the variables of the axes, or not at all.

        A mean of values lies between them, and a function no farther from it than the grid's error.
        """
        values = grid.atom.values.astype(np.float64).reshape(-1, grid.atom.outputs)
        bias, off = grid.atom.bias.astype(np.float64), grid.total * UP
        low, high = values.min(axis=0) + bias - off, values.max(axis=0) + bias + off
        slack = 1e-12 * (np.abs(values).max(axis=0) + np.abs(bias))
        low, high = low - slack, high + slack
        depends = np.ones((len(tokens), len(places)), bool)
        with precision(64):
            box = {name: arb(a).union(arb(b)) for name, a, b in zip(variables, *grid.ends, strict=False)}
            for n, expression in enumerate(expressions):
                depends[n] = [name in expression.variables for name in variables]
                ball = expression.ball(box)
                if ball.is_finite():
                    low[n], high[n] = max(low[n], -upper(-ball)), min(high[n], upper(ball))
        return cls(grid, tuple(places), tuple(tokens), depends, Sources(low, high), step)

    def after(self, sources: Sources) -> Sources:
        """All quantities that there were, and the functions."""
        return sources.joined(self.ranges)

    def covers(self, sources: Sources) -> bool:
        """Whether the grid is proven for all that the sources can be."""
        low, high = (end[list(self.places)] for end in (sources.low, sources.high))
        return bool((low >= self.grid.low).all() and (high <= self.grid.high).all())
