"""The bound for all prompts of a box: an invariant of the exact path, the error of a step, hence the distance of paths.

*A link that is a line in its argument*, g = c s - eta with c > 0 and |eta_i| <= N. Let a decay count as further
examples with eta = 0. In the eigenvectors of H = c mean a a' + decay the part of eta that w can reach is multiplied by
q_t = p_t - mu p_(t-1) (growth.py), the rest by 1 = q_t(0), and |q_t| <= C = (1 + mu)/(1 - mu). So mean g^2 <= C^2 N^2
and |g_i| <= C sqrt(n) N. The whole gradient is B'g with |B|^2 = |H|/c, so a step pushes v by at most rate sqrt(|H|/c)
C N.

With a threshold (and no momentum), F = mean g^2/(2c) + decay |w|^2/2 + penalty |w|_1 never grows: u = (w - w')/rate -
grad f(w) is a subgradient of the penalty at w', so penalty(w) >= penalty(w') + |w - w'|^2/rate - grad f(w).(w - w'),
and f(w') <= f(w) + grad f(w).(w' - w) + |H| |w' - w|^2/2; together F(w') <= F(w) - (1/rate - |H|/2) |w' - w|^2. So
mean g^2 <= mean eta^2 again, and w' is no further from 0 than before the threshold.

*Another loss.* Let G bound the link, with the label, for arguments of size up to R that keep to what is stated. As long
as they do, a step pushes w by at most rate sqrt(L) G, L the largest eigenvalue of mean a a', of which the condition on
curvature says how large it may be. Where T such steps, from 0, leave arguments within R, they never left.

In both, w_t = sum_k p_k (pushes) gives |w_t| <= t push/(1 - mu).

*The network's path* is at most e_t away: links of a line are larger by at most c |a_i| e_t, in the root mean square by
c sqrt(L) e_t. From these follows the step's error, and e_(t+1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.learners.average import Moments, box_moments
from anchorhead.verify.learners.heads import At
from anchorhead.verify.learners.link import FARTHEST, Link, between, slopes
from anchorhead.verify.learners.link_error import LinkError
from anchorhead.verify.learners.step import Path, Step
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.rounding import SLACK, Arithmetic


@dataclass(frozen=True)
class Box:
    """Prompts of at most `examples` with |a_ij| <= a_j and |y_i| <= y, for which rate |H| <= limit.

    curvature   (slope, decay, limit): rate (slope L + decay) <= limit, if that is stated
    keeps       between what arguments of links keep, if that is stated
    """

    a: tuple[float, ...]
    y: float
    examples: int
    limit: float
    curvature: tuple[float, float, float] | None = None
    keeps: tuple[float, float] | None = None

    @property
    def length(self) -> float:
        return math.sqrt(sum(x * x for x in self.a)) * SLACK


@dataclass(frozen=True)
class Along:
    """What holds along the exact path: bounds on L, on the root mean square and the size of links, on what a step
    pushes w by, and the ends of arguments of links.

    taken, label   bounds on what of y is in arguments, and what is taken off links
    """

    eigenvalue: float
    rms: float
    most: float
    push: float
    low: float
    high: float
    taken: float
    label: float

    def weight(self, t: int) -> float:
        """|w_t|."""
        return t * self.push * SLACK

    def speed(self, t: int, decays: bool) -> float:
        """|v_t|: sums of pushes less what decays, which is at most |w| and another w."""
        return (2 * t + 1 if decays else 1) * self.push * SLACK


def invariant(target: Descent, link: Link, box: Box, margin: float) -> Along:
    """The lemma at the top; margin: how far the network's arguments may be from exact ones."""
    mu, rate = target.momentum, target.rate
    taken, label = (box.y if link.form == form else 0.0 for form in ("residual", "labelled"))
    low, high = box.keeps or (-FARTHEST, FARTHEST)
    decay = max(map(float, target.decays)) * SLACK
    if link.line is not None:
        c, d = (float(one) * SLACK for one in link.line)
        grown = (1 + mu) / (1 - mu) * SLACK
        rms = grown * (c * taken + label + abs(d)) * SLACK
        most = math.sqrt(box.examples) * rms * SLACK
        steepest = min(box.limit / rate, c * box.length**2 + decay) * SLACK
        eigenvalue = min(steepest / c * SLACK**2, box.length**2) * SLACK
        push = rate * math.sqrt(steepest / c * SLACK**2) * rms / (1 - mu) * SLACK
        reach = (most + abs(d) + label) / c * SLACK**3
    else:
        if box.curvature is None:
            raise NotVerified("a curved link without a condition on curvature")
        slope, less, limit = box.curvature
        require(slope > 0 and less >= 0, "a condition on curvature of a slope that is not above 0")
        require(rate * decay <= 2 * (1 + mu), "the decay alone makes paths diverge")
        eigenvalue = min((limit / rate - less) / slope, box.length**2) * SLACK
        require(eigenvalue > 0, "a condition on curvature that no prompt keeps")
        per = box.length * target.times * rate * math.sqrt(eigenvalue) / (1 - mu) * SLACK**3
        reach, most, found = taken, 0.0, 1.02 * taken + 1e-6
        while not found <= reach:
            reach = 1.02 * found
            require(reach <= FARTHEST, "arguments of links may lie too far from 0")
            ends = max(low, -reach) - margin, min(high, reach) + margin
            most = (max(map(abs, between(link, *ends))) + label) * SLACK
            found = per * most + taken
        rms, push = most, rate * math.sqrt(eigenvalue) * most / (1 - mu) * SLACK
    reach = min(reach, (box.length * target.times * push + taken) * SLACK)
    return Along(eigenvalue, rms, most, push, max(low, -reach), min(high, reach), taken, label)


