"""The ways to build a head for one target, side by side: pieces summed, pieces glued, one free softmax."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anchorhead.effort import Effort
from anchorhead.heads.atom import Dtype
from anchorhead.heads.gauge import Caps
from anchorhead.heads.solver.glued import Glue
from anchorhead.heads.solver.inner import Inners
from anchorhead.heads.solver.pieces import split, whole_pieces
from anchorhead.heads.solver.placed import Placed, ladder_of
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.single import Ladder, Solution, origins_of
from anchorhead.heads.solver.summed import Sums
from anchorhead.progress import Progress, Status

Construction = (
    Sums | Glue | Ladder
)  # each: fewest and most anchors, patience; floor, outlook, sketch, solution, work for so many

_SURPRISE = 0.08  # finishing a sketch gains a third as a rule, and was never seen to gain more than this factor
_BELOW = 1 - 1e-6  # of the caps, so that rounding to the dtype does not exceed them
_GAIN = 0.05  # what a rung has to gain, or patience runs out
_LEAP, _OUT_OF_REACH = 0.3, 1  # the gain and the patience once rounding keeps the aim out of reach


@dataclass(eq=False)
class Search:
    """The ways to build a head for one problem, and how far each of them goes."""

    problem: Problem
    dtype: Dtype
    max_value: float = np.inf
    max_slope: float = np.inf
    progress: Progress = lambda status: None
    aim: float | None = None  # the error asked for, if one was
    effort: Effort = field(default_factory=lambda: Effort(np.inf))  # once it is over, climbs end
    sketched: list[tuple[float, int, Construction]] = field(
        default_factory=list
    )  # error, anchors and way of every climb
    _pool: list[Ladder] = field(default_factory=list)

    @cached_property
    def ways(self) -> list[Construction]:
        """The quick ones first: those that follow the kinks."""
        problem, origins = self.problem, origins_of(self.problem)
        if not problem.kinks or problem.scale == 0:
            return [self.ladder]
        wide, narrow = split(problem, extend=True), split(problem, extend=False)
        splits = [wide] if narrow.same_as(wide) else [wide, narrow]
        sums = [Sums(problem, terms, self._inners(terms.terms, origin)) for origin in origins for terms in splits]
        glued = [Glue(problem, self._inners(whole_pieces(problem), origin), self.aim or 0.0) for origin in origins]
        return [*sums, *glued, self.ladder]

    @cached_property
    def ladder(self) -> Ladder:
        return ladder_of(self.problem, self.dtype, self._caps, aim=self.aim or 0.0, effort=self.effort)

    @cached_property
    def placed(self) -> Placed:
        """What is left to try where nothing else came to the aim."""
        return Placed(self.problem, self.dtype, self._caps, aim=self.aim or 0.0, effort=self.effort)

    @property
    def _caps(self) -> Caps:
        scale = self.problem.scale or 1.0
        return Caps(_BELOW * self.max_value / scale, _BELOW * self.max_slope * self.problem.half)

    def climb(self, way: Construction, top: int) -> Iterator[Solution]:
        """Ever better solutions of one way, with ever more anchors, until nothing is gained or the aim is
        reached.

        A rung is not finished if its sketch cannot reach the aim or, without an aim, beat the rungs below. Where
        rounding rules out the aim, the climb goes on while it gains much, to tell what can be had instead.
        What comes out up to some number of anchors does not depend on `top`. A rung that the effort does not suffice
        for ends all climbs.
        """
        aim, best, last, since = self.aim, np.inf, np.inf, 0
        for anchors in way.rungs(top) if isinstance(way, Placed) else range(way.fewest, min(top, way.most) + 1):
            if self.effort.over or (self.sketched and way.work(anchors) > self.effort.left):
                self.effort.spend(np.inf)
                return
            error = way.outlook(anchors)
            self.sketched.append((error, anchors, way))
            if _SURPRISE * error < (best if aim is None else aim):
                solution = way.solution(anchors)
                if self.allowed(solution):
                    error = solution.total
                    if error < best:
                        best = error
                        yield solution
            hopeless = aim is not None and way.floor(anchors, aim) > aim
            gain, patience = (_LEAP, _OUT_OF_REACH) if hopeless else (_GAIN, way.patience)
            since = 0 if error < (1 - gain) * last else since + 1
            last = error if since == 0 else last
            self.progress(Status("solving for a head", anchors, min(last, best)))
            if since > patience or (aim is not None and best <= aim):
                return

    def allowed(self, solution: Solution) -> bool:
        """Whether the stored weights keep to the caps."""
        atom = solution.atom
        return bool(
            atom.max_value <= self.max_value and atom.max_slope <= self.max_slope and np.isfinite(solution.total)
        )

    def _inners(self, terms: tuple, origin: float) -> Inners:
        caps = _BELOW * self.max_value, _BELOW * self.max_slope
        return Inners(terms, self.dtype, *caps, origin, self._pool, self.effort)
