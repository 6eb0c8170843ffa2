"""The bound for all prompts of a box: the walk along every path that their exact descents may take.

*A link that is a multiple of the residual*, phi(r) = slope r. In the eigenvectors of H every residual is multiplied by
q_t = p_t - mu p_(t-1), |q_t| <= C = (1 + mu)/(1 - mu) (see lemmas.learners.loop; decay counts as examples of its own,
with label 0), so mean r^2 <= C^2 mean y^2 and |r_i| <= C sqrt(n) y. The whole gradient's length, decay included, is at
most sqrt(L slope) C y, L the largest eigenvalue of H, and rate sqrt(L) <= sqrt(2 (1 + mu) rate): that bounds v and w.

With a threshold (and no momentum) a step is w' = S(w - rate grad f(w)), f the mean loss and the decay, and the
objective F = f + threshold |w|_1 never grows. For u = (w - w')/rate - grad f(w) is a subgradient of threshold |.|_1 at
w', so threshold |w|_1 >= threshold |w'|_1 + |w - w'|^2/rate - grad f(w).(w - w'), and
f(w') <= f(w) + grad f(w).(w' - w) + L |w' - w|^2/2: together F(w') <= F(w) - (1/rate - L/2) |w' - w|^2 <= F(w). So
mean r^2 + decay |w|^2 <= 2 F(w) <= 2 F(0) = mean y^2, as before with C = 1, and S, which takes 0 to 0, leaves the bound
on w as it is.

*Any other link* is bounded on the range of its head, by G with the label, and then the length of the gradient of the
mean loss is at most G times that of x, and at most sqrt(l) G with l the largest eigenvalue of A'A/n, of which it is
given that rate times slope times l is at most what `given` says. Where the head does not serve as far as steps of that
length may lead, it is given that the exact path keeps to its range.

In both w_t is at most t of these pushes over 1 - mu, and with a decay v_t at most 2 t + 1 of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.conditions import Condition
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.average import Moments
from anchorhead.lemmas.learners.given import given_conditions
from anchorhead.lemmas.learners.loop import PathBound, Paths, StepError, most_rate
from anchorhead.lemmas.learners.norms import length_of
from anchorhead.lemmas.learners.prompt import ROOMS
from anchorhead.lemmas.learners.score import written
from anchorhead.lemmas.learners.steps import HeadAt, Step
from anchorhead.lemmas.learners.threshold import require_proof
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic


def bound_for_box(
    step: Step, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> PathBound:
    """For every prompt of at most target.examples with |x_ij| <= x_j and |y_i| <= y for which the rate is safe."""
    box = InBox.of(step, target, x, y)
    for room in (share * (1 + box.farthest) for share in ROOMS) if step.ranged else (math.inf,):
        found = box.bound(room, model)
        if np.isfinite(found.total):
            return found
    return PathBound()


def error_of_a_step(
    step: Step, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> float:
    """What the last step adds to the bound for a box, if all steps before added as much as it would without them: a
    measure of sharpnesses that is soon found."""
    box, drift = InBox.of(step, target, x, y), 0.0
    head = box.head(0.0, model)
    for _ in range(2):
        found = box.step(target.steps - 1, head, drift, drift, 0.0, model)
        if found is None or not np.isfinite(found[0].of_weights):
            return math.inf
        drift = target.steps * found[0].of_weights
    return drift


@dataclass(frozen=True, eq=False)
class InBox:
    """What holds for every prompt of a box, along the exact path.

    x, y, length      bounds on |x_ij|, on |y_i| and on |x_i|
    safe, least       rate times the second derivative is at most this, and at least this
    rms, most, reach  bounds on the links' root mean square, on links, and on |arguments|
    push, fastest     a step pushes w by at most the first, decay left aside, and v is at most the second
    straight          whether links are residuals, up to a factor
    """

    walk: Step
    target: Descent
    x: Float[np.ndarray, " weights"]
    y: float
    length: float
    safe: float
    least: float
    rms: float
    most: float
    reach: float
    push: float
    fastest: float
    straight: bool

    @classmethod
    def of(cls, step: Step, target: Descent, x: Float[np.ndarray, " weights"], y: float) -> InBox:
        require_proof(target)
        (link,), mu, rate = step.links, target.momentum, target.rate
        facts, straight = link.facts, step.residual and link.through_zero
        length, slope = length_of(x), max(facts.slope, 1e-300)
        safe = 2 * (1 + mu) if step.straight else most_rate(mu)
        rms = most = (facts.size + (y if step.labelled else 0.0)) * UP
        reach = fastest = math.inf
        if straight:
            root, grown = math.sqrt(target.examples), (1 + mu) / (1 - mu) * y * UP
            rms, most, reach = facts.slope * grown, facts.slope * root * grown * UP, root * grown * UP
            fastest = rms * math.sqrt(safe * rate / slope) / (1 - mu) * UP
        push = rms * min(rate * length, math.sqrt(safe * rate / slope)) / (1 - mu) * UP
        least = -safe * max(-facts.least, 0.0) / slope * UP
        return cls(step, target, x, y, length, safe, least, rms, most, reach, push, fastest, straight)

    @property
    def taken(self) -> float:
        """Bounds the part of y in arguments."""
        return self.y if self.walk.residual else 0.0

    @property
    def farthest(self) -> float:
        """Bounds |arguments| at all steps."""
        return min((self.target.steps * self.push * self.length + self.taken) * UP, self.reach)

    def head(self, room: float, model: Arithmetic) -> HeadAt:
        """Of the link, as far as arguments and what their terms add up to may reach, with some room."""
        terms = self.target.steps * self.push * self.length + self.y + room
        return self.walk.head(0, -self.farthest - room, self.farthest + room, terms, self.y, model)

    def bound(self, room: float, model: Arithmetic) -> PathBound:
        """With a head that is proven on a range with so much room."""
        head, step, margin = self.head(room, model), self.walk, 0.0
        paths = Paths(step.straight, self.target.momentum)
        for t in range(self.target.steps):
            drift, velocity = paths.all.bound, paths.all.velocity
            served = np.isfinite(drift) and self.length * drift <= room
            found = self.step(t, head, drift, velocity, paths.apart, model) if served else None
            if found is None:
                return PathBound()
            error, rounding, off = found
            margin = max(margin, off)
            paths.step(error, rounding, step.collect.update, self.least, self.safe)
        margin = max(margin, self.length * paths.all.bound) * UP
        if not margin <= room:
            return PathBound()
        return paths.bound(self.given(margin))

    def step(
        self, t: int, head: HeadAt, drift: float, velocity: float, apart: float, model: Arithmetic
    ) -> tuple[StepError, float, float] | None:
        """The error of step t and what of it is rounding, where w and v may be off by `drift` and `velocity`; and how
        far scores are from exact arguments. None if the range of the head is too small."""
        step, target, facts = self.walk, self.target, head.facts
        w = t * self.push
        v = min((2 * t + 1 if target.decay else 1) * self.push, self.fastest) + velocity
        exact = min(self.length * w + self.taken, self.reach)
        low, high = max(-exact, facts.low), min(exact, facts.high)
        if not (low <= high and np.isfinite(head.rounding)):
            return None
        edges = np.zeros(0) if head.cells is None else head.cells.edges
        cuts = np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
        moved = self.length * drift
        lows, highs = cuts[:-1] - moved, cuts[1:] + moved
        terms = self.length * (w + drift) + self.taken
        scores = written(step.scoring, lows, highs, np.full_like(lows, terms), np.full_like(self.x, w + drift), model)
        between = head.between(np.minimum(lows, scores.low), np.maximum(highs, scores.high))
        steep = np.maximum(*map(np.abs, between))
        rounding = float((steep * scores.rounding * UP + head.rounding).max())
        wrong = float((steep * scores.wrong * UP + facts.error + head.rounding).max())
        more = facts.slope * moved if self.straight else 0.0
        most = self.most + more

        def at(e: float) -> Moments:
            logits = terms if step.dots else most
            return Moments.in_box(self.x, self.rms + more, most, logits, w + drift, v, target.examples, e)

        every, alone = step.errors(target, at, wrong, rounding, model)
        if step.carriers == "each":
            drawn = target.rate * (1 + 1e-6) * facts.steepest * self.length**2 * apart * UP
            every, alone = every.more(drawn), alone.more(drawn)
        return every, alone.rounding, moved + float(scores.wrong[[0, -1]].max())

    def given(self, margin: float) -> tuple[Condition, ...]:
        """What must hold of a prompt beside the rate's being safe for the exact descent; see PathBound."""
        facts = self.walk.links[0].facts
        everywhere = (self.farthest + margin) * UP <= min(-facts.low, facts.high)
        slope = None if self.walk.straight else facts.slope
        ends = None if everywhere else (facts.low, facts.high)
        return given_conditions(self.target, slope, self.safe, ends, margin)
