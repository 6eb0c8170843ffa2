"""Kinks of a function of which only values are known, by a search: second differences over shrinking
brackets.

With step h, S(h) = |f(x-h) - 2 f(x) + f(x+h)| / h is the change of slope. As h shrinks it falls like h where
f is smooth, stays where f has a kink, and grows like 1/h at a jump; in between, |x|**a with a < 1. A bracket
is zoomed in on, by factors of 4 towards its largest second difference, until rounding would show, and its
last powers of h decide.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import arb

from anchorhead.errors import AnchorheadError
from anchorhead.language.analysis.zeros import simplest
from anchorhead.language.expressions.precision import FLOAT64_BITS, precision

_EPS = float(np.finfo(np.float64).eps)
_GRID = 4_097
_CANDIDATES = 300
_LEVELS = 24
_POINTS = np.linspace(0, 1, 9)
_KINK, _JUMP = -0.4, 0.9


def find_kinks(
    values: Callable[[np.ndarray], np.ndarray], low: float, high: float, name: str = "the callable", eps: float = _EPS
) -> tuple[float, ...]:
    """Where `values`, from (N,) to (N, m), has kinks on [low, high]; raises where it jumps.

    eps  of the dtype in which values are computed
    """
    x = np.linspace(low, high, _GRID)
    y = values(x)
    scale = np.maximum(np.ptp(y, axis=0), 1e-300)
    noise = 32 * eps * np.abs(y).max(axis=0) / scale
    bends = np.abs(np.diff(y, 2, axis=0)) / scale
    bend = (bends * (bends > noise)).max(axis=1)
    peaks = np.flatnonzero((bend > 0) & (bend >= np.r_[0, bend[:-1]]) & (bend >= np.r_[bend[1:], 0]))
    peaks = np.sort(peaks[np.argsort(bend[peaks])[::-1][:_CANDIDATES]])
    found: list[float] = []
    brackets = np.stack([x[peaks], x[peaks + 2]], axis=1)
    for bracket, power in zip(*_zoom(values, brackets, scale, float(noise.max()), eps), strict=True):
        with precision(FLOAT64_BITS):
            at = float(simplest(arb(bracket[0]), arb(bracket[1])).mid())
        if power > _JUMP:
            raise AnchorheadError(
                f"{name} is not continuous at x = {at:.12g}: it jumps there; "
                "heads approximate continuous functions, so keep the place out of the domain"
            )
        known = any(abs(at - other) <= 1e-9 * (high - low) for other in found)
        if power > _KINK and low < at < high and not known:
            found.append(at)
    return tuple(sorted(found))


def _zoom(
    values: Callable[[np.ndarray], np.ndarray], brackets: np.ndarray, scale: np.ndarray, noise: float, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """The final brackets, and the power of h with which S went over the last levels above the noise."""
    count = len(brackets)
    final, alive = brackets.copy(), np.ones(count, dtype=bool)
    history: list[list[float]] = [[] for _ in range(count)]
    for _ in range(_LEVELS):
        rows = np.flatnonzero(alive)
        if not rows.size:
            break
        left, width = brackets[rows, :1], np.diff(brackets[rows], axis=1)
        x = left + width * _POINTS
        y = values(x.reshape(-1)).reshape(*x.shape, -1) / scale
        bend = np.abs(np.diff(y, 2, axis=1)).max(axis=2)
        best = bend.argmax(axis=1)
        top = bend[np.arange(rows.size), best]
        # a step of fewer than about 64 spacings of the dtype is not even, which bends a straight line
        apart = width[:, 0] / 8 > 64 * eps / _EPS * np.spacing(np.abs(x).max(axis=1))
        good = (top > 8 * noise) & apart
        alive[rows[~good]] = False
        for row, index, size, step in zip(rows[good], best[good], top[good], width[good, 0] / 8, strict=True):
            history[row].append(float(np.log(size / step)))
            here = brackets[row, 0] + step * np.array([index, index + 2])
            brackets[row] = final[row] = here
    return final, np.array([_power(levels) for levels in history])


def _power(levels: list[float]) -> float:
    """p with S ~ h**-p over the last four levels (h falls by 4 at each); too few: taken as smooth."""
    if len(levels) < 4:
        return -1.0
    last = levels[-4:]
    return (last[-1] - last[0]) / (3 * np.log(4))
