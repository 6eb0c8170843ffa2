"""The proof for gradient descent on any loss by score, link and collect (incontext.linked).

*Score.* What is written for the link's argument z differs from it by at most d (proof.descent_linked_score).

*Link.* The head's error holds at the score that was written, and phi moves by at most d times its steepest slope
between that and z. So the link is known to the last layer up to e = slope d + error of the head + rounding.

*Collect.* As for the squared loss (proof.descent_squared), with the link in place of the residual: e moves logits.

Errors of the steps add up as in proof.descent where phi is a straight line, else as in proof.descent_varying, with the
slopes that phi has between the paths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.proof.arithmetic import FLOAT64, Arithmetic
from anchorhead.proof.descent import UP, DescentBound, Drift, contraction, eigenvalue_bound, require_safe_rate
from anchorhead.proof.descent_given import ARGUMENTS, given_words
from anchorhead.proof.descent_linked_form import LinkedStep
from anchorhead.proof.descent_linked_link import Known, read, steepest
from anchorhead.proof.descent_linked_score import written
from anchorhead.proof.descent_squared import Moments, StepError, step_error
from anchorhead.proof.descent_threshold import require_proof
from anchorhead.proof.descent_varying import VaryingDrift, most_rate
from anchorhead.proof.link_heads import LinkFacts
from anchorhead.targets.descent import Descent

__all__ = ["METHOD", "ScoresOutside", "bound_for_box", "bound_for_prompt", "curved_slope", "error_of_a_step", "read"]

METHOD = (
    "series of tanh, sinh and cosh with bounds on the rest; the link's head proven on its range; softmax and sums in "
    "any order of rounding; errors of the steps add up, multiplied by no more than the link's slopes allow"
)
NOTHING = DescentBound(np.inf, {})


def curved_slope(known: Known, target: Descent) -> float | None:
    """The link's largest slope, where bounds for a box take rate times curvature to be at most most_rate; see `given`.
    None for a straight link: a safe rate is enough."""
    return None if known.straight else known.facts.slope


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
    size, lengths, n = np.abs(A), np.linalg.norm(A, axis=1) * UP, len(A)
    taken = y if step.scoring.residual else np.zeros(n)
    labels = np.abs(y) if step.labelled else np.zeros(n)
    at_most = facts.slope * eigenvalue_bound(A) + target.decay if not known.straight else 0.0
    w, v = np.zeros(target.weights), np.zeros(target.weights)
    for _ in range(target.steps):
        drift = ours.bound + reference.bound
        if not np.isfinite(drift):
            return NOTHING
        terms, z = size @ np.abs(w) + np.abs(taken), A @ w - taken
        lost = float(FLOAT64.gamma(target.weights + 2)) * terms
        moved = lengths * drift + lost
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
        at, rounded = (_moments(size, link, e, np.abs(w) + drift, speed) for e in (error.total, error.rounding))
        gradient = A.T @ read / n + target.decay * target.penalised * w
        next_v = mu * v - target.rate * gradient
        own = target.rate * (size.T @ (own_wrong + float(FLOAT64.gamma(n + 8)) * link) / n)
        own = own + target.rate * target.decay * float(FLOAT64.gamma(4)) * np.abs(w)
        own = own + 8 * FLOAT64.unit * (np.abs(w) + np.abs(next_v) + mu * np.abs(v) + target.rate * target.threshold)
        away = float(np.linalg.norm(own)) * UP
        curved = _curvature(A, target, least, most, at_most)
        found = step_error(step.collect, target, at, model)
        paths.step([found, _rounding_alone(step, target, rounded, model), StepError(away, away, away)], *curved)
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


def _rounding_alone(step: LinkedStep, target: Descent, at: Moments, model: Arithmetic) -> StepError:
    found = step_error(step.collect, target, at, model)
    return replace(found, of_weights=found.rounding, of_velocity=found.of_velocity and found.rounding)


def _moments(size: np.ndarray, link: np.ndarray, wrong: np.ndarray, w: np.ndarray, v: np.ndarray) -> Moments:
    """Of links of at most this size, known up to `wrong`."""
    n, squares = len(size), link * link
    means = [UP * (size.T @ power) / n for power in (np.ones(n), link, link * squares, link * squares * squares)]
    return Moments(
        *means,
        r2=UP * float(squares.mean()),
        r4=UP * float((squares * squares).mean()),
        most=UP * float(link.max()),
        terms=UP * float(link.max()),
        w=w,
        v=v,
        examples=n,
        e=UP * float(wrong.mean()),
        most_e=UP * float(wrong.max()),
        xe=UP * (size.T @ wrong) / n,
    )


def bound_for_box(
    known: Known, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> DescentBound:
    """For every prompt of at most target.examples with |x_ij| <= x_j and |y_i| <= y for which the rate is safe.

    For a straight link, residuals are bounded as in proof.descent_squared. Any other is bounded on the range of its
    head, by G with the label, and then the gradient's length is at most G times that of x, and at most sqrt(l) G with l
    the largest eigenvalue of A'A/n, of which it is given that rate times slope times l is at most what `given` says.
    Where the head does not serve on the whole line, it is given that the exact path keeps to its range.
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
        length, slope = float(np.linalg.norm(x)) * UP, max(facts.slope, 1e-300)
        safe = 2 * (1 + mu) if known.straight else most_rate(mu)
        taken, labels = (y if flag else 0.0 for flag in (scoring.residual, known.step.labelled))
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
        at, rounded = (
            _box_moments(self.x, self.rms + more, self.most + more, e, w + drift, v, target.examples)
            for e in (float(error.total.max()), float(error.rounding.max()))
        )
        errors = [
            step_error(known.step.collect, target, at, model),
            _rounding_alone(known.step, target, rounded, model),
        ]
        return errors, moved + float(scores.wrong[[0, -1]].max())

    def given(self, margin: float) -> str:
        """What must hold of a prompt beside the rate's being safe for the exact descent."""
        low, high = self.known.facts.low, self.known.facts.high
        everywhere = (self.reach + margin) * UP <= min(-low, high)
        slope = curved_slope(self.known, self.target)
        return given_words(self.target, slope, self.safe, None if everywhere else (low, high), margin)


