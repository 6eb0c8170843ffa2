"""The bound for all prompts of a box: a bound on the exact path, the error of a step, hence the distance of the paths.

*The exact path, squared loss.* Let a decay count as further examples with label 0, and let r be all residuals. In
the eigenvectors of H the part of the labels that w can reach is multiplied by q_t = p_t - mu p_(t-1)
(learner_growth), the rest by 1 = q_t(0), and |q_t| <= C = (1 + mu)/(1 - mu). So mean r^2 <= C^2 mean y^2 and |r_i|
<= C sqrt(n) max|y|. The gradient is at most sqrt(|H|) C max|y|, and with rate |H| <= limit a step pushes v by at
most sqrt(limit rate) C max|y|, which bounds v and w.

With a threshold (and no momentum), F = mean r^2/2 + decay |w|^2/2 + penalty |w|_1 never grows: u = (w - w')/rate -
grad f(w) is a subgradient of the penalty at w', so penalty(w) >= penalty(w') + |w - w'|^2/rate - grad f(w).(w - w'),
and f(w') <= f(w) + grad f(w).(w' - w) + |H| |w' - w|^2/2; together F(w') <= F(w) - (1/rate - |H|/2) |w' - w|^2. So
mean r^2 <= mean y^2 again, and w' is no further from 0 than before the threshold.

*Another loss.* The link is bounded, by G with the label, on the range of its argument, so a step pushes w by at most
rate min(max|a|, sqrt(L)) G, L the largest eigenvalue of mean a a', of which the condition on curvature says how
large it may be; w = sum_k p_k(decay) (pushes) gives |w_t| <= t push/(1 - mu).

*The network's path* is at most e_t away: its residuals are larger by at most |a_i| e_t, in the root mean square by
sqrt(L) e_t, L the largest eigenvalue of mean a a'. From these follows the step's error, and e_(t+1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.learners.average import box_moments
from anchorhead.verify.learners.growth import Drift, Varying
from anchorhead.verify.learners.layers import Step
from anchorhead.verify.learners.link import Link, between, slopes
from anchorhead.verify.learners.link_error import LinkError
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.rounding import SLACK, Arithmetic

FARTHEST = 2.0**20
"""Arguments beyond this are not followed."""


@dataclass(frozen=True)
class Curved:
    """What a certificate states for a curved link: rate (slope L + decay) <= limit, and where arguments keep to."""

    slope: float
    decay: float
    limit: float
    keeps: tuple[float, float] | None


@dataclass(frozen=True)
class Box:
    """Prompts of at most `examples` with |a_ij| <= a_j and |y_i| <= y, for which rate |H| <= limit."""

    a: tuple[float, ...]
    y: float
    examples: int
    limit: float

    @property
    def length(self) -> float:
        return math.sqrt(sum(x * x for x in self.a)) * SLACK


def bound_for_box(
    step: Step, target: Descent, link: Link, box: Box, given: Curved | None, stated: float, model: Arithmetic
) -> float:
    mu, size, rate = target.momentum, target.size, target.rate
    labels = box.y if link.form == "labelled" else 0.0
    taken = box.y if link.form == "residual" else 0.0
    straight = given is None
    grown = (1 + mu) / (1 - mu) * SLACK
    decay = max(float(one.upper()) for one in target.decays) * SLACK
    margin = box.length * stated * 1.01
    if given is None:
        require(link.straight, "a curved link without a condition on curvature")
        eigenvalue = min(box.limit / rate, box.length**2) * SLACK
        rms, most = grown * box.y * SLACK, grown * math.sqrt(box.examples) * box.y * SLACK
        push = math.sqrt(box.limit * rate) * rms / (1 - mu) * SLACK
        low, high = -most, most
        least = steepest = 0.0
    else:
        require(given.slope > 0 and given.decay >= 0, "a condition on curvature of a slope that is not above 0")
        eigenvalue = min((given.limit / rate - given.decay) / given.slope, box.length**2) * SLACK
        require(eigenvalue > 0, "a condition on curvature that no prompt keeps")
        low, high = given.keeps or (-FARTHEST, FARTHEST)
        rms = most = (max(map(abs, between(link.phi, low - margin, high + margin))) + labels) * SLACK
        push = rate * math.sqrt(eigenvalue) * most / (1 - mu) * SLACK
        farthest = (box.length * target.times * push + taken) * SLACK
        require(farthest <= FARTHEST, "arguments of links may lie too far from 0")
        low, high = max(low, -farthest), min(high, farthest)
        least, steepest = (rate * x for x in slopes(link.phi, low - margin, high + margin))
        least, steepest = min(least, 0.0) * eigenvalue * SLACK, (max(steepest, 0.0) * eigenvalue + rate * decay) * SLACK
    aim = 0.02 * stated / (target.times * rate * math.sqrt(size * eigenvalue))
    last = (target.times * push + margin) * SLACK
    errors = (
        None
        if step.score is None
        else LinkError(
            step.score,
            step.parts,
            link,
            low - margin,
            high + margin,
            labels,
            last * box.length + taken,
            math.sqrt(size) * last,
            aim,
            model,
        )
    )
    drift = Drift(mu) if straight else Varying(mu)
    for t in range(target.times):
        e = drift.bound
        w = (t * push + e) * SLACK
        v = ((2 * t + 1 if decay and not straight else 1) * push + drift.velocity) * SLACK
        terms, weight = (w * box.length + taken) * SLACK, math.sqrt(size) * w * SLACK
        if not box.length * e <= margin:
            raise NotVerified(f"after {t} steps paths may be {e:.3g} apart, more than what is stated")
        wrong = 0.0 if errors is None else errors.total(terms, terms, weight)
        more = (math.sqrt(eigenvalue) * e + wrong, box.length * e + wrong) if straight else (wrong, wrong)
        at = box_moments(
            eigenvalue, box.length, max(box.a), size, (rms + more[0]) * SLACK, (most + more[1]) * SLACK,
            terms if errors is None else (most + more[1]) * SLACK, weight, box.examples, wrong,
        )  # fmt: skip
        found_w, apart = step.error(rate, at, w, v, model)
        if isinstance(drift, Varying):
            drift.step(found_w, apart, least, steepest)
        else:
            drift.step(found_w, apart)
        if not math.isfinite(drift.bound):
            return math.inf
    return drift.bound
