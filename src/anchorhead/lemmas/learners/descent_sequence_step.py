"""What a step in the sequence layout gets wrong at most, and how that adds up (see descent_sequence)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.conditions import Condition
from anchorhead.lemmas.learners.descent_varying import VaryingDrift
from anchorhead.lemmas.learners.link_reading import HeadError, Link
from anchorhead.lemmas.learners.loop import DescentBound, Drift, length_of
from anchorhead.lemmas.learners.sequence import SequenceStep, Slots
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.silence import out_of_reach, rounding_of
from anchorhead.proof.heads.link_heads import LinkFacts
from anchorhead.targets.descent import Descent


@dataclass(frozen=True, eq=False)
class LinkedStep:
    """A step as it is stored, and the link that its anchors stand for."""

    step: SequenceStep
    link: Link

    @property
    def facts(self) -> LinkFacts:
        """Of the link at small labels: between which arguments it serves."""
        return self.link.facts(0.0)


def head_error(
    linked: LinkedStep, target: Descent, low: float, high: float, terms: float, y: float, model: Arithmetic
) -> HeadError:
    """What a register reads, per unit of |x|, is wrong by no more than this, for arguments in [low, high] and labels up
    to y; infinite where others' logits may come within reach."""
    step, facts = linked.step, linked.link.facts(y)
    logits = step.steepest * terms * (1 + 1e-6) + step.highest
    # those of others are lowered by the reach, perhaps more than once
    count = len(Slots(target, len(step.pieces)).keys)
    least, most = -logits - rounding_of(logits, count, model), logits - step.reach
    alone = bool(out_of_reach(most + rounding_of(logits + step.reach, count, model), least))
    if not (facts.error < math.inf and facts.low <= low and high <= facts.high and alone):
        return HeadError(math.inf, math.inf)
    return linked.link.error(low, high, terms, y, target.weights + 5, model)


@dataclass(frozen=True)
class At:
    """Bounds where a step begins. For each entry of w: x = mean |x_ij|, push = mean |phi_i||x_ij|, and |w|, |v|;
    squares = mean |x_i|^2."""

    x: Float[np.ndarray, " weights"]
    push: Float[np.ndarray, " weights"]
    w: Float[np.ndarray, " weights"]
    v: Float[np.ndarray, " weights"]
    squares: float


@dataclass(frozen=True)
class Curvature:
    """How paths near each other drift apart: rate times the second derivative lies between least and most.

    straight    the second derivative is the same everywhere; growth then bounds |I - rate H|
    steepest    the largest |slope| of the link
    """

    straight: bool
    least: float
    most: float
    steepest: float
    growth: float = 1.0

    def drift(self, momentum: float) -> Drift | VaryingDrift:
        return Drift(momentum, self.growth) if self.straight else VaryingDrift(momentum)

    def step(self, drift: Drift | VaryingDrift, of_weights: float, of_velocity: float) -> None:
        if isinstance(drift, Drift):
            drift.step(of_weights, of_velocity)
        else:
            drift.step(of_weights, of_velocity, self.least, self.most)


class Errors:
    """How the errors of steps add up: of w (`ours`), of rounding alone, and how far registers are apart."""

    def __init__(
        self, step: SequenceStep, target: Descent, head: HeadError, curvature: Curvature, model: Arithmetic
    ) -> None:
        self.step, self.target, self.head, self.curvature, self.model = step, target, head, curvature, model
        self.ours, self.rounding = curvature.drift(target.momentum), curvature.drift(target.momentum)
        self.apart, self.apart_in_v = 0.0, 0.0

    def take(self, at: At) -> None:
        """One more step."""
        step, target, model, n = self.step, self.target, self.model, self.target.examples
        u, rate = model.unit, abs(step.output)
        (wrong_w, wrong_pull, wrong_v), wrong_rate = step.update.wrong(target), step.wrong_rate(target)
        tiny = 1e3 * n * model.tiny * (1 + step.largest) * (1 + at.x.max()) * (1 + step.steepest) * (1 + at.w.sum())
        method, read = at.x * self.head.exact, at.x * self.head.rounding + tiny
        push = at.push + method + read
        uneven = math.expm1(2 * model.exp_error + float(model.gamma(2 * n + 2))) * push
        moving = rate * (push + uneven) + abs(step.update.momentum) * at.v
        sums = 3 * u * (1 + 4 * u)
        once_w = rate * uneven + sums * (np.abs(step.update.kept) * at.w + moving) + tiny
        once_v = rate * uneven + sums * (np.abs(step.update.pulled) * at.w + moving) + tiny
        shared = rate * read + wrong_rate * push + wrong_v * at.v
        drawn = rate * self.curvature.steepest * at.squares * self.apart
        in_w, in_v = shared + once_w + wrong_w * at.w, shared + once_v + wrong_pull * at.w
        of_w, of_v = (length_of(rate * method + one) + drawn for one in (in_w, in_v))
        self.curvature.step(self.ours, of_w, of_v if target.momentum else 0.0)
        of_w, of_v = (length_of(one) + drawn for one in (in_w, in_v))
        self.curvature.step(self.rounding, of_w, of_v if target.momentum else 0.0)
        kept, pulled = float(np.abs(step.update.kept).max()), float(np.abs(step.update.pulled).max())
        apart = kept * self.apart + abs(step.update.momentum) * self.apart_in_v + 2 * length_of(once_w)
        self.apart_in_v = (
            (abs(step.update.momentum) * self.apart_in_v + pulled * self.apart + 2 * length_of(once_v)) * UP
            if target.momentum
            else 0.0
        )
        self.apart = apart * UP

    def summed(self, given: tuple[Condition, ...] = ()) -> DescentBound:
        total, rounding = self.ours.bound, self.rounding.bound
        method = max(total - rounding, 0.0) if np.isfinite(total) else np.inf
        return DescentBound(total, {"head in place of the link": method, "rounding": rounding}, given)
