"""The keys that a query [t, constants] meets, as a head on t; those that never weigh anything are left out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float

SILENT = 800.0
"""exp of minus this is 0 in float32 and float64."""


@dataclass(frozen=True, eq=False)
class Keys:
    """Logits slopes_k t + offsets_k, and values (keys, entries)."""

    slopes: Float[np.ndarray, " keys"]
    offsets: Float[np.ndarray, " keys"]
    values: Float[np.ndarray, "keys entries"]

    def live(self) -> Keys:
        """Those that come within reach of the largest logit for some t, sorted by slope, then by offset."""
        pairs, which = np.unique(np.stack([self.slopes, self.offsets], 1), axis=0, return_inverse=True)
        alive = _within_reach(*pairs.T)[which.reshape(-1)]
        order = np.lexsort((self.offsets, self.slopes))
        order = order[alive[order]]
        return Keys(self.slopes[order], self.offsets[order], self.values[order])

    def column(self, entry: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.slopes, self.offsets, self.values[:, entry]


def _within_reach(slopes: Float[np.ndarray, " keys"], offsets: Float[np.ndarray, " keys"]) -> Bool[np.ndarray, " keys"]:
    """Which lines come within SILENT of the largest of all, somewhere on the whole line.

    The largest is convex, so a line of a slope between its first and its last is closest to it at one of its corners.
    """
    hull: list[int] = []
    for k in np.lexsort((offsets, slopes)).tolist():
        while hull and slopes[hull[-1]] == slopes[k]:
            hull.pop()
        while len(hull) > 1 and _meet(slopes, offsets, hull[-2], k) <= _meet(slopes, offsets, hull[-2], hull[-1]):
            hull.pop()
        hull.append(k)
    if len(hull) == 1:
        return offsets >= offsets[hull[0]] - SILENT
    corners = np.array([_meet(slopes, offsets, a, b) for a, b in pairwise(hull)])
    top = slopes[hull[:-1]] * corners + offsets[hull[:-1]]
    gaps = top - (slopes[:, None] * corners + offsets[:, None])
    noise = 1e-12 * (np.abs(slopes[:, None] * corners) + np.abs(offsets[:, None]) + np.abs(top))
    return ((gaps - noise).min(axis=1) < SILENT) | np.isin(np.arange(len(slopes)), hull)


def _meet(slopes: np.ndarray, offsets: np.ndarray, a: int, b: int) -> float:
    return float((offsets[a] - offsets[b]) / (slopes[b] - slopes[a]))
