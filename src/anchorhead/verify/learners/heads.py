"""What stands in the place of a link: softmaxes over anchors, on one argument or on a grid of scores and labels.

In the layout *transformer* a logit is a slope times the score that was written, and an offset. In the layout *sequence*
anchors carry slope times the example, and a logit is a sum over the entries of w: its error is at most

    gamma_q (|slope_k| T + |offset_k|),    T >= |w| . |a_i| + |y_i|,    q roundings,

the product of slope and example being rounded too, and so are values times the example. All other tokens are out of
reach (`apart`): their logits are so far below those of anchors, for all arguments and labels, that they weigh nothing.
Underflow loses less than VANISHED tiny in a feature or a product.

How far a grid may be off is not known before all else is: it is an allowance, for which the lemma of grids is proven at
the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.grids.smooth import verify_grid
from anchorhead.verify.learners.link import Link
from anchorhead.verify.learners.score import VANISHED
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar.cells import prove
from anchorhead.verify.scalar.part import Claim, Part


def part_of(slopes: np.ndarray, constants: np.ndarray, values: np.ndarray, model: Arithmetic) -> Part:
    """A softmax on one number; constants (anchors, n): of an anchor one is its offset, and all others are 0."""
    require(bool(((constants != 0).sum(axis=1) <= 1).all()), "an anchor of a link has too many offsets")
    offsets, nothing = constants.sum(axis=1), np.zeros(len(slopes))
    vanished = VANISHED * model.tiny * (1 + np.abs(slopes))
    return Part(slopes, offsets, values, np.abs(offsets), np.abs(offsets), (offsets != 0) + 0.0, vanished, nothing,
                nothing, model)  # fmt: skip


@dataclass(frozen=True)
class At:
    """low, high: of the argument. labels: of |y|. terms: T above. weight: a bound on sum |w_j| and on the entries of
    rows. aim: an error that is good enough."""

    low: float
    high: float
    labels: float
    terms: float
    weight: float
    aim: float


@dataclass(frozen=True, eq=False)
class Heads:
    """The softmaxes whose sum is the link: `parts` of its argument, `of_label` of the label, whose sum is -y; or a
    grid of both.

    taken       whether the label is taken off afterwards
    roundings   q above; 0 where logits are of a written score
    """

    parts: tuple[Part, ...] = ()
    of_label: tuple[Part, ...] = ()
    grid: Grid | None = None
    taken: bool = False
    roundings: int = 0

    def error(self, link: Link, at: At, model: Arithmetic) -> float:
        """|computed link - g| for all arguments and labels of `at`, per unit of what values are multiplied by; of a
        grid, beside what that is allowed."""
        if self.grid is not None:
            read, count = float(np.abs(self.grid.values).max()), 1
            total = model.unit * read if self.roundings else 0.0
        else:
            parts = [self._rounded(part, at, model) for part in self.parts]
            found = prove(parts, Claim(link.phi, 1.0, 0.0, 1.0, 0.0), [(at.low, at.high)], model, at.aim)
            total, read, count = found.total, float(found.reach.sum()), len(self.parts) + len(self.of_label)
        if self.of_label:
            parts = [self._rounded(part, at, model) for part in self.of_label]
            more = prove(parts, Claim(None, 1.0, 0.0, -1.0, 0.0), [(-at.labels, at.labels)], model, at.aim)
            total, read = total + more.total, read + float(more.reach.sum())
        sums = float(model.gamma(count - 1 + self.taken)) * (read + at.labels * self.taken)  # in any order
        return (total + sums + 4 * model.tiny) * SLACK

    def _wrong(self, slopes: np.ndarray, offsets: np.ndarray, size: float, at: At, model: Arithmetic) -> np.ndarray:
        vanished = 2 * (self.roundings + 2) * VANISHED * model.tiny * (1 + at.weight) * (1 + np.abs(slopes))
        return (float(model.gamma(self.roundings)) * (np.abs(slopes) * size + np.abs(offsets)) + vanished) * SLACK

    def _rounded(self, part: Part, at: At, model: Arithmetic) -> Part:
        if not self.roundings:
            return part
        wrong = self._wrong(part.slopes, part.offsets, at.terms, at, model)
        return replace(part, wrong=wrong, whole=True, value_error=model.unit * np.abs(part.values) * SLACK)

    def prove_grid(self, link: Link, at: At, model: Arithmetic, allowed: float) -> None:
        """That the grid is off the link by no more than is allowed."""
        ends = [(at.low, at.high), (-at.labels, at.labels)]
        if self.grid is not None:
            pairs = zip(self.grid.axes, (at.terms, at.labels), strict=True)
            wrong = tuple(self._wrong(slopes, offsets, size, at, model) for (slopes, offsets), size in pairs)
            verify_grid(replace(self.grid, wrong=wrong), link.phi, ["x", "y"], ends, model, allowed)
