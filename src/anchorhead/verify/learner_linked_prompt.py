"""The bound for one prompt, for descent on any loss by score, link and collect.

The exact path is followed first, as midpoints of balls whose radii are errors of its own steps. Arguments of links are then
known up to |a_i| times the distance of the paths, and so are links, slopes and errors, example by example.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb, arb_mat

from anchorhead.verify.balls import above, below, precision
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.learner_average import prompt_moments
from anchorhead.verify.learner_growth import Drift, Varying, curvature
from anchorhead.verify.learner_link import Link, slopes
from anchorhead.verify.learner_linked import LinkedStep
from anchorhead.verify.learner_linked_box import LinkError, linked_error
from anchorhead.verify.learner_squared import Path
from anchorhead.verify.learner_target import Descent
from anchorhead.verify.rounding import SLACK, Arithmetic


class LinkedPath(Path):
    """Exact descent; what is averaged are links in place of residuals. z: their arguments."""

    def __init__(self, target: Descent, link: Link, A: np.ndarray, y: np.ndarray) -> None:
        self.link = link
        self.labels = [arb(float(one)) for one in y]
        super().__init__(target, A, y if link.form == "residual" else np.zeros_like(y))

    def _averaged(self) -> arb_mat:
        self.z = (self.A * self.w - self.y).entries()
        off = self.labels if self.link.form == "labelled" else [arb(0)] * self.n
        return arb_mat([[self.link.phi.ball({"x": z}) - label] for z, label in zip(self.z, off, strict=True)])


def bound_for_linked_prompt(
    step: LinkedStep, target: Descent, link: Link, A: np.ndarray, y: np.ndarray, stated: float, model: Arithmetic
) -> float:
    mu, size, n = target.momentum, np.abs(A), len(A)
    straight = link.form == "residual" and len(link.phi.nodes) == 1
    reach = np.sqrt((A**2).sum(axis=1)) * SLACK
    taken = np.abs(y) if link.form == "residual" else np.zeros(n)
    label = float(np.abs(y).max()) if link.form == "labelled" else 0.0
    with precision():
        path = LinkedPath(target, link, A, y)
        seen = []
        for _ in range(target.times):
            ends = np.array([(below(z), above(z)) for z in path.z])
            seen.append((ends, path.residuals(), *path.sizes(), path.step()))
    margin = float(reach.max()) * stated * 1.02
    low, high = (float(f([f(ends) for ends, *_ in seen])) for f in (np.min, np.max))
    low, high = low - margin, high + margin
    largest = max(float(w.sum()) for _, _, w, _, _ in seen) + math.sqrt(target.size) * stated * 1.02
    terms = max(float((size @ w + taken).max()) for _, _, w, _, _ in seen) + float(size.sum(axis=1).max()) * stated * 1.02
    curved = curvature(A, target.rate, target.decays)
    aim = 0.02 * stated / (target.times * target.rate * math.sqrt(curved.eigenvalue) + 1e-300)
    errors = LinkError(step, link, low, high, label, terms * SLACK, largest * SLACK, aim, model)
    ours, own = _drifts(target, straight, curved.steepest, curved.contraction)
    between = slopes(link.phi, low, high)
    decay = max(above(one) for one in target.decays)
    least = target.rate * min(between[0], 0.0) * curved.eigenvalue * SLACK
    most = target.rate * (max(between[1], 0.0) * curved.eigenvalue + decay) * SLACK
    for ends, links, w, v, lost in seen:
        e = (ours.bound + own.bound) * SLACK
        if not e <= stated * 1.01:
            raise NotVerified(f"paths may be {e:.3g} apart, more than what is stated")
        moved = reach * e
        weight = float(w.sum()) + math.sqrt(target.size) * e
        sums = (size @ w + taken + size.sum(axis=1) * e) * SLACK
        wrong, steep = errors.each(ends[:, 0] - moved, ends[:, 1] + moved, sums, weight * SLACK)
        g = (links + steep * moved + wrong) * SLACK
        if not np.isfinite(g).all():
            return math.inf
        at = prompt_moments(A, curved.eigenvalue, g, float(g.max()), weight * SLACK, wrong)
        speed = _length(v) + ours.velocity + own.velocity
        found = linked_error(step, target, at, (_length(w) + e) * SLACK, speed * SLACK, model)
        for drift, (of_w, apart) in ((ours, found), (own, (lost, 2 * lost))):
            if isinstance(drift, Varying):
                drift.step(of_w, apart, least, most)
            else:
                drift.step(of_w, apart)
    return ours.bound


def _drifts(target: Descent, straight: bool, steepest: float, contraction: float) -> list[Drift | Varying]:
    mu = target.momentum
    if not straight:
        return [Varying(mu), Varying(mu)]
    require(target.rate * steepest * SLACK <= 2 * (1 + mu), "the rate is too large for this prompt: errors may grow")
    growth = 1.0 if mu else min(1.0, contraction)
    return [Drift(mu, growth), Drift(mu, growth)]


def _length(x: np.ndarray) -> float:
    return float(np.sqrt((x**2).sum())) * SLACK
