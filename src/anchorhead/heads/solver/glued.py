"""A target with kinks as one softmax: the anchors of its pieces side by side, with a step of A in slope at
every kink.

At a kink k the log-sum-exp of both groups agrees, so beyond it the next group takes over within 1/A. No
gates are needed (abs is 2 + 2 anchors, hardtanh 1 + 2 + 1), but only one group, the base, can have small
logits, and the others pay for it: rounding grows like u A |v|. So A and the slope steps h of straight
pieces are searched for together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from anchorhead.heads.atom import Arrays, Atom, Part
from anchorhead.heads.rounding_estimate import least_rounding, rounding
from anchorhead.heads.solver.gates import read_at, steepness
from anchorhead.heads.solver.inner import Inner, Inners
from anchorhead.heads.solver.measure import estimate
from anchorhead.heads.solver.pieces import Term
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.single import Solution

_FAR = 20.0  # a piece that errs by more than this factor more than the aim is no use: no sketch is off by so much
_PER_TRIALS = 800  # the work of all trials for one anchor and piece: about what was measured
_SIDES = np.array([0.0, 0.4, 0.8, 1.2, 1.6, 2.4, 4.0, 8.0])  # where the error of a kink is looked for, in units of 1/A


@dataclass(eq=False)
class Glue:
    """Single softmaxes glued from the pieces of a problem, at every number of anchors."""

    problem: Problem
    inners: Inners
    aim: float = 0.0  # the error asked for: what cannot reach it is not glued
    _solutions: dict[int, Solution] = field(default_factory=dict)

    @property
    def fewest(self) -> int:
        """One anchor for a constant piece, two for any other."""
        return sum(self._least)

    @property
    def _least(self) -> list[int]:
        return [1 if _flat(piece) else 2 for piece in self.inners.terms]

    @property
    def most(self) -> int:
        return self.fewest + (4 * len(self.inners.terms) if len(self.problem.kinks) <= 6 else 1)

    @property
    def patience(self) -> int:
        return 4

    def estimate(self, anchors: int) -> Solution:
        """The solution: what glue costs does not show before."""
        return self.solution(anchors)

    def outlook(self, anchors: int) -> float:
        """The error of the sketch, or of its worst piece where that alone is far from the aim."""
        sizes = self.inners.sizes(anchors, self._least)
        worst = max(self.inners.estimate(k, q).error for k, q in enumerate(sizes))
        return worst if worst > _FAR * self.aim > 0 else self.estimate(anchors).total

    def floor(self, anchors: int, aim: float) -> float:
        """What rounding costs at least where the aim is reached."""
        return least_rounding(anchors, self.problem.scale - aim, self.inners.dtype)

    def work(self, anchors: int) -> float:
        """What gluing takes, at the least: a hundred trials, each seen at every piece and kink."""
        return self.inners.work + _PER_TRIALS * len(self.inners.terms) * anchors

    def solution(self, anchors: int) -> Solution:
        """The glued softmax with so many anchors, with the best A and h found."""
        if anchors not in self._solutions:
            self._solutions[anchors] = self._solved(anchors)
        return self._solutions[anchors]

    def _solved(self, anchors: int) -> Solution:
        self.inners.effort.spend(self.work(anchors) - self.inners.work)
        sizes, pieces = self.inners.sizes(anchors, self._least), self.inners.terms
        lines = [k for k, piece in enumerate(pieces) if piece.slope is not None and not _flat(piece)]
        fixed = {k: self.inners.of(k, q) for k, q in enumerate(sizes) if k not in lines}
        bases = sorted((k for k in range(len(sizes)) if not _flat(pieces[k])), key=self._rise)[-2:]

        def atom(x: np.ndarray, base: int) -> Atom:
            groups = dict(fixed)
            for k in lines:
                groups[k] = self.inners.line(k, sizes[k], float(np.exp(np.clip(x[1], -16, 2))))
            return self._assembled([groups[k] for k in range(len(sizes))], base, float(np.clip(x[0], -33, 0)))

        def total(x: np.ndarray, base: int) -> float:
            found, s = atom(x, base), self._places(float(np.clip(x[0], -33, 0)))
            excess = max(1.0, found.max_value / self.inners.max_value, found.max_slope / self.inners.max_slope)
            gap = np.abs(self.problem.at(s) - found.exact(s)).astype(np.float64)
            return float(np.log((gap + rounding(found, s)).max() * excess**8))

        tries = [np.array([a, h]) for a in np.linspace(-23, -2, 8) for h in ((-8, -5, -2) if lines else (0,))]
        start, base = min(((x, base) for x in tries for base in bases), key=lambda pair: total(*pair))
        simplex = start + np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.0]])
        options = {"maxfev": 60, "initial_simplex": simplex, "xatol": 0.02, "fatol": 0.01}
        found = atom(minimize(total, start, (base,), method="Nelder-Mead", options=options).x, base)
        return Solution(found, estimate(found, self.problem))

    @cached_property
    def _even(self) -> Float[np.ndarray, " n"]:
        nodes = -np.cos(np.linspace(0, np.pi, 17))
        return np.concatenate(
            [(piece.low + piece.high + (piece.high - piece.low) * nodes) / 2 for piece in self.inners.terms]
        )

    def _places(self, log_allowed: float) -> Float[np.ndarray, " n"]:
        """Nodes on every piece, and both sides of every kink on the scale of its A."""
        s = [self._even]
        for kink in self.problem.kinks:
            away = _SIDES / self._steep(kink, log_allowed)
            s += [kink + away, kink - away]
        return np.clip(np.concatenate(s), self.problem.low, self.problem.high)

    def _assembled(self, groups: list[Inner], base: int, log_allowed: float) -> Atom:
        placed: dict[int, Arrays] = {base: _absolute(groups[base])}
        for k in range(base + 1, len(groups)):
            kink = self.problem.kinks[k - 1]
            placed[k] = self._beside(placed[k - 1], _absolute(groups[k]), kink, self._steep(kink, log_allowed))
        for k in range(base - 1, -1, -1):
            kink = self.problem.kinks[k]
            placed[k] = self._beside(placed[k + 1], _absolute(groups[k]), kink, -self._steep(kink, log_allowed))
        slopes, offsets, values = (np.concatenate([placed[k][i] for k in range(len(groups))]) for i in range(3))
        bias = (values.max(axis=0) + values.min(axis=0)) / 2
        part = Part.of(slopes, offsets, values - bias, self.inners.dtype)
        return Atom.of((part,), self.inners.origin, bias, self.inners.dtype)

    def _beside(self, near: Arrays, far: Arrays, kink: float, steep: float) -> Arrays:
        """The group `far` moved so that it takes over from `near` at the kink, with a step in slope."""
        t = kink - self.inners.origin
        (level, slope, _), (own_level, own_slope, _) = read_at(near, t), read_at(far, t)
        more = slope + steep - own_slope
        return far[0] + more, far[1] + level - own_level - more * t, far[2]

    def _steep(self, kink: float, log_allowed: float) -> float:
        """The step in slope at a kink for an error of so much of the target's range."""
        f, width = self.problem.at, min(kink - self.problem.low, self.problem.high - kink)

        def turn(d: np.ndarray) -> np.ndarray:
            """How far both sides lie apart, continued beyond the kink."""
            return np.abs(f(kink + d) - 2 * f(np.full(len(d), kink)) + f(kink - d)).max(axis=1)

        return steepness(turn, width, self.problem.scale * float(np.exp(log_allowed)))

    def _rise(self, k: int) -> float:
        """How much the target varies on piece k."""
        y = self.problem.at(np.linspace(self.inners.terms[k].low, self.inners.terms[k].high, 17))
        return float((y.max(axis=0) - y.min(axis=0)).max())


def _flat(piece: Term) -> bool:
    return piece.slope is not None and not piece.slope.any()


def _absolute(inner: Inner) -> Arrays:
    slopes, offsets, values = inner.arrays
    return slopes, offsets, values + inner.bias
