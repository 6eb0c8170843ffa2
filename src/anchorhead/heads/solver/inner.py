"""The softmax of one term before it is gated or glued: a closed form for a line, a ladder for a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Arrays, Dtype
from anchorhead.heads.gauge import Caps
from anchorhead.heads.solver.pieces import Term
from anchorhead.heads.solver.placed import ladder_of
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.single import LEAST, Ladder, Solution
from anchorhead.heads.solver.straight import Weights, best_straight, straight


@dataclass(frozen=True, eq=False)
class Inner:
    """Weights for g(s) - bias as float64 arrays on t = s - origin, and the estimated error."""

    arrays: Arrays
    bias: Float[np.ndarray, " m"]
    error: float


@dataclass(eq=False)
class Inners:
    """The softmaxes of several terms, at every size; curves of one shape share their search."""

    terms: Sequence[Term]
    dtype: Dtype
    max_value: float
    max_slope: float
    origin: float
    pool: list[Ladder] = field(default_factory=list)  # the searches that may be shared
    effort: Effort = field(default_factory=lambda: Effort(np.inf))
    _ladders: dict[int, Ladder] = field(default_factory=dict)

    def sizes(self, anchors: int, fewest: Sequence[int]) -> list[int]:
        """So many anchors shared out: the fewest to all, then one by one to the term whose sketch errs most."""
        sizes = list(fewest)
        for _ in range(anchors - sum(sizes)):
            sizes[int(np.argmax([self.estimate(k, q).error for k, q in enumerate(sizes)]))] += 1
        return sizes

    @property
    def work(self) -> float:
        """What the curves take that were not searched for yet, at the least."""
        return LEAST * (sum(term.slope is None for term in self.terms) - len(self._ladders))

    def of(self, k: int, q: int) -> Inner:
        """Term k with q anchors; a constant term takes one."""
        term = self.terms[k]
        if term.slope is None:
            return _inner(self._ladder(k).solution(q))
        if not term.slope.any():
            return Inner((np.zeros(1), np.zeros(1), term.g(np.array([term.low]))), np.zeros(len(term.slope)), 0.0)
        return self._line(term, term.slope, q)

    def estimate(self, k: int, q: int) -> Inner:
        """The same before a curve goes to the sup norm."""
        return self.of(k, q) if self.terms[k].slope is not None else _inner(self._ladder(k).estimate(q))

    def line(self, k: int, q: int, h: float) -> Inner:
        """Straight term k with a slope step h of one's own (on the term scaled to [-1, 1])."""
        term = self.terms[k]
        if term.slope is None:
            raise AnchorheadError(f"term {k} is a curve: only a straight term is a line")
        return self._scaled(term, term.slope, straight(q, h), 0.0)

    def _line(self, term: Term, slope: np.ndarray, q: int) -> Inner:
        rise = float(np.abs(slope).max()) * (term.high - term.low) / 2
        weights, error = best_straight(q, self.dtype, term.gates, self.max_value / rise)
        return self._scaled(term, slope, weights, error * rise)

    def _scaled(self, term: Term, slope: np.ndarray, weights: Weights, error: float) -> Inner:
        half, mid = (term.high - term.low) / 2, (term.high + term.low) / 2
        slopes, offsets, values = weights
        slopes = slopes / half
        middle = term.g(np.array([mid]))[0]
        arrays = (slopes, offsets - slopes * (mid - self.origin), np.outer(values, slope * half) + middle)
        return Inner(arrays, np.zeros(len(slope)), error)

    def _ladder(self, k: int) -> Ladder:
        if k not in self._ladders:
            term = self.terms[k]
            problem = Problem.of(term.g, (), term.low, term.high)
            caps = Caps(self.max_value / problem.scale, self.max_slope * problem.half)
            alike = next((ladder for ladder in self.pool if ladder.is_like(problem)), None)
            self._ladders[k] = ladder_of(problem, self.dtype, caps, origin=self.origin, alike=alike, effort=self.effort)
            self.pool += [self._ladders[k]] if alike is None else []
        return self._ladders[k]


def _inner(found: Solution) -> Inner:
    return Inner(found.atom.parts[0].astype(np.float64), found.atom.bias.astype(np.float64), found.total)
