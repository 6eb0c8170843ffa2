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
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.conditions import Condition
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.average import Moments
from anchorhead.lemmas.learners.follow import Links, error_at, follow, steepest
from anchorhead.lemmas.learners.given import given_conditions
from anchorhead.lemmas.learners.loop import Off, PathBound, Paths, most_rate
from anchorhead.lemmas.learners.norms import length_of
from anchorhead.lemmas.learners.prompt import ROOMS
from anchorhead.lemmas.learners.score import Arguments, Written
from anchorhead.lemmas.learners.steps import HeadAt, Step
from anchorhead.lemmas.learners.threshold import require_known
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic


def bound_for_box(
    step: Step, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> PathBound:
    """For every prompt of at most target.examples with |x_ij| <= x_j and |y_i| <= y for which the rate is safe."""
    box = InBox.of(step, target, x, y)
    for room in (share * (1 + box.farthest) for share in ROOMS) if step.ranged else (math.inf,):
        found = AlongAll(box, box.head(room, model), room).bound(model)
        if np.isfinite(found.total):
            return found
    return PathBound()


def error_of_a_step(
    step: Step, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> float:
    """What the last step adds to the bound for a box, if all steps before added as much as it would without them: a
    measure of sharpnesses that is soon found."""
    box, drift = InBox.of(step, target, x, y), 0.0
    along = AlongAll(box, box.head(0.0, model), math.inf)
    for _ in range(2):
        found = error_at(target.steps - 1, along, Off(drift, drift), step, target, model)
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
        require_known(target)
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
    def label_part(self) -> float:
        """Bounds the part of y in arguments."""
        return self.y if self.walk.residual else 0.0

    @property
    def farthest(self) -> float:
        """Bounds |arguments| at all steps."""
        return min((self.target.steps * self.push * self.length + self.label_part) * UP, self.reach)

    def head(self, room: float, model: Arithmetic) -> HeadAt:
        """Of the link, as far as arguments and what their terms add up to may reach, with some room."""
        terms = self.target.steps * self.push * self.length + self.y + room
        return self.walk.head(0, -self.farthest - room, self.farthest + room, terms, self.y, model)

    def given(self, margin: float) -> tuple[Condition, ...]:
        """What must hold of a prompt beside the rate's being safe for the exact descent; see PathBound."""
        facts = self.walk.links[0].facts
        everywhere = (self.farthest + margin) * UP <= min(-facts.low, facts.high)
        slope = None if self.walk.straight else facts.slope
        ends = None if everywhere else (facts.low, facts.high)
        return given_conditions(self.target, slope, self.safe, ends, margin)


@dataclass(eq=False)
class AlongAll:
    """The invariant along every path of a box: arguments lie in ranges, on each of which slopes are bounded.

    head     the link's, on a range with so much room
    margin   how far scores were from exact arguments so far
    """

    box: InBox
    head: HeadAt
    room: float
    margin: float = 0.0

    def bound(self, model: Arithmetic) -> PathBound:
        box, target = self.box, self.box.target
        paths = Paths(box.walk.straight, target.momentum)
        if not follow(self, paths, box.walk, target, model):
            return PathBound()
        margin = max(self.margin, box.length * paths.all.bound) * UP
        return paths.bound(box.given(margin)) if margin <= self.room else PathBound()

    def arguments(self, t: int, off: Off) -> Arguments | None:
        """None if the range of the head is too small."""
        box, facts, w = self.box, self.head.facts, t * self.box.push
        exact, moved = min(box.length * w + box.label_part, box.reach), box.length * off.w
        low, high = max(-exact, facts.low), min(exact, facts.high)
        if not (moved <= self.room and low <= high and np.isfinite(self.head.rounding)):
            return None
        edges = np.zeros(0) if self.head.cells is None else self.head.cells.edges
        cuts = np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
        far = w + off.w
        terms = np.full(len(cuts) - 1, box.length * far + box.label_part)
        return Arguments(cuts[:-1] - moved, cuts[1:] + moved, terms, np.full_like(box.x, far))

    def links(self, t: int, off: Off, z: Arguments, scores: Written) -> Links | None:
        box, target, facts, moved = self.box, self.box.target, self.head.facts, self.box.length * off.w
        v = min((2 * t + 1 if target.decay else 1) * box.push, box.fastest) + off.v
        more = facts.slope * moved if box.straight else 0.0
        most, logits = box.most + more, float(z.terms[0])

        def moments(e: Any) -> Moments:
            terms, wrong = (logits if box.walk.dots else most), float(np.max(e))
            return Moments.in_box(box.x, box.rms + more, most, terms, float(z.w[0]), v, target.examples, wrong)

        self.margin = max(self.margin, moved + float(scores.wrong[[0, -1]].max()))
        steep = steepest(self.head.between(np.minimum(z.low, scores.low), np.maximum(z.high, scores.high)))
        drawn = facts.steepest * box.length * box.length  # what overflows is infinite; a power would raise
        return Links(steep, facts.error, self.head.rounding, moments, drawn, (box.least, box.safe))
