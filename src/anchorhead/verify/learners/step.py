"""A step of a learner, whatever its layout: what it reads, what becomes of w, and by how much that errs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from anchorhead.verify.learners.average import MANY, Average, Mean, Moments
from anchorhead.verify.learners.clip import Clip
from anchorhead.verify.learners.heads import Heads
from anchorhead.verify.learners.score import Score
from anchorhead.verify.rounding import SLACK, Arithmetic


@dataclass(frozen=True, eq=False)
class Update:
    """w' = kept w + momentum v + what is read, v' = pulled w + momentum v + what is read; with the roundings of each.

    wrong, wrong_pull, wrong_speed   how far stored factors of w in w', of w in v', and of v are from the target's
    """

    kept: float
    pulled: float
    momentum: float
    wrong: float
    wrong_pull: float
    wrong_speed: float
    roundings: tuple[int, int, int]

    def error(self, w: float, v: float, size: float, model: Arithmetic) -> tuple[float, float]:
        """What w' and v' are off by the stored factors and by rounding, for |w|, |v| and what heads write."""
        of_w, of_v, of_read = (float(model.gamma(n)) for n in self.roundings)
        moving = of_v * self.momentum * v + of_read * size + MANY * 16 * model.tiny
        return (
            self.wrong * w + self.wrong_speed * v + of_w * self.kept * w + moving,
            self.wrong_pull * w + self.wrong_speed * v + of_w * self.pulled * w + moving,
        )


@dataclass(frozen=True)
class StepError:
    """What a step errs by in w, how far apart its errors in w and v are, and by how much tokens that
    carry w may come apart, each by its own rounding."""

    of_w: float
    apart: float
    rounding: float


@dataclass(frozen=True, eq=False)
class Step:
    """How a step reads a gradient, what becomes of w, its threshold; and where links are not residuals, how these are
    made: the score, if one is written, and the heads for phi, of each link.

    carriers   who carries w: "one" token; one for "each" example; or a "pair", w and -w
    """

    collect: Average | Mean
    update: Update
    clip: Clip | None
    score: Score | None = None
    heads: tuple[Heads, ...] = ()
    carriers: str = "one"

    def error(self, rate: float, at: Moments, w: float, v: float, model: Arithmetic) -> StepError:
        """For |w| and |v| at most these."""
        method, rounding, size = self.collect.error(rate, at, model)
        if not math.isfinite(method + rounding):
            return StepError(math.inf, math.inf, math.inf)
        of_w, of_v = self.update.error(w, v, size, model)
        total = method + rounding + of_w
        if self.clip is not None:
            total = total + self.clip.error((self.update.kept * w + size + total) * SLACK, model)
        alone = 0.0 if self.carriers == "one" else rounding + of_w + of_v
        return StepError(total * SLACK, (of_w + of_v) * SLACK, alone * SLACK)
