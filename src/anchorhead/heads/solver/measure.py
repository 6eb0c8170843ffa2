"""The error of an atom as found by a search: exact arithmetic's, and the rounding bound on top.

Sampling is even, Chebyshev, geometric towards kinks, and dense on the scale 1/step at every crossing of
neighbouring keys; the highest peaks are then refined. The error near a kink lives on a width of 1/slope: an
even grid would miss it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Atom
from anchorhead.heads.rounding_estimate import rounding
from anchorhead.heads.solver.problem import Problem

_PEAKS = 24  # how many are refined
_CHUNK = 1 << 19  # weights held at once
_SPARSE = np.linspace(-6, 6, 13)
_DENSE = np.concatenate([-np.geomspace(60, 9, 9), np.linspace(-8, 8, 65), np.geomspace(9, 60, 9)])


@dataclass(frozen=True)
class Estimate:
    """Sup over the interval: of |target - head| in exact arithmetic, of the rounding bound, and of their
    sum.
    """

    total: float
    exact: float
    rounding: float
    at: float


def estimate(atom: Atom, problem: Problem, count: int = 600, zooms: int = 3) -> Estimate:
    """The largest error that a search finds; never proven, usually within a per cent."""
    s = _points(atom, problem, count)
    exact, bound = _errors(atom, problem, s)
    total = exact + bound
    for _ in range(zooms):
        inner = np.flatnonzero((total >= np.roll(total, 1)) & (total >= np.roll(total, -1)))
        top = inner[np.argsort(total[inner])[::-1][:_PEAKS]]
        left, right = s[np.maximum(top - 1, 0)], s[np.minimum(top + 1, len(s) - 1)]
        more = (left[:, None] + (right - left)[:, None] * np.linspace(0, 1, 9)[1:-1]).reshape(-1)
        extra, extra_bound = _errors(atom, problem, more)
        s, order = np.unique(np.concatenate([s, more]), return_index=True)
        exact, bound = np.concatenate([exact, extra])[order], np.concatenate([bound, extra_bound])[order]
        total = exact + bound
    place = int(np.argmax(total))
    return Estimate(float(total[place]), float(exact.max()), float(bound.max()), float(s[place]))


def _errors(atom: Atom, problem: Problem, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|target - head| and the rounding bound at each point; infinite where weights overflow."""
    rows = max(1, _CHUNK // max(len(part) for part in atom.parts))
    with np.errstate(over="ignore", invalid="ignore"):
        gap = np.abs(problem.at(s) - atom.exact(s)).astype(np.float64).max(axis=1)
        bounds = [rounding(atom, s[start : start + rows]).max(axis=1) for start in range(0, len(s), rows)]
    bound = np.concatenate(bounds)
    return np.where(np.isnan(gap), np.inf, gap), np.where(np.isnan(bound), np.inf, bound)


def _points(atom: Atom, problem: Problem, count: int) -> Float[np.ndarray, " n"]:
    s = [problem.points(count)]
    grid = _DENSE if atom.anchors <= 64 else _SPARSE
    for part in atom.parts:
        slopes, offsets, _ = part.astype(np.float64)
        steps = np.diff(slopes)
        crossings = -np.diff(offsets)[steps > 0] / steps[steps > 0]
        s.append((atom.origin + crossings[:, None] + grid / steps[steps > 0][:, None]).reshape(-1))
    joined = np.concatenate(s)
    return np.unique(np.clip(joined[np.isfinite(joined)], problem.low, problem.high))
