"""The best single softmax with p anchors: many starts, successive halving, then the sup norm, the gauge, the store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from anchorhead.heads.atom import Atom, Dtype
from anchorhead.heads.gauge import Caps, Gauged, gauged
from anchorhead.heads.keys import Keys
from anchorhead.heads.measure import Estimate, estimate
from anchorhead.heads.minimax import sharpen
from anchorhead.heads.problem import Problem
from anchorhead.heads.projection import Fit, Samples, gauss_newton, lawson
from anchorhead.heads.rounding_estimate import UNIT
from anchorhead.heads.starts import starts
from anchorhead.heads.store import frame_of, stored

_RIDGES = (2.0, 0.25)  # in units of u: how much the values are held down


@dataclass(frozen=True, eq=False)
class Solution:
    """An atom and its estimated error."""

    atom: Atom
    estimate: Estimate


def fits(samples: Samples, keys: Iterable[Keys], ridge: float, keep: int, steepest: float) -> list[Fit]:
    """The best fits in the mean square, by successive halving: 8 steps for all, twice as many for half of them, ..."""
    q = np.full(len(samples), 1 / len(samples))
    found = [gauss_newton(k, samples, q, ridge, 8, steepest) for k in keys]
    steps = 16
    while True:
        found.sort(key=lambda fit: float((fit.residual**2).sum()))
        found = found[: max(keep, (len(found) + 1) // 2)]
        found = [gauss_newton(fit.keys, samples, q, ridge, steps, steepest) for fit in found]
        if len(found) <= keep:
            return _distinct(found)
        steps *= 2


def finish(problem: Problem, samples: Samples, fit: Fit, dtype: Dtype, caps: Caps) -> Solution:
    """A fit in the best gauge and origin, sharpened to the sup norm, stored and measured."""
    still = -problem.centre / problem.scale
    choices = {0.0, problem.mid} if abs(problem.mid) <= 3 * problem.half else {problem.mid}
    frames = [frame_of(problem, origin, dtype) for origin in sorted(choices, key=abs)]

    def best_gauge(fit: Fit) -> Gauged:
        return min((gauged(fit, samples, dtype, frame, caps, still) for frame in frames), key=lambda g: g.total)

    gauge = best_gauge(fit)
    if gauge.total < 4 * fit.error and not np.isfinite(caps.value):
        sharp = sharpen(fit, samples, gauge.rho, 12)
        again = best_gauge(sharp)
        gauge = again if again.total < gauge.total else gauge
    atom = stored(gauge, samples, problem, dtype)
    return Solution(atom, estimate(atom, problem))


def solve_single(
    problem: Problem, p: int, dtype: Dtype, caps: Caps, more: Iterable[Keys] = (), keep: int = 3
) -> Solution:
    """The best single softmax found; `more` are starts beside the usual ones."""
    samples = problem.samples(12 * p + 40)
    steepest = min(np.log(2 * caps.slope), 32.0)
    keys = [*more, *starts(samples, p)]
    best: Solution | None = None
    for ridge in _RIDGES:
        found = fits(samples, keys, ridge * UNIT[dtype], keep, steepest)
        for fit in found:
            fit = lawson(fit, samples, ridge * UNIT[dtype], 8, 5, steepest)
            solution = finish(problem, samples, fit, dtype, caps)
            if best is None or solution.estimate.total < best.estimate.total:
                best = solution
        keys = [fit.keys for fit in found]
        if best is not None and best.estimate.rounding < 0.05 * best.estimate.exact:
            break
    assert best is not None
    return best


def _distinct(found: list[Fit]) -> list[Fit]:
    """Fits whose mean squares differ, the best first."""
    found.sort(key=lambda fit: float((fit.residual**2).sum()))
    kept: list[Fit] = []
    for fit in found:
        if all(abs(fit.error / other.error - 1) > 1e-3 for other in kept):
            kept.append(fit)
    return kept
