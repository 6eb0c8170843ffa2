"""Bounds on the cells of a line, summed over heads: the working part of proof.heads.scalar, which has the formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.heads.on_cells import softmax_on_cells
from anchorhead.proof.heads.whole_head import NEGLIGIBLE, ScalarHead

BLOCK = 2**20
"""Numbers that one block of cells by anchors may hold."""


@dataclass(frozen=True)
class Piece:
    """The target on low <= q <= high: level + slope q, in output feature `group`, and 0 in the others."""

    low: float
    high: float
    level: float
    slope: float
    group: int


@dataclass(frozen=True)
class Readout:
    """What happens to the sum of the heads: a bias is added; how often each head's output is rounded on the way."""

    bias: float
    roundings: int


class Cells:
    """Cells of the pieces of a target: on each the target is level + slope q in one output feature."""

    def __init__(
        self, left: np.ndarray, right: np.ndarray, level: np.ndarray, slope: np.ndarray, group: np.ndarray
    ) -> None:
        self.left, self.right, self.level, self.slope, self.group = left, right, level, slope, group
        self.centre, self.half = (left + right) / 2, (right - left) / 2
        count = len(left)
        self.value, self.derivative, self.curvature = np.zeros(count), np.zeros(count), np.zeros(count)
        self.slack, self.foreign, self.head_rounding = np.zeros(count), np.zeros(count), np.zeros(count)
        self.magnitude, self.speakers = np.zeros(count), np.zeros(count, int)

    @classmethod
    def of(cls, pieces: Sequence[Piece], nodes: Float[np.ndarray, " nodes"]) -> Cells:
        """The cells of all pieces, between consecutive nodes."""
        cuts = []
        for piece in pieces:
            inside = nodes[np.searchsorted(nodes, piece.low, "right") : np.searchsorted(nodes, piece.high, "left")]
            low, high = ([end] if np.isfinite(end) else [] for end in (piece.low, piece.high))
            cuts.append(np.concatenate([low, inside, high]))
        counts = [max(len(cut) - 1, 0) for cut in cuts]
        ends = (np.concatenate([cut[part] for cut in cuts]) for part in (slice(None, -1), slice(1, None)))
        targets = (np.repeat([getattr(piece, n) for piece in pieces], counts) for n in ("level", "slope", "group"))
        return cls(*ends, *targets)

    def halved(self, which: Bool[np.ndarray, " cells"]) -> Cells:
        """Some of the cells, cut in two, with nothing added yet."""
        left, right, centre = self.left[which], self.right[which], self.centre[which]
        targets = (np.tile(a[which], 2) for a in (self.level, self.slope, self.group))
        return Cells(np.concatenate([left, centre]), np.concatenate([centre, right]), *targets)

    def add(self, head: ScalarHead, arithmetic: Arithmetic) -> None:
        """Adds a head: settled on an end anchor far from its crossings, a window of anchors near them."""
        x, step = head.crossings, np.diff(head.slopes)
        below = self.right <= x[0] - NEGLIGIBLE / step[0]
        above = self.left >= x[-1] + NEGLIGIBLE / step[-1]
        for cells, end in ((np.flatnonzero(below), 0), (np.flatnonzero(above), -1)):
            self._add_settled(head, cells, end, arithmetic)
        awake = np.flatnonzero(~(below | above))
        rows = max(1, BLOCK // (2 * head.window[0] + 1))
        for start in range(0, len(awake), rows):
            self._add_awake(head, awake[start : start + rows], arithmetic)

    def found(self, readout: Readout) -> float:
        """The largest |sum of heads - target| at the centre of a cell."""
        return float(np.abs(self._difference(readout)).max(initial=0.0))

    def exact(self, readout: Readout) -> Float[np.ndarray, " cells"]:
        """A bound on |sum of heads - target| on each cell, in any output feature."""
        tilt = np.abs(self.derivative - self.slope)
        own = np.abs(self._difference(readout)) + tilt * self.half + self.curvature * self.half**2 / 2 + self.slack
        own += 16 * FLOAT64.unit * (np.abs(self.value) + abs(readout.bias) + np.abs(self.level))
        return np.maximum(own, self.foreign)

    def rounding(
        self, readout: Readout, arithmetic: Arithmetic, queries: tuple[float, float]
    ) -> Float[np.ndarray, " cells"]:
        """A bound on |computed - exact sum of heads| on each cell that queries of the box can meet, 0 on others."""
        met = (self.right >= queries[0]) & (self.left <= queries[1])
        summed = arithmetic.gamma(np.maximum(self.speakers - 1, 0) + readout.roundings) * self.magnitude
        biased = 0.0 if readout.bias == 0 else arithmetic.unit * (self.magnitude + summed + abs(readout.bias))
        return np.where(met, (self.head_rounding + summed + biased) * UP, 0.0)

    def _difference(self, readout: Readout) -> Float[np.ndarray, " cells"]:
        return self.value + readout.bias - self.level - self.slope * self.centre

    def _add_settled(self, head: ScalarHead, cells: Int[np.ndarray, " some"], end: int, arithmetic: Arithmetic) -> None:
        """A head whose weight is on one end anchor, up to exp(-60) each; the dtype's logits may bring that closer."""
        if not len(cells):
            return
        unseen, value, count = head.unseen_weight, head.levels[end], len(head.slopes)
        own = self.group[cells] == head.groups[end]
        self.value[cells] += np.where(own, value, 0.0)
        self.foreign[cells] += np.where(own, 0.0, abs(value))
        spread, steepest = np.abs(head.levels).max() + abs(value), np.abs(head.slopes).max()
        self.slack[cells] += unseen * spread * (1 + self.half[cells] * 2 * steepest)
        self.curvature[cells] += unseen * spread * (2 * steepest) ** 2

        nearest = np.minimum(*(np.abs(side[cells] - head.crossings[end]) for side in (self.left, self.right)))
        gap = np.diff(head.slopes)[end] * nearest * (1 - 1e-6)
        logit_error = self._largest_logit_error(head, cells, arithmetic)
        leak = count * np.exp(np.minimum(2 * logit_error + 1e-3 - gap, 700.0)) * spread
        stored = head.value_error[end] + arithmetic.gamma(8) * abs(value)
        self.head_rounding[cells] += 2 * leak + stored + 4 * count * arithmetic.tiny * (spread + 1)
        self.magnitude[cells] += abs(value) + leak
        self.speakers[cells] += int(value != 0)

    def _largest_logit_error(
        self, head: ScalarHead, cells: Int[np.ndarray, " some"], arithmetic: Arithmetic
    ) -> np.ndarray:
        """A bound on the rounding of any logit of the head, anchors outside the window included."""
        query = np.abs(self.centre[cells] - head.origin) + self.half[cells]
        steepest, highest = np.abs(head.slopes).max(), np.abs(head.offsets).max()
        rounded = 3.001 * arithmetic.unit * (steepest * query + highest)
        vanished = 4 * arithmetic.tiny * (1 + steepest)
        return rounded + head.slope_error.max() * query * 1.001 + head.offset_error.max() + vanished

    def _add_awake(self, head: ScalarHead, cells: Int[np.ndarray, " some"], arithmetic: Arithmetic) -> None:
        """A head with the anchors of a window around the heaviest, which is one on the whole cell. The others weigh at
        most `unseen` together: the head is as far from the mean over the window as that moves a mean of values."""
        reach, unseen = head.window
        width = min(2 * reach + 1, len(head.slopes))
        first = np.searchsorted(head.crossings, self.centre[cells]) - reach
        index = np.clip(first, 0, len(head.slopes) - width)[:, None] + np.arange(width)
        levels, own = head.levels[index], head.groups[index] == self.group[cells][:, None]
        ends = self.left[cells] - head.origin, self.right[cells] - head.origin
        rounded = 4 * FLOAT64.unit * np.maximum(*map(np.abs, ends)) * (head.origin != 0)  # these differences, here
        columns = head.slopes[index], head.offsets[index], np.where(own, levels, 0.0)
        on = softmax_on_cells(*columns, None, *ends, stray=rounded)
        half, largest = self.half[cells], np.abs(head.levels).max()
        foreign = np.where(own, 0.0, np.abs(levels))
        foreign_read = (on.weights * foreign).sum(axis=1) + unseen * largest

        self.value[cells] += on.centre[0]
        self.derivative[cells] += on.slope[0]
        self.curvature[cells] += (on.weights * on.deviation * on.leaning**2).sum(axis=1)
        self.slack[cells] += on.centre[1] + half * on.slope[1] + rounded * on.turning
        self.slack[cells] += unseen * np.ptp(np.append(head.levels, 0.0))
        self.foreign[cells] += foreign_read

        wrong = (head.slope_error[index] * on.size[:, None] + head.offset_error[index]) * (1 + 1e-6)
        options = arithmetic, wrong, head.origin != 0, head.value_error[index], head.copies
        read = on.rounding(*options)
        if foreign.any():
            others = foreign + foreign_read[:, None]
            read = np.maximum(
                read, replace(on, deviation=others, values=foreign, result=foreign_read).rounding(*options)
            )
        far = np.exp(np.minimum(2 * self._largest_logit_error(head, cells, arithmetic) + 1.0, 700.0))
        self.head_rounding[cells] += read + 3 * unseen * far * largest
        self.magnitude[cells] += (on.weights * np.abs(levels)).sum(axis=1) + read
        self.speakers[cells] += 1
