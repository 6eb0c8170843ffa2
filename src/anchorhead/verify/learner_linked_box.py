"""The bound for all prompts of a box, for descent on any loss by score, link and collect.

*The exact path.* A straight link s - y leaves residuals as in learner_squared. Any other is bounded, by G with the label, on
the range of its argument, so a step pushes w by at most rate min(max|a|, sqrt(L)) G, L the largest eigenvalue of mean a a',
of which the condition on curvature says how large it may be; w = sum_k p_k(decay) (pushes) gives |w_t| <= t push/(1 - mu).

*A step* writes phi(z) up to e = (slope of phi near z) |score - z| + the head's error + rounding. Where scores are far from z,
because z is large, both lie beyond some t where phi has settled, and e is at most what phi still moves from there on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.functions import behaviour
from anchorhead.verify.learner_average import Moments, box_moments
from anchorhead.verify.learner_growth import Drift, Varying
from anchorhead.verify.learner_link import Link, Steepness, slopes, steepness
from anchorhead.verify.learner_linked import LinkedStep
from anchorhead.verify.learner_squared import Box
from anchorhead.verify.learner_target import Descent
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar import Claim, Proven, prove

FARTHEST = 2.0**20
"""Arguments beyond this are not followed."""


@dataclass(frozen=True)
class Curved:
    """What a certificate states for a curved link: rate (slope L + decay) <= limit, and where arguments keep to."""

    slope: float
    decay: float
    limit: float
    keeps: tuple[float, float] | None


class LinkError:
    """How far computed links are from phi(z) on a range of arguments.

    range   of z along the network's path, with room for drift       aim   an error of the head that is good enough
    """

    def __init__(
        self, step: LinkedStep, link: Link, low: float, high: float, label: float, terms: float, weight: float, aim: float,
        model: Arithmetic,
    ) -> None:  # fmt: skip
        """terms, weight: the largest that `total` is asked for."""
        self.step, self.link, self.model = step, link, model
        self.low, self.high, self.label = low, high, label
        self.cells: Steepness = steepness(link.phi, low, high)
        self.reach = np.maximum(np.abs(self.cells.low), np.abs(self.cells.high))
        wrong = step.score.distance(self.reach) + self._rounding(self.reach, terms, weight)
        near = wrong <= self.cells.room
        more = float((wrong * near).max(initial=0.0)) * SLACK
        top = step.score.most
        whole = not near.all()
        self.head = (-top if whole else max(low - more, -top)), (top if whole else min(high + more, top))
        self.proven: Proven = prove(list(step.parts), Claim(link.phi, 1.0, 0.0, 1.0, 0.0), [self.head], model, aim)
        self.settled = np.array([math.inf if one else self._settles(n) for n, one in enumerate(near)])

    def _rounding(self, reach: np.ndarray, terms: float, weight: float) -> np.ndarray:
        return self.step.score.rounding(reach, np.full_like(reach, terms), weight, self.model)

    def _settles(self, number: int) -> float:
        """What phi still moves beyond the cell and beyond the scores that are written for it."""
        cells, score = self.cells, self.step.score
        up = cells.low[number] >= 0
        if not score.grows or (not up and cells.high[number] > 0):
            return math.inf
        inner = cells.low if up else -cells.high
        before = (inner >= 0) & (inner <= inner[number])
        least = float((inner[before] - score.distance(inner[before])).max()) - 0.01
        least = min(least, float(inner[number]))
        if not least > 0:
            return math.inf
        most = max(score.most, self.high if up else -self.low)
        found = behaviour(self.link.phi, *((least, most) if up else (-most, -least)))
        return found.high - found.low

    def total(self, farthest: float, terms: float, weight: float) -> float:
        """e, for |z| <= farthest, logits over h that sum up `terms`, and sum |w_j| <= weight."""
        cells = self.cells
        met = np.flatnonzero(np.maximum(cells.low, -cells.high) <= farthest)
        reach = np.minimum(self.reach, farthest)[met]
        found = self._each(reach, np.full_like(reach, terms), weight, cells.near[met], cells.room[met], self.settled[met])
        return float(found.max())

    def each(self, low: np.ndarray, high: np.ndarray, terms: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """e_i, and a bound on |slopes| of phi, for z_i between low_i and high_i."""
        cells = self.cells
        first = np.clip(np.searchsorted(cells.low, low, side="right") - 1, 0, None)
        last = np.clip(np.searchsorted(cells.low, high, side="right") - 1, 0, None)
        steep, room, settled = cells.near[first], cells.room[first], self.settled[first]
        for k in range(1, int((last - first).max()) + 1):
            here = np.minimum(first + k, last)
            steep, room = np.maximum(steep, cells.near[here]), np.minimum(room, cells.room[here])
            settled = np.maximum(settled, self.settled[here])
        reach = np.maximum(np.abs(low), np.abs(high))
        return self._each(reach, terms, weight, steep, room, settled), steep

    def _each(
        self, reach: np.ndarray, terms: np.ndarray, weight: float, steep: np.ndarray, room: np.ndarray, settled: np.ndarray
    ) -> np.ndarray:
        model = self.model
        rounding = self.step.score.rounding(reach, terms, weight, model)
        wrong = self.step.score.distance(reach) + rounding
        moved = np.where(wrong <= room, steep * wrong, np.inf)
        found = np.minimum(moved, np.where(rounding <= 0.005, settled, np.inf))
        read = float(self.proven.reach.sum())
        sums = float(model.gamma(len(self.step.parts) - 1)) * read
        sums += model.unit * (read + self.label) if self.label else 0.0
        return (found + self.proven.total + sums + 4 * model.tiny) * SLACK


def bound_for_linked_box(
    step: LinkedStep, target: Descent, link: Link, box: Box, given: Curved | None, stated: float, model: Arithmetic
) -> float:
    mu, size, rate = target.momentum, target.size, target.rate
    labels = box.y if link.form == "labelled" else 0.0
    taken = box.y if link.form == "residual" else 0.0
    straight = given is None
    grown = (1 + mu) / (1 - mu) * SLACK
    decay = max(float(one.upper()) for one in target.decays) * SLACK
    margin = box.length * stated * 1.01
    if given is None:
        require(link.form == "residual" and len(link.phi.nodes) == 1, "a curved link without a condition on curvature")
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
        found = behaviour(link.phi, low - margin, high + margin)
        rms = most = (max(abs(found.low), abs(found.high)) + labels) * SLACK
        push = rate * math.sqrt(eigenvalue) * most / (1 - mu) * SLACK
        farthest = (box.length * target.times * push + taken) * SLACK
        require(farthest <= FARTHEST, "arguments of links may lie too far from 0")
        low, high = max(low, -farthest), min(high, farthest)
        between = slopes(link.phi, low - margin, high + margin)
        least, steepest = (rate * x for x in between)
        least, steepest = min(least, 0.0) * eigenvalue * SLACK, (max(steepest, 0.0) * eigenvalue + rate * decay) * SLACK
    aim = 0.02 * stated / (target.times * rate * math.sqrt(size * eigenvalue))
    last = (target.times * push + margin) * SLACK
    errors = LinkError(
        step, link, low - margin, high + margin, labels, last * box.length + taken, math.sqrt(size) * last, aim, model
    )
    drift = Drift(mu) if straight else Varying(mu)
    for t in range(target.times):
        e = drift.bound
        w = (t * push + e) * SLACK
        v = ((2 * t + 1 if decay and not straight else 1) * push + drift.velocity) * SLACK
        terms, weight = (w * box.length + taken) * SLACK, math.sqrt(size) * w * SLACK
        if not box.length * e <= margin:
            raise NotVerified(f"after {t} steps paths may be {e:.3g} apart, more than what is stated")
        wrong = errors.total(terms, terms, weight)
        more = (math.sqrt(eigenvalue) * e + wrong, box.length * e + wrong) if straight else (wrong, wrong)
        at = box_moments(
            eigenvalue, box.length, max(box.a), size, (rms + more[0]) * SLACK, (most + more[1]) * SLACK,
            (most + more[1]) * SLACK, weight, box.examples, wrong,
        )  # fmt: skip
        found_w, apart = linked_error(step, target, at, w, v, model)
        if isinstance(drift, Varying):
            drift.step(found_w, apart, least, steepest)
        else:
            drift.step(found_w, apart)
        if not math.isfinite(drift.bound):
            return math.inf
    return drift.bound


def linked_error(
    step: LinkedStep, target: Descent, at: Moments, w: float, v: float, model: Arithmetic
) -> tuple[float, float]:
    """What a step errs by in w, and how far apart its errors in w and v are."""
    method, rounding, size = step.average.error(target.rate, at, model)
    if not math.isfinite(method + rounding):
        return math.inf, math.inf
    of_w, of_v = step.update.error(w, v, size, model)
    total = method + rounding + of_w
    if step.clip is not None:
        total = total + step.clip.error((step.update.kept * w + size + total) * SLACK, model)
    return total * SLACK, (of_w + of_v) * SLACK
