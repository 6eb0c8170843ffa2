"""The best single softmax: a ladder from p - 1 anchors to p.

On every rung, starts spread over all slopes compete with the last rung's solution, one of its anchors split
in two, by successive halving of a least-squares search. The winners in their best gauge, stored and
measured, are the sketch of the rung. Its solution goes to the sup norm as well, which costs as much as the
search and gains a third or so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anchorhead.effort import Effort
from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.atom import Atom, Dtype, Part
from anchorhead.heads.gauge import Caps, Gauged, gauged
from anchorhead.heads.rounding_estimate import least_rounding
from anchorhead.heads.solver.descent import STEEPEST, gauss_newton, lawson
from anchorhead.heads.solver.keys import Keys
from anchorhead.heads.solver.measure import Estimate, estimate
from anchorhead.heads.solver.minimax import sharpen
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.projection import Fit, Loss, Samples, even, fitted
from anchorhead.heads.solver.starts import splits, starts
from anchorhead.heads.solver.store import frame_of, stored

_RIDGE = 2.0  # in units of u: how much round-off holds the values down
_HOLD = 1e-4  # while searching, values are held down as if round-off were this part of the last rung's error
_HALVING = ((3, 20), (9, 50))  # keep one in so many, and take so many steps
_FAR = 1e3  # a rung that errs by more than this factor more than the aim is not searched to the end
_FEW = 4  # rungs up to this one are always searched to the end
# the work of a search: of any, and of it and its end for each sample and square of anchors; about what was measured
LEAST, _SEARCHED, _FINISHED = 150_000, 1.8, 0.5
_WORTH = 1.3  # fits whose sketch errs by more than this factor more than the best are not finished


@dataclass(frozen=True, eq=False)
class Solution:
    """An atom and its estimated error."""

    atom: Atom
    estimate: Estimate

    @property
    def total(self) -> float:
        return self.estimate.total


@dataclass(eq=False)
class Ladder:
    """Single softmaxes with 1, 2, 3, ... anchors for one problem; each rung is solved once."""

    problem: Problem
    dtype: Dtype
    caps: Caps
    origin: float | None = None
    alike: Ladder | None = None
    aim: float = 0.0  # the error asked for: rungs that are far from it serve as parents only
    effort: Effort = field(default_factory=lambda: Effort(np.inf))  # what rungs are searched for from
    _fits: dict[int, list[Fit]] = field(default_factory=dict)
    _sketches: dict[int, list[Solution]] = field(default_factory=dict)
    _solutions: dict[int, Solution] = field(default_factory=dict)

    def solution(self, anchors: int) -> Solution:
        """The best solution with so many anchors that was found."""
        p = anchors
        if p not in self._solutions:
            if self._is_constant(p):
                self._solutions[p] = self.estimate(p)
            else:
                fine, enough = self.problem.samples(12 * p + 40), _WORTH * self.estimate(p).total
                pairs = zip(self.fits(p), self._sketched(p), strict=False)
                found = [self._finished(fit, fine) for fit, estimate in pairs if estimate.total <= enough]
                self._solutions[p] = min(found, key=lambda solution: solution.total)
        return self._solutions[p]

    def estimate(self, anchors: int) -> Solution:
        """A solution from least squares alone; its error tells that of the best solution to a factor of 2 or so."""
        return min(self._sketched(anchors), key=lambda solution: solution.total)

    def outlook(self, anchors: int) -> float:
        """The error of the sketch, or of the least-squares fit where that is far from the aim."""
        if self._is_constant(anchors) or not self._is_far(self.fits(anchors)[0]):
            return self.estimate(anchors).total
        return self.problem.scale * self.fits(anchors)[0].error

    def floor(self, anchors: int, aim: float) -> float:
        """What rounding costs at least where the aim is reached."""
        return least_rounding(anchors, self.problem.scale - aim, self.dtype)

    def _sketched(self, p: int) -> list[Solution]:
        """The sketches from the best fits."""
        if p not in self._sketches:
            if self._is_constant(p):
                self._sketches[p] = [constant(self.problem, self.dtype)]
            else:
                samples = self._samples(p)
                self._sketches[p] = [self._stored(self._gauged(fit, samples), samples) for fit in self.fits(p)[:2]]
        return self._sketches[p]

    def _is_constant(self, p: int) -> bool:
        return p < self._first or self.problem.scale == 0

    @property
    def fewest(self) -> int:
        return 1

    @property
    def most(self) -> int:
        """Kinks ask for many samples and steep slopes: a free search pays for few of them only."""
        return 64 if not self.problem.kinks else max(0, 11 - len(self.problem.kinks))

    @property
    def patience(self) -> int:
        return 4 + self._first

    @cached_property
    def _first(self) -> int:
        """The first rung worth a search: a head with p anchors turns 2p - 4 times."""
        return max(2, self.problem.turns // 2 + 2)

    def work(self, anchors: int) -> float:
        """What the search for a rung takes."""
        if self._is_constant(anchors) or anchors in self._fits:
            return 0.0
        return LEAST + _SEARCHED * self._samples(anchors).f.size * anchors**2

    def fits(self, p: int) -> list[Fit]:
        """The best least-squares fits with p anchors."""
        if p not in self._fits and self.alike is not None:
            samples = self._samples(p)
            mirrored = self.alike.is_like(self.problem) < 0
            found = [fit.keys.mirrored() if mirrored else fit.keys for fit in self.alike.fits(p)]
            self._fits[p] = fitted(found, Loss(samples, even(samples), self._ridge, p))
        elif p not in self._fits:
            samples = self._samples(p)
            self.effort.spend(self.work(p))
            keys = list(starts(samples, p))
            ridge = self._ridge
            if p > self._first:
                parents = self.fits(p - 1)
                keys += [key for fit in parents[: 2 if p <= 8 else 1] for key in splits(fit.keys)]
                ridge = max(ridge, _HOLD * parents[0].error)
            self._fits[p] = self._halved(samples, keys, ridge)
        return self._fits[p]

    def is_like(self, problem: Problem) -> int:
        """1 if the normalised targets agree up to sign, -1 if they do in the mirror, 0 if not."""
        x = np.linspace(-1, 1, 33)
        ours, theirs = ((p.at(p.mid + p.half * x) - p.centre) / p.scale for p in (self.problem, problem))
        for mirror in (1, -1):
            if min(np.abs(ours - sign * theirs[::mirror]).max() for sign in (1, -1)) < 1e-9:
                return mirror
        return 0

    def _samples(self, p: int) -> Samples:
        return self.problem.samples(6 * p + 20)

    @property
    def _ridge(self) -> float:
        return _RIDGE * arithmetic_of(self.dtype).unit

    @property
    def _steepest(self) -> float:
        return min(float(np.log(2 * self.caps.slope)), STEEPEST)

    def _halved(self, samples: Samples, keys: list[Keys], ridge: float) -> list[Fit]:
        q, count = even(samples), len(keys)

        def polished(begin: Sequence[Keys | Fit], steps: int, ridge: float) -> list[Fit]:
            loss = Loss(samples, q, ridge, keys[0].anchors)
            found = gauss_newton(begin, loss, steps, self._steepest)
            return sorted(found, key=lambda fit: float((fit.residual**2).sum()))

        held = polished(keys, 8, ridge)
        for share, steps in _HALVING:
            held = polished(held[: max(2, count // share)], steps, ridge)
            if self._is_far(held[0]):
                return distinct(held[:2])
        free = polished(held[: 2 if held[0].keys.anchors <= 8 else 1], 200, self._ridge)
        return distinct([free[0], held[0], *free[1:]])

    def _is_far(self, fit: Fit) -> bool:
        """Few anchors may still come to something: silu is three."""
        return fit.keys.anchors > _FEW and self.problem.scale * fit.error > _FAR * self.aim > 0

    def _finished(self, fit: Fit, fine: Samples) -> Solution:
        q, ridge = even(fine), self._ridge
        self.effort.spend(_FINISHED * fine.f.size * fit.keys.anchors**2)
        (fit,) = gauss_newton([fit], Loss(fine, q, ridge, fit.keys.anchors), 60, self._steepest)
        while np.abs(fit.values).max() > self.caps.value and ridge < 1:
            ridge *= 10
            (fit,) = gauss_newton([fit], Loss(fine, q, ridge, fit.keys.anchors), 60, self._steepest)
        fit = lawson(fit, fine, ridge, 8, 5, self._steepest)
        gauge = self._gauged(fit, fine)
        if gauge.total < 4 * fit.error and not np.isfinite(self.caps.value):
            again = self._gauged(sharpen(fit, fine, gauge.rho, 12), fine)
            gauge = again if again.total < gauge.total else gauge
        return self._stored(gauge, fine)

    def _gauged(self, fit: Fit, samples: Samples) -> Gauged:
        """The fit in the best gauge and origin."""
        problem = self.problem
        still = -problem.centre / problem.scale
        origins = origins_of(problem) if self.origin is None else (self.origin,)
        frames = [frame_of(problem, place, self.dtype) for place in origins]
        found = [gauged(fit, samples, self.dtype, frame, self.caps, still) for frame in frames]
        return min(found, key=lambda gauge: gauge.total)

    def _stored(self, gauge: Gauged, samples: Samples) -> Solution:
        atom = stored(gauge, samples, self.problem, self.dtype, self.caps.value)
        return Solution(atom, estimate(atom, self.problem))


def origins_of(problem: Problem) -> tuple[float, ...]:
    """Where the query may start: at 0 if the domain is near it, and in the middle of the domain."""
    if problem.mid == 0:
        return (0.0,)
    return (0.0, problem.mid) if abs(problem.mid) <= 3 * problem.half else (problem.mid,)


def constant(problem: Problem, dtype: Dtype) -> Solution:
    """One anchor: its value, whatever s is."""
    atom = one_anchor(problem.centre, dtype)
    return Solution(atom, estimate(atom, problem))


def one_anchor(value: np.ndarray, dtype: Dtype) -> Atom:
    return Atom.of((Part.of([0.0], [0.0], value[None], dtype),), 0.0, np.zeros(len(value)), dtype)


def distinct(fits: list[Fit]) -> list[Fit]:
    """The fits whose errors differ, in the order given."""
    kept: list[Fit] = []
    for fit in fits:
        if all(abs(fit.error - other.error) > 1e-2 * other.error for other in kept):
            kept.append(fit)
    return kept
