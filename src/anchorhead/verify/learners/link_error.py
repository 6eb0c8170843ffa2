"""How far links are from g as the network computes them: by the score, the heads, and rounding.

e = (slope of phi near z) |score - z| + the heads' error. Where scores are far from z, because z is large, both lie
beyond some t where phi has settled, and e is at most what phi still moves from there on. Without a score, heads read
the argument itself. Where a number is taken off the score, scores are of arguments and that number. Where heads are a
grid, what that is allowed is added.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from anchorhead.verify.learners.heads import At, Heads
from anchorhead.verify.learners.link import Link, between, cuts, slopes
from anchorhead.verify.learners.score import Score
from anchorhead.verify.rounding import SLACK, Arithmetic


class LinkError:
    """How far computed links are from g, for arguments of `at` along the network's path, with room for drift; its
    terms and weight are the largest that are asked for. taken: a bound on what is taken off scores.

    low, high   cells that cover the arguments
    steep       |slopes| of phi on each cell widened by `room`, up to 5% of its arguments, where scores are within it
    settled     what phi still moves beyond the cell, where they are not
    """

    def __init__(
        self, score: Score | None, heads: Heads, link: Link, at: At, model: Arithmetic, taken: float = 0.0
    ) -> None:
        self.score, self.heads, self.link, self.at, self.model, self.taken = score, heads, link, at, model, taken
        self.allowed = 0.0
        ends = cuts(at.low, at.high)
        self.low, self.high, reach = ends[:-1], ends[1:], np.maximum(np.abs(ends[1:]), np.abs(ends[:-1]))
        wrong, _ = self._wrong(reach, np.full_like(reach, at.terms), at.weight)
        self.room = np.maximum(0.004 + 0.01 * reach, np.minimum(wrong, 0.05 * reach))
        wider = zip((self.low - self.room).tolist(), (self.high + self.room).tolist(), strict=True)
        self.steep = np.array([max(map(abs, slopes(link, a, b, link.coarse))) for a, b in wider])
        near = wrong <= self.room
        more = float((wrong * near).max(initial=0.0)) * SLACK
        top = score.most(self.taken) if score is not None else math.inf
        whole = not near.all()
        low, high = (-top if whole else max(at.low - more, -top)), (top if whole else min(at.high + more, top))
        self.asked = replace(at, low=low, high=high)
        self.head = heads.error(link, self.asked, model)
        self.settled = np.array([math.inf if one else self._settles(n) for n, one in enumerate(near)])

    def prove_grid(self) -> None:
        self.heads.prove_grid(self.link, self.asked, self.model, self.allowed)

    def _wrong(self, reach: np.ndarray, terms: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """|score - z|, and the part of it that is rounding."""
        if self.score is None:
            return np.zeros_like(reach), np.zeros_like(reach)
        rounding = self.score.rounding(reach + self.taken, terms, weight, self.model)
        return self.score.distance(reach + self.taken) + rounding, rounding

    def _settles(self, number: int) -> float:
        """What phi still moves beyond the cell and beyond the scores that are written for it."""
        score, up = self.score, self.low[number] >= 0
        if score is None or self.taken or not score.grows or (not up and self.high[number] > 0):
            return math.inf
        inner = self.low if up else -self.high
        before = (inner >= 0) & (inner <= inner[number])
        least = float((inner[before] - score.distance(inner[before])).max()) - 0.01
        least = min(least, float(inner[number]))
        if not least > 0:
            return math.inf
        most = max(score.most(), self.at.high if up else -self.at.low)
        lowest, highest = between(self.link, *((least, most) if up else (-most, -least)))
        return (highest - lowest) * SLACK

    def total(self, farthest: float, terms: float, weight: float) -> float:
        """e, for |z| <= farthest, logits over h that sum up `terms`, and weight as in `At`: an argument lies in one
        of the cells, so e is the largest e_i of one argument a cell."""
        low, high = np.maximum(self.low, -farthest), np.minimum(self.high, farthest)
        met = np.flatnonzero(low <= high)
        low, high = low[met], np.maximum(low[met], np.nextafter(high[met], -np.inf))
        return float(self.each(low, high, np.full_like(low, terms), weight)[0].max()) * SLACK

    def each(
        self, low: np.ndarray, high: np.ndarray, terms: np.ndarray, weight: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """e_i, and a bound on |slopes| of phi, for z_i between low_i and high_i."""
        first, last = (np.clip(np.searchsorted(self.low, end, side="right") - 1, 0, None) for end in (low, high))
        steep, room, settled = self.steep[first], self.room[first], self.settled[first]
        for k in range(1, int((last - first).max()) + 1):
            here = np.minimum(first + k, last)
            steep, room = np.maximum(steep, self.steep[here]), np.minimum(room, self.room[here])
            settled = np.maximum(settled, self.settled[here])
        wrong, rounding = self._wrong(np.maximum(np.abs(low), np.abs(high)), terms, weight)
        moved = np.where(wrong <= room, steep * wrong, np.inf)
        found = np.minimum(moved, np.where(rounding <= 0.005, settled, np.inf))
        return (found + self.head + self.allowed) * SLACK, steep
