"""The proof for gradient descent on any loss by score, link and collect (incontext.linked).

*Score.* What is written for the link's argument z differs from it by at most d (lemmas.learners.score).

*Link.* The head's error holds at the score that was written, and phi moves by at most d times its steepest slope
between that and z. So the link is known to the last layer up to e = slope d + error of the head + rounding.

*Collect.* As for the squared loss (lemmas.learners.descent_squared), with the link in place of the residual: e moves
logits.

Errors of the steps add up as in lemmas.learners.loop where phi is a straight line, else as in
lemmas.learners.descent_varying, with the slopes that phi has between the paths.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.lemmas.learners.average import Moments, StepError, step_error
from anchorhead.lemmas.learners.descent_given import ARGUMENTS
from anchorhead.lemmas.learners.descent_linked_box import bound_for_box, error_of_a_step
from anchorhead.lemmas.learners.descent_linked_link import Known, read, steepest
from anchorhead.lemmas.learners.descent_linked_paths import NOTHING, Paths, rounding_alone
from anchorhead.lemmas.learners.descent_varying import most_rate
from anchorhead.lemmas.learners.loop import (
    DescentBound,
    contraction,
    eigenvalue_bound,
    length_of,
    lengths,
    require_safe_rate,
)
from anchorhead.lemmas.learners.score import written
from anchorhead.lemmas.learners.threshold import require_proof
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.heads.link_heads import LinkFacts
from anchorhead.targets.descent import Descent

__all__ = ["METHOD", "ScoresOutside", "bound_for_box", "bound_for_prompt", "error_of_a_step", "read"]

METHOD = (
    "series of tanh, sinh and cosh with bounds on the rest; the link's head proven on its range; softmax and sums in "
    "any order of rounding; errors of the steps add up, multiplied by no more than the link's slopes allow"
)


class ScoresOutside(CertificateError):
    """A prompt takes the link's argument where its head does not serve."""


def bound_for_prompt(
    known: Known, target: Descent, A: Float[np.ndarray, "n weights"], y: Float[np.ndarray, " n"], model: Arithmetic
) -> DescentBound:
    """For one prompt; raises RateTooLarge for a straight link, ScoresOutside where the head does not serve.

    Arguments are those of a path in float64, with the head in place of the link, whose own distance from the exact path
    is followed in the same way.
    """
    require_proof(target)
    step, facts, mu = known.step, known.facts, target.momentum
    growth = 1.0
    if known.straight:
        require_safe_rate(A, target, facts.slope)
        growth = contraction(A, target) if facts.slope == 1 else 1.0
    paths = Paths.of(known.straight, mu, growth, 3)
    ours, reference = paths.drifts[0], paths.drifts[2]
    size, reaches, n = np.abs(A), lengths(A), len(A)
    taken = y if step.scoring.residual else np.zeros(n)
    labels = np.abs(y) if known.labelled else np.zeros(n)
    at_most = facts.slope * eigenvalue_bound(A) + target.decay if not known.straight else 0.0
    w, v = np.zeros(target.weights), np.zeros(target.weights)
    for _ in range(target.steps):
        drift = ours.bound + reference.bound
        if not np.isfinite(drift):
            return NOTHING
        terms, z = size @ np.abs(w) + np.abs(taken), A @ w - taken
        lost = float(FLOAT64.gamma(target.weights + 2)) * terms
        moved = reaches * drift + lost
        scores = written(step.scoring, z - moved, z + moved, terms + size.sum(axis=1) * drift, np.abs(w) + drift, model)
        ends = (z - moved, scores.low), (z + moved, scores.high)
        _require_inside(facts, target, float(np.min(ends[0])), float(np.max(ends[1])))
        error = known.link_error(z - moved, z + moved, scores, float(labels.max()), model)
        least, most = known.slopes.between(z - moved, z + moved)
        steep = steepest((least, most))
        read = known.values(z, y)
        own_wrong = (
            facts.error + known.head_rounding(FLOAT64) + steep * lost + 4 * FLOAT64.unit * (np.abs(read) + labels)
        )
        link = np.abs(read) + own_wrong + steep * moved
        speed = np.abs(v) + ours.velocity + reference.velocity
        at, rounded = (Moments.of(size, link, np.abs(w) + drift, speed, wrong=e) for e in (error.total, error.rounding))
        gradient = A.T @ read / n + target.decay * target.penalised * w
        next_v = mu * v - target.rate * gradient
        own = target.rate * (size.T @ (own_wrong + float(FLOAT64.gamma(n + 8)) * link) / n)
        own = own + target.rate * target.decay * float(FLOAT64.gamma(4)) * np.abs(w)
        own = own + 8 * FLOAT64.unit * (np.abs(w) + np.abs(next_v) + mu * np.abs(v) + target.rate * target.threshold)
        away = length_of(own)
        curved = _curvature(A, target, least, most, at_most)
        found = step_error(step.collect, target, at, model)
        paths.step([found, rounding_alone(step, target, rounded, model), StepError(away, away, away)], *curved)
        w, v = target.shrunk(w + next_v), next_v
    return paths.summed()


def _curvature(
    A: np.ndarray, target: Descent, least: np.ndarray, most: np.ndarray, at_most: float
) -> tuple[float, float]:
    """Bounds on rate H between the paths, H = A' diag(slopes) A / n + decay, of which |H| <= at_most is known."""
    if (least >= 0).all() and target.rate * at_most <= most_rate(target.momentum):
        return 0.0, target.rate * at_most
    up, down = (np.sqrt(np.maximum(part, 0.0)) for part in (most, -least))
    highest = eigenvalue_bound(A * up[:, None]) + target.decay
    lowest = eigenvalue_bound(A * down[:, None]) if down.any() else 0.0
    return -target.rate * lowest * UP, target.rate * highest * UP


def _require_inside(facts: LinkFacts, target: Descent, low: float, high: float) -> None:
    if facts.low <= low and high <= facts.high:
        return
    what = " ".join(ARGUMENTS[target.loss.form])
    raise ScoresOutside(
        f"the {what} of this prompt reach from {low:.4g} to {high:.4g}, but the head for the link {target.loss.link} "
        f"serves from {facts.low:g} to {facts.high:g}: build with "
        f"scores=({math.floor(low) - 1}, {math.ceil(high) + 1}), or scale the examples"
    )