class BoxPath(Path):
    """What holds along exact paths on all prompts of a box, and links of a path that is `stated` away at most."""

    def __init__(self, target: Descent, link: Link, box: Box, stated: float) -> None:
        self.target, self.link, self.box, self.lost = target, link, box, [0.0] * target.times
        margin = box.length * stated * 1.01
        self.along = along = invariant(target, link, box, margin)
        require(along.low < along.high, "a condition that no prompt keeps")
        low, high, rate = along.low - margin, along.high + margin, target.rate
        self.decay = max(map(float, target.decays)) * SLACK
        self.steep, self.growth = (float(link.line[0]) * SLACK, 1.0) if link.line is not None else (0.0, None)
        steepest = box.curvature[0] if box.curvature is not None else 0.0
        met = (0.0, 0.0) if link.line is not None else slopes(link, low, high, enough=(0.0, steepest))
        least, most = (rate * x * along.eigenvalue * SLACK for x in met)
        self.least, self.most = min(least, 0.0), max(most, 0.0) + rate * self.decay * SLACK
        last = (along.weight(target.times) + stated * 1.01) * SLACK
        aim = 0.02 * stated / (target.times * rate * math.sqrt(target.size * along.eigenvalue))
        self.met, self.weight = At(low, high, box.y, last * box.length, self._weight(last), aim), self._weight(last)

    def read(self, step: Step, model: Arithmetic) -> None:
        self.taken = self.box.y if step.carriers == "each" else self.along.taken
        at = replace(self.met, terms=(self.met.terms + self.taken) * SLACK)
        self.errors = {k: LinkError(step.score, heads, self.link, at, model) for k, heads in enumerate(step.heads)}

    def _weight(self, w: float) -> float:
        """A bound on the sum of |w_j|, for |w| at most this, and on the entries of rows."""
        return max(math.sqrt(self.target.size) * w, *self.box.a, self.box.y) * SLACK

    def at(self, t: int, e: float, wide: float, apart: float) -> tuple[Moments, float, float]:
        along, box, size, length = self.along, self.box, self.target.size, self.box.length
        w, speed = along.weight(t), along.speed(t, self.decay > 0 and self.link.line is None)
        terms, weight = ((w + wide) * length + self.taken) * SLACK, self._weight(w + wide)
        each = self.errors.values()
        wrong = sum(one.total(terms, terms, weight) + float(one.steep.max()) * length * apart for one in each)
        rms = along.rms + self.steep * math.sqrt(along.eigenvalue) * e + wrong
        most = along.most + self.steep * length * e + wrong
        terms = most if self.errors else terms
        moments = box_moments(
            along.eigenvalue, length, max(box.a), size, rms * SLACK, most * SLACK, terms * SLACK, weight, box.examples,
            wrong,
        )  # fmt: skip
        return moments, w, speed
