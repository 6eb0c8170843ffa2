"""A target with kinks as a sum of softmaxes, each in its own gauge: one for every term of its split.

A straight term is the closed form, a curved one a ladder on its own interval, and gates confine them. Anchors go, one by
one, to the term with the largest error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anchorhead.heads.atom import Atom, Dtype, Part
from anchorhead.heads.gates import Arrays, gated
from anchorhead.heads.gauge import Caps
from anchorhead.heads.measure import estimate
from anchorhead.heads.pieces import Split, Term, split
from anchorhead.heads.problem import Problem
from anchorhead.heads.single import Ladder, Solution
from anchorhead.heads.straight import best_straight

_FEWEST = 2  # anchors of a term beside its gates


@dataclass(eq=False)
class Sums:
    """Sums of softmaxes for one problem, at every number of anchors."""

    problem: Problem
    dtype: Dtype
    max_value: float
    max_slope: float
    origin: float
    _ladders: dict[int, Ladder] = field(default_factory=dict)
    _solutions: dict[tuple[int, ...], Solution] = field(default_factory=dict)
    _straight: dict[tuple[int, int, float], tuple[tuple, float]] = field(default_factory=dict)

    @cached_property
    def split(self) -> Split:
        return split(self.problem)

    @property
    def fewest(self) -> int:
        return sum(_FEWEST + term.gates for term in self.split.terms)

    def solution(self, anchors: int) -> Solution | None:
        """The sum with so many anchors, or None if they are too few."""
        if anchors < self.fewest or not self.split.terms:
            return None
        sizes = [_FEWEST] * len(self.split.terms)
        for _ in range(anchors - self.fewest):
            errors = [self._inner(k, q)[2] for k, q in enumerate(sizes)]
            sizes[int(np.argmax(errors))] += 1
        key = tuple(sizes)
        if key not in self._solutions:
            self._solutions[key] = self._assembled(sizes)
        return self._solutions[key]

    def _assembled(self, sizes: list[int]) -> Solution:
        inner = [self._inner(k, q) for k, q in enumerate(sizes)]
        allowed = sum(error for _, _, error in inner)
        bias = self.split.constant + sum(bias for _, bias, _ in inner)
        parts = [
            Part.of(*gated(arrays, term, self.origin, allowed, self.max_slope), self.dtype)
            for (arrays, _, _), term in zip(inner, self.split.terms, strict=True)
        ]
        bias = np.where(np.abs(bias) < 1e-13 * self.problem.scale, 0.0, bias)
        atom = Atom.of(parts, self.origin, bias, self.dtype)
        return Solution(atom, estimate(atom, self.problem))

    def _inner(self, k: int, q: int) -> tuple[Arrays, np.ndarray, float]:
        """(weights, bias, error) of term k with q anchors and no gates."""
        term = self.split.terms[k]
        return self._line(term, term.slope, q) if term.slope is not None else self._curve(k, term, q)

    def _line(self, term: Term, slope: np.ndarray, q: int) -> tuple[Arrays, np.ndarray, float]:
        half, mid = (term.high - term.low) / 2, (term.high + term.low) / 2
        rise = float(np.abs(slope).max()) * half
        key = (q, term.gates, self.max_value / rise)
        if key not in self._straight:
            self._straight[key] = best_straight(q, self.dtype, term.gates, self.max_value / rise)
        (slopes, offsets, values), error = self._straight[key]
        slopes = slopes / half
        middle = term.g(np.array([mid]))[0]
        arrays = (slopes, offsets - slopes * (mid - self.origin), np.outer(values, slope * half) + middle)
        return arrays, np.zeros(len(slope)), error * rise

    def _curve(self, k: int, term: Term, q: int) -> tuple[Arrays, np.ndarray, float]:
        if k not in self._ladders:
            problem = Problem.of(term.g, (), term.low, term.high)
            caps = Caps(self.max_value / problem.scale, self.max_slope * problem.half)
            self._ladders[k] = Ladder(problem, self.dtype, caps, origin=self.origin)
        best = self._ladders[k].solution(q)
        return best.atom.parts[0].astype(np.float64), best.atom.bias.astype(np.float64), best.total
