"""The best single softmax: a ladder from p - 1 anchors to p.

On every rung, starts spread over all slopes compete with the last rung's solution, one of its anchors split
in two, by successive halving of a least-squares search. The winners go to the sup norm, then to the best
gauge, and are stored and measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anchorhead.heads.atom import Atom, Dtype, Part
from anchorhead.heads.gauge import Caps, Gauged, gauged
from anchorhead.heads.keys import Keys
from anchorhead.heads.measure import Estimate, estimate
from anchorhead.heads.minimax import sharpen
from anchorhead.heads.problem import Problem
from anchorhead.heads.projection import STEEPEST, Fit, Samples, gauss_newton, lawson, project
from anchorhead.heads.rounding_estimate import UNIT
from anchorhead.heads.starts import splits, starts
from anchorhead.heads.store import frame_of, stored

_RIDGE = 2.0  # in units of u: how much round-off holds the values down
_HOLD = 1e-4  # while searching, values are held down as if round-off were this part of the last rung's error
_HALVING = ((3, 20), (9, 50))  # keep one in so many, and take so many steps


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
    _fits: dict[int, list[Fit]] = field(default_factory=dict)
    _solutions: dict[int, Solution] = field(default_factory=dict)

    def solution(self, anchors: int) -> Solution:
        """The best solution with so many anchors that was found."""
        p = anchors
        if p not in self._solutions:
            if p < self._first or self.problem.scale == 0:
                self._solutions[p] = constant(self.problem, self.dtype)
            else:
                fine = self.problem.samples(12 * p + 40)
                found = [self._finished(fit, fine) for fit in self.fits(p)[:2]]
                self._solutions[p] = min(found, key=lambda solution: solution.total)
        return self._solutions[p]

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

    def glimpse(self, anchors: int) -> float:
        """The error of the best least-squares fit, before the sup norm and the gauge."""
        if anchors < self._first or self.problem.scale == 0:
            return self.problem.scale
        return min(fit.error for fit in self.fits(anchors)) * self.problem.scale

    def fits(self, p: int) -> list[Fit]:
        """The best least-squares fits with p anchors."""
        if p not in self._fits and self.alike is not None:
            samples = self.problem.samples(6 * p + 20)
            mirrored = self.alike.is_like(self.problem) < 0
            found = [fit.keys.mirrored() if mirrored else fit.keys for fit in self.alike.fits(p)]
            self._fits[p] = [fitted(keys, samples, self.dtype) for keys in found]
        elif p not in self._fits:
            samples = self.problem.samples(6 * p + 20)
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

    @property
    def _ridge(self) -> float:
        return _RIDGE * UNIT[self.dtype]

    @property
    def _steepest(self) -> float:
        return min(float(np.log(2 * self.caps.slope)), STEEPEST)

    def _halved(self, samples: Samples, keys: list[Keys], ridge: float) -> list[Fit]:
        q, count = np.full(len(samples), 1 / len(samples)), len(keys)

        def polished(begin: Iterable[Keys | Fit], steps: int, ridge: float) -> list[Fit]:
            found = [gauss_newton(start, samples, q, ridge, steps, self._steepest) for start in begin]
            return sorted(found, key=lambda fit: float((fit.residual**2).sum()))

        held = polished(keys, 8, ridge)
        for share, steps in _HALVING:
            held = polished(held[: max(2, count // share)], steps, ridge)
        free = polished(held[: 2 if held[0].keys.anchors <= 8 else 1], 200, self._ridge)
        return distinct([free[0], held[0], *free[1:]])

    def _finished(self, fit: Fit, fine: Samples) -> Solution:
        q, ridge = np.full(len(fine), 1 / len(fine)), self._ridge
        fit = gauss_newton(fit, fine, q, ridge, 60, self._steepest)
        while np.abs(fit.values).max() > self.caps.value and ridge < 1:
            ridge *= 10
            fit = gauss_newton(fit, fine, q, ridge, 60, self._steepest)
        fit = lawson(fit, fine, ridge, 8, 5, self._steepest)
        return finish(self.problem, fine, fit, self.dtype, self.caps, self.origin)


def finish(
    problem: Problem, samples: Samples, fit: Fit, dtype: Dtype, caps: Caps, origin: float | None = None
) -> Solution:
    """A fit in the best gauge and origin, sharpened to the sup norm, stored and measured."""
    still = -problem.centre / problem.scale
    origins = origins_of(problem) if origin is None else (origin,)
    frames = [frame_of(problem, place, dtype) for place in origins]

    def best_gauge(fit: Fit) -> Gauged:
        return min((gauged(fit, samples, dtype, frame, caps, still) for frame in frames), key=lambda g: g.total)

    gauge = best_gauge(fit)
    if gauge.total < 4 * fit.error and not np.isfinite(caps.value):
        again = best_gauge(sharpen(fit, samples, gauge.rho, 12))
        gauge = again if again.total < gauge.total else gauge
    atom = stored(gauge, samples, problem, dtype, caps.value)
    return Solution(atom, estimate(atom, problem))


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


def fitted(keys: Keys, samples: Samples, dtype: Dtype) -> Fit:
    """The least-squares values for given keys."""
    found = project(keys, samples, np.full(len(samples), 1 / len(samples)), _RIDGE * UNIT[dtype])
    return Fit(found.keys, found.values, found.residual)
