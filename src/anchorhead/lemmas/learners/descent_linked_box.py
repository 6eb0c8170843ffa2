"""The bound for all prompts of a box, for descent on any loss by score, link and collect (see
lemmas.learners.descent_linked)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.conditions import Condition
from anchorhead.lemmas.learners.average import Moments, StepError, step_error
from anchorhead.lemmas.learners.descent_given import given_conditions
from anchorhead.lemmas.learners.descent_linked_link import Known
from anchorhead.lemmas.learners.descent_linked_paths import NOTHING, Paths, rounding_alone
from anchorhead.lemmas.learners.descent_varying import most_rate
from anchorhead.lemmas.learners.loop import DescentBound, length_of
from anchorhead.lemmas.learners.score import written
from anchorhead.lemmas.learners.threshold import require_proof
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.targets.descent import Descent


def bound_for_box(
    known: Known, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> DescentBound:
    """For every prompt of at most target.examples with |x_ij| <= x_j and |y_i| <= y for which the rate is safe.

    For a straight link, residuals are bounded as in learners.descent_squared. Any other is bounded on the range of
    its head, by G with the label, and then the gradient's length is at most G times that of x, and at most sqrt(l) G
    with l the largest eigenvalue of A'A/n, of which it is given that rate times slope times l is at most what `given`
    says. Where the head does not serve on the whole line, it is given that the exact path keeps to its range.
    """
    box = InBox.of(known, target, x, y)
    paths, margin = Paths.of(known.straight, target.momentum, 1.0, 2), 0.0
    for t in range(target.steps):
        drift, velocity = paths.drifts[0].bound, paths.drifts[0].velocity
        found = box.step(t, drift, velocity, model) if np.isfinite(drift) else None
        if found is None:
            return NOTHING
        errors, off = found
        margin = max(margin, off)
        paths.step(errors, box.least, box.safe)
    margin = max(margin, box.length * paths.drifts[0].bound) * UP
    return paths.summed(box.given(margin))


def error_of_a_step(
    known: Known, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> float:
    """What the last step adds to the bound for a box, if all steps before added as much as it would without them: a
    measure of sharpnesses that is soon found."""
    box, drift, found = InBox.of(known, target, x, y), 0.0, None
    for _ in range(2):
        found = box.step(target.steps - 1, drift, drift, model)
        if found is None or not np.isfinite(found[0][0].of_weights):
            return math.inf
        drift = target.steps * found[0][0].of_weights
    return drift


@dataclass(frozen=True, eq=False)
class InBox:
    """What holds for every prompt of a box, along the exact path.

    x, length         bounds on |x_ij|, and on |x_i|
    safe              rate times the second derivative is at most this
    least             and at least this
    rms, most, reach  bounds on the links' root mean square, on links, and on |arguments|
    push              bounds the length of rate times the gradient of the mean loss
    taken, labels     bounds on the part of y in arguments, and in links
    straight          whether links are residuals, up to a factor
    """

    known: Known
    target: Descent
    x: Float[np.ndarray, " weights"]
    length: float
    safe: float
    least: float
    rms: float
    most: float
    reach: float
    push: float
    taken: float
    labels: float
    straight: bool

    @classmethod
    def of(cls, known: Known, target: Descent, x: Float[np.ndarray, " weights"], y: float) -> InBox:
        require_proof(target)
        scoring, facts, mu = known.step.scoring, known.facts, target.momentum
        line = target.loss.link.affine()
        straight = known.straight and scoring.residual and line is not None and line[1] == 0
        length, slope = length_of(x), max(facts.slope, 1e-300)
        safe = 2 * (1 + mu) if known.straight else most_rate(mu)
        taken, labels = (y if flag else 0.0 for flag in (scoring.residual, known.labelled))
        rms, most, reach = facts.size + labels, facts.size + labels, math.inf
        if straight:
            root, grown = math.sqrt(target.examples), (1 + mu) / (1 - mu) * y * UP
            rms, most, reach = facts.slope * grown, facts.slope * root * grown * UP, root * grown * UP
        push = rms * min(target.rate * length, math.sqrt(safe * target.rate / slope)) * UP
        least = -safe * max(-facts.least, 0.0) / slope * UP
        return cls(known, target, x, length, safe, least, rms, most, reach, push, taken, labels, straight)

    def step(self, t: int, drift: float, velocity: float, model: Arithmetic) -> tuple[list[StepError], float] | None:
        """The errors of step t, all and by rounding alone, where w and v may be off by `drift` and `velocity`; and how
        far scores are from exact arguments. None if the range of the head is too small."""
        known, target, mu = self.known, self.target, self.target.momentum
        w = t * self.push / (1 - mu)
        v = (2 * t + 1 if target.decay else 1) * self.push / (1 - mu) + velocity
        exact = min(self.length * w + self.taken, self.reach)
        low, high = max(-exact, known.facts.low), min(exact, known.facts.high)
        if not low <= high:
            return None
        edges = known.slopes.edges
        cuts = np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
        moved = self.length * drift
        lows, highs = cuts[:-1] - moved, cuts[1:] + moved
        terms = np.full_like(lows, self.length * (w + drift) + self.taken)
        scores = written(known.step.scoring, lows, highs, terms, np.full_like(self.x, w + drift), model)
        error = known.link_error(lows, highs, scores, self.labels, model)
        more = known.facts.slope * moved if self.straight else 0.0
        most = self.most + more
        at, rounded = (
            Moments.in_box(self.x, self.rms + more, most, most, w + drift, v, target.examples, e)
            for e in (float(error.total.max()), float(error.rounding.max()))
        )
        errors = [
            step_error(known.step.collect, target, at, model),
            rounding_alone(known.step, target, rounded, model),
        ]
        return errors, moved + float(scores.wrong[[0, -1]].max())

    def given(self, margin: float) -> tuple[Condition, ...]:
        """What must hold of a prompt beside the rate's being safe for the exact descent; see DescentBound."""
        low, high = self.known.facts.low, self.known.facts.high
        everywhere = (self.reach + margin) * UP <= min(-low, high)
        slope = None if self.known.straight else self.known.facts.slope
        return given_conditions(self.target, slope, self.safe, None if everywhere else (low, high), margin)
