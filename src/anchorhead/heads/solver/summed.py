"""A target with kinks as a sum of softmaxes, confined by gates, each in its own gauge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.atom import Atom, Part
from anchorhead.heads.solver.gates import gated
from anchorhead.heads.solver.inner import Inner, Inners
from anchorhead.heads.solver.measure import estimate
from anchorhead.heads.solver.pieces import Split
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.single import Solution

_PER_WEIGHT = 0.17  # the work of one softmax weight at a point, and of its rounding: about what was measured


@dataclass(eq=False)
class Sums:
    """Sums of softmaxes for one split of a problem, at every number of anchors."""

    problem: Problem
    split: Split
    inners: Inners

    @property
    def fewest(self) -> int:
        """Two anchors a term, and its gates."""
        return sum(2 + term.gates for term in self.split.terms)

    @property
    def most(self) -> int:
        return self.fewest + 12 * len(self.split.terms)

    @property
    def patience(self) -> int:
        return 4 + len(self.split.terms)

    def estimate(self, anchors: int) -> Solution:
        """The sum of sketches with so many anchors."""
        return self._sum(anchors, self.inners.estimate)

    def outlook(self, anchors: int) -> float:
        """The error of the sketch."""
        return self.estimate(anchors).total

    def floor(self, anchors: int, aim: float) -> float:
        """Rounding in small parts may cost next to nothing."""
        return 0.0

    def work(self, anchors: int) -> float:
        """What a sum takes, at the least: to be measured at points all over, at kinks and at crossings."""
        points = 2_000 + 70 * len(self.problem.kinks) + 20 * anchors
        return self.inners.work + _PER_WEIGHT * points * anchors

    def solution(self, anchors: int) -> Solution:
        """The sum with so many anchors."""
        return self._sum(anchors, self.inners.of)

    def _sum(self, anchors: int, inner_of: Callable[[int, int], Inner]) -> Solution:
        gates = self.fewest - 2 * len(self.split.terms)
        sizes = self.inners.sizes(anchors - gates, [2] * len(self.split.terms))
        self.inners.effort.spend(self.work(anchors) - self.inners.work)
        inner = [inner_of(k, q) for k, q in enumerate(sizes)]
        allowed = sum(found.error for found in inner)
        dtype, origin, steepest = self.inners.dtype, self.inners.origin, self.inners.max_slope
        unit = arithmetic_of(dtype).unit
        parts = [
            Part.of(*gated(found.arrays, term, origin, allowed, steepest, unit), dtype)
            for found, term in zip(inner, self.split.terms, strict=True)
        ]
        bias = self.split.constant + sum(found.bias for found in inner)
        bias = np.where(np.abs(bias) < 1e-13 * self.problem.scale, 0.0, bias)
        atom = Atom.of(parts, origin, bias, dtype)
        return Solution(atom, estimate(atom, self.problem))
