"""How far links are from phi(z) as the network computes them: by the score, the head, and rounding.

e = (slope of phi near z) |score - z| + the head's error + rounding. Where scores are far from z, because z is large,
both lie beyond some t where phi has settled, and e is at most what phi still moves from there on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from anchorhead.verify.learners.link import Link, Steepness, between, steepness
from anchorhead.verify.learners.score import Score
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar import Claim, Part, Proven, prove


class LinkError:
    """How far computed links are from phi(z) on a range of arguments.

    range   of z along the network's path, with room for drift       aim   an error of the head that is good enough
    """

    def __init__(
        self,
        score: Score,
        parts: Sequence[Part],
        link: Link,
        low: float,
        high: float,
        label: float,
        terms: float,
        weight: float,
        aim: float,
        model: Arithmetic,
    ) -> None:
        """terms, weight: the largest that `total` is asked for."""
        self.score, self.parts, self.link, self.model = score, parts, link, model
        self.low, self.high, self.label = low, high, label
        self.cells: Steepness = steepness(link.phi, low, high)
        self.reach = np.maximum(np.abs(self.cells.low), np.abs(self.cells.high))
        wrong = score.distance(self.reach) + self._rounding(self.reach, terms, weight)
        near = wrong <= self.cells.room
        more = float((wrong * near).max(initial=0.0)) * SLACK
        top = score.most
        whole = not near.all()
        self.head = (-top if whole else max(low - more, -top)), (top if whole else min(high + more, top))
        self.proven: Proven = prove(list(parts), Claim(link.phi, 1.0, 0.0, 1.0, 0.0), [self.head], model, aim)
        self.settled = np.array([math.inf if one else self._settles(n) for n, one in enumerate(near)])

    def _rounding(self, reach: np.ndarray, terms: float, weight: float) -> np.ndarray:
        return self.score.rounding(reach, np.full_like(reach, terms), weight, self.model)

    def _settles(self, number: int) -> float:
        """What phi still moves beyond the cell and beyond the scores that are written for it."""
        cells, score = self.cells, self.score
        up = cells.low[number] >= 0
        if not score.grows or (not up and cells.high[number] > 0):
            return math.inf
        inner = cells.low if up else -cells.high
        before = (inner >= 0) & (inner <= inner[number])
        least = float((inner[before] - score.distance(inner[before])).max()) - 0.01
        least = min(least, float(inner[number]))
        if not least > 0:
            return math.inf
        most = max(score.most, self.high if up else -self.low)
        lowest, highest = between(self.link.phi, *((least, most) if up else (-most, -least)))
        return (highest - lowest) * SLACK

    def total(self, farthest: float, terms: float, weight: float) -> float:
        """e, for |z| <= farthest, logits over h that sum up `terms`, and sum |w_j| <= weight."""
        cells = self.cells
        met = np.flatnonzero(np.maximum(cells.low, -cells.high) <= farthest)
        reach = np.minimum(self.reach, farthest)[met]
        found = self._each(
            reach, np.full_like(reach, terms), weight, cells.near[met], cells.room[met], self.settled[met]
        )
        return float(found.max())

    def each(
        self, low: np.ndarray, high: np.ndarray, terms: np.ndarray, weight: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """e_i, and a bound on |slopes| of phi, for z_i between low_i and high_i."""
        cells = self.cells
        first = np.clip(np.searchsorted(cells.low, low, side="right") - 1, 0, None)
        last = np.clip(np.searchsorted(cells.low, high, side="right") - 1, 0, None)
        steep, room, settled = cells.near[first], cells.room[first], self.settled[first]
        for k in range(1, int((last - first).max()) + 1):
            here = np.minimum(first + k, last)
            steep, room = np.maximum(steep, cells.near[here]), np.minimum(room, cells.room[here])
            settled = np.maximum(settled, self.settled[here])
        reach = np.maximum(np.abs(low), np.abs(high))
        return self._each(reach, terms, weight, steep, room, settled), steep

    def _each(
        self,
        reach: np.ndarray,
        terms: np.ndarray,
        weight: float,
        steep: np.ndarray,
        room: np.ndarray,
        settled: np.ndarray,
    ) -> np.ndarray:
        model = self.model
        rounding = self.score.rounding(reach, terms, weight, model)
        wrong = self.score.distance(reach) + rounding
        moved = np.where(wrong <= room, steep * wrong, np.inf)
        found = np.minimum(moved, np.where(rounding <= 0.005, settled, np.inf))
        read = float(self.proven.reach.sum())
        sums = float(model.gamma(len(self.parts) - 1)) * read
        sums += model.unit * (read + self.label) if self.label else 0.0
        return (found + self.proven.total + sums + 4 * model.tiny) * SLACK