def _box_moments(x: np.ndarray, rms: float, most: float, wrong: float, w: float, v: float, examples: int) -> Moments:
    return Moments(
        x=x,
        xr=x * rms,
        xr3=x * most * rms**2,
        xr5=x * most**3 * rms**2,
        r2=rms**2,
        r4=most**2 * rms**2,
        most=most,
        terms=most,
        w=np.full_like(x, w),
        v=np.full_like(x, v),
        examples=examples,
        e=wrong,
        most_e=wrong,
        xe=x * wrong,
    )


@dataclass
class Paths:
    """Several bounds that grow in the same way: of all errors, of rounding alone, of a reference."""

    drifts: list[Drift] | list[VaryingDrift]

    @classmethod
    def of(cls, straight: bool, momentum: float, growth: float, count: int) -> Paths:
        if straight:
            return cls([Drift(momentum, growth) for _ in range(count)])
        return cls([VaryingDrift(momentum) for _ in range(count)])

    def step(self, errors: list[StepError], least: float, most: float) -> None:
        for drift, error in zip(self.drifts, errors, strict=True):
            if isinstance(drift, Drift):
                drift.step(error.of_weights, error.of_velocity)
            else:
                drift.step(error.of_weights, error.of_velocity, least, most)

    def summed(self, given: str = "") -> DescentBound:
        total, rounding = self.drifts[0].bound, self.drifts[1].bound
        method = max(total - rounding, 0.0) if np.isfinite(total) else np.inf
        return DescentBound(total, {"heads in place of score, link and gradient": method, "rounding": rounding}, given)
