"""Error against the number of anchors: the paper's uniform placement, solved heads, the best polynomial."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.decimals import round_up
from anchorhead.given import checked_count
from anchorhead.heads.atom import Atom, Dtype
from anchorhead.heads.solver.measure import estimate
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.single import Solution
from anchorhead.heads.solver.solve import improvements
from anchorhead.heads.tables.table import lookup
from anchorhead.heads.uniform import uniform
from anchorhead.lab.polynomial import best_polynomial
from anchorhead.language.targets import CallableTarget, ScalarTarget, target_of
from anchorhead.network.dtypes import dtype_name
from anchorhead.plotting import Frontier, FrontierRow
from anchorhead.progress import Progress, Status, progress_line
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.head import prove_head

MIN_ANCHORS, MAX_ANCHORS, LIMIT = 2, 16, 64
SHOWN = 8
"""So many anchors are shown even where fewer reach all that the dtype can."""

_POINTS = 2000  # on which polynomials are fitted, besides those that close in on kinks


def frontier(
    function: Any,
    on: tuple[float, float],
    dtype: Any = "float64",
    most: int = MAX_ANCHORS,
    max_value: float | None = None,
    max_slope: float | None = None,
    lipschitz: float | None = None,
    progress: Progress | bool | None = True,
) -> Frontier:
    """A row for each number of anchors from 2 to `most`, or to where more of them gain nothing in the dtype.

    The search of `ah.head(function, on, anchors=most)` is climbed once, or read from the table that ships with the
    package; of what it finds with p anchors, every head that may beat the best bound so far is proven. So more anchors
    never have a worse bound. For a callable without a Lipschitz constant the errors of heads are measured. The best
    polynomial is found by Remez's exchange on a few thousand points; with several functions, each has its own.
    """
    most = checked_count("most", most, MIN_ANCHORS, LIMIT)
    kind = dtype_name(dtype)
    with progress_line(progress, "solving") as tell:
        work = _Work(target_of(function, on, lipschitz), kind, tell)
        solved = work.solved(most, max_value, max_slope)
        first, last = max(MIN_ANCHORS, solved[0].atom.anchors), min(most, max(SHOWN, solved[-1].atom.anchors + 1))
        target = work.target
        return Frontier(
            name=target.name,
            low=target.low,
            high=target.high,
            dtype=kind,
            kind="measured" if work.opaque else "proven",
            resolution=float(np.finfo(kind).eps) / 2 * float(np.abs(work.samples).max()),
            rows=tuple(work.row(anchors, solved) for anchors in range(first, last + 1)),
        )


@dataclass(frozen=True, eq=False)
class _Bounded:
    atom: Atom
    bound: float


@dataclass(frozen=True, eq=False)
class _Work:
    """One target and dtype, and what the rows are made of."""

    target: ScalarTarget | CallableTarget
    dtype: Dtype
    tell: Progress

    @property
    def opaque(self) -> bool:
        return isinstance(self.target, CallableTarget) and self.target.lipschitz is None

    @cached_property
    def problem(self) -> Problem:
        return Problem.of(self.target.values, self.target.kinks, self.target.low, self.target.high)

    @cached_property
    def points(self) -> Float[np.ndarray, " n"]:
        return self.problem.points(_POINTS)

    @cached_property
    def samples(self) -> Float[np.ndarray, "n m"]:
        return self.problem.at(self.points)

    def solved(self, most: int, max_value: float | None, max_slope: float | None) -> list[_Bounded]:
        """Heads of ascending anchors, each with a better bound than those before."""
        known = self._shipped(most, max_value, max_slope)
        if known is not None:
            return known

        target, caps = self.target, (max_value, max_slope)
        found = improvements(
            target.values, target.kinks, target.low, target.high, most, self.dtype, *caps, progress=self.tell
        )
        best: list[_Bounded] = []
        for solution in sorted(found, key=_size):
            if best and solution.total >= best[-1].bound:
                continue
            again = _Bounded(solution.atom, self._bound(solution.atom))
            if not best or again.bound < best[-1].bound:
                best.append(again)
        return best

    def _shipped(self, most: int, max_value: float | None, max_slope: float | None) -> list[_Bounded] | None:
        """The same from the table that ships with the package, where it goes so far and nothing is capped."""
        if max_value is not None or max_slope is not None or not isinstance(self.target, ScalarTarget):
            return None
        low, high = self.target.low, self.target.high
        known = lookup(self.target.name, low, high, self.dtype, str(require_model(self.dtype)))
        if known is None or known.searched < most:
            return None
        return [_Bounded(entry.atom, entry.bound) for entry in known.heads if entry.atom.anchors <= most]

    def row(self, anchors: int, solved: list[_Bounded]) -> FrontierRow:
        """The solved head for so many anchors beside uniform ones and a polynomial."""
        best = [one for one in solved if one.atom.anchors <= anchors][-1]
        even = uniform(self.target.values, self.target.low, self.target.high, anchors, self.dtype, self.target.kinks)
        return FrontierRow(
            anchors=anchors,
            solved=best.bound,
            used=best.atom.anchors,
            parts=len(best.atom.parts),
            max_value=best.atom.max_value,
            max_slope=best.atom.max_slope,
            uniform=self._bound(even.atom),
            polynomial=self._polynomial(anchors),
        )

    def _bound(self, atom: Atom) -> float:
        if self.opaque:
            return round_up(estimate(atom, self.problem, count=5000).total)
        self.tell(Status("proving", atom.anchors))
        model = require_model(self.dtype)
        return round_up(prove_head(atom.parts, atom.origin, atom.bias, self.target, model).total)

    def _polynomial(self, coefficients: int) -> float:
        x = self.problem.normal(self.points)
        return max(best_polynomial(x, y, coefficients).error for y in self.samples.T)


def _size(solution: Solution) -> tuple[int, float]:
    return solution.atom.anchors, solution.total
