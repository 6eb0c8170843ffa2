"""A step of a learner, whatever its layout: what it reads, what becomes of w, and by how much that errs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.learners.average import Average, Mean, Moments
from anchorhead.verify.learners.growth import Apart, Drift, Varying
from anchorhead.verify.learners.heads import Heads
from anchorhead.verify.learners.link_error import LinkError
from anchorhead.verify.learners.score import Score
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.learners.threshold import Clip
from anchorhead.verify.learners.update import Update
from anchorhead.verify.rounding import SLACK, Arithmetic

SHARE = 0.98
"""Of what is left, what a grid is allowed."""


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


class Path(ABC):
    """What is known of the exact path.

    least, most   between what rate H lies
    growth        of errors where H is the same at all steps; else None
    weight        a bound on the sum of |w_j| of every token that carries w, and on the entries of rows
    lost          by how much the path that is followed errs itself at each step
    errors        how far the network's links are from exact ones, by the link
    """

    target: Descent
    least: float
    most: float
    growth: float | None
    lost: list[float]
    weight: float
    errors: dict[int, LinkError]

    def drift(self) -> Drift | Varying:
        momentum = self.target.momentum
        return Varying(momentum) if self.growth is None else Drift(momentum, self.growth)

    @abstractmethod
    def read(self, step: Step, model: Arithmetic) -> None:
        """Finds the errors of links that a step makes."""

    @abstractmethod
    def at(self, t: int, e: float, wide: float, apart: float) -> tuple[Moments, float, float]:
        """At step t: what it averages, |w_t| and |v_t|. The network's path is at most e away, each token that carries
        w at most `wide`, and they are at most `apart` from one another, where links are of their own w."""


def followed(step: Step, target: Descent, path: Path, stated: float, model: Arithmetic) -> float:
    """The bound on |w_t - exact w_t| at all steps, of all tokens that carry w: from how far paths may be apart at t
    follows what a step errs by, and from that how far they are at t + 1.

    Of a pair w+ and w-, what follows the descent is (w+ - w-)/2; w+ is (w+ + w-)/2 away, half of how far apart w+ and
    -w- may be."""
    each, pair = float(step.carriers == "each"), 0.5 * (step.carriers == "pair")
    ours, own, apart = path.drift(), path.drift(), Apart()
    for t in range(target.times):
        e = (ours.bound + own.bound) * SLACK
        wide = e + apart.w * pair
        if not wide <= stated * 1.01:
            raise NotVerified(f"after {t} steps paths may be {wide:.3g} apart, more than what is stated")
        at, w, v = path.at(t, e, wide, apart.w * each)
        speed = (v + ours.velocity + own.velocity) * SLACK
        error = step.error(target.rate, at, (w + wide) * SLACK, speed, model)
        if not math.isfinite(error.of_w):
            return math.inf
        apart.step(step.update.kept, step.update.pulled, step.update.momentum, error.rounding)
        ours.step(error.of_w, error.apart, path.least, path.most)
        own.step(path.lost[t], 2 * path.lost[t], path.least, path.most)
    return (ours.bound + apart.w * pair) * SLACK


def distance(step: Step, target: Descent, path: Path, stated: float, model: Arithmetic) -> float:
    """The same where a link is a grid, too: of what is stated it is allowed what all else leaves, of which the distance
    is an affine function, nearly."""
    found = followed(step, target, path, stated, model)
    grids = [one for one in path.errors.values() if one.heads.grid is not None]
    for one in grids:
        require(found < stated, f"without its grids a network may be {found:.3g} off, more than what is stated")
        one.allowed = one.at.aim
        grows = (followed(step, target, path, stated, model) - found) / one.allowed
        one.allowed = SHARE * (stated - found) / grows
        one.prove_grid()
        found = followed(step, target, path, stated, model)
    return found
