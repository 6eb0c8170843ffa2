"""Which keys of a softmax on one number weigh anything."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.rounding import SILENT


def within_reach(slopes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Which lines come within SILENT of the largest of all somewhere; refused where that cannot be told.

    The largest is convex and piecewise linear, so a line of a slope between its first and its last is closest to it at
    one of its corners. Corners are off by three roundings, which moves lines by less than `noise`.
    """
    hull: list[int] = []
    for k in np.lexsort((offsets, slopes)).tolist():
        while hull and slopes[hull[-1]] == slopes[k]:
            hull.pop()
        while len(hull) > 1 and _meet(slopes, offsets, hull[-2], k) <= _meet(slopes, offsets, hull[-2], hull[-1]):
            hull.pop()
        hull.append(k)
    corners = np.array([_meet(slopes, offsets, a, b) for a, b in pairwise(hull)] or [0.0])
    on = hull[:-1] or hull
    top, lines = slopes[on] * corners + offsets[on], slopes[:, None] * corners
    noise = 1e-12 * (np.abs(lines) + np.abs(offsets[:, None]) + np.abs(top))
    apart = top - (lines + offsets[:, None]) - noise
    found, perhaps = ((apart + by * noise).min(axis=1) < SILENT for by in (0.01, -0.01))
    told = np.isfinite(apart).all() and (found == perhaps).all()  # of what overflows at a corner nothing is
    require(bool(told), "direct: a key of which cannot be told whether it is left out")
    return found


def _meet(slopes: np.ndarray, offsets: np.ndarray, a: int, b: int) -> float:
    return float((offsets[a] - offsets[b]) / (slopes[b] - slopes[a]))
