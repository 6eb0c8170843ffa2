"""The bound for one prompt.

The exact path is followed first, as midpoints of balls whose radii are errors of its own steps. Arguments of links
are then known up to |a_i| times the distance of the paths, and so are links, slopes and errors, example by example.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb, arb_mat

from anchorhead.verify.balls import above, below, precision
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.learners.average import prompt_moments
from anchorhead.verify.learners.growth import Drift, Varying, curvature, matrix
from anchorhead.verify.learners.layers import Step
from anchorhead.verify.learners.link import Link, slopes
from anchorhead.verify.learners.link_error import LinkError
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.rounding import SLACK, Arithmetic


class Path:
    """Exact descent on one prompt, as midpoints of balls. z: arguments of links; rest: the links, to be averaged."""

    def __init__(self, target: Descent, link: Link, A: np.ndarray, y: np.ndarray) -> None:
        self.target, self.link, self.A = target, link, matrix(A)
        self.y = matrix((y if link.form == "residual" else np.zeros_like(y))[:, None])
        self.labels = [arb(float(one)) if link.form == "labelled" else arb(0) for one in y]
        self.across = self.A.transpose()
        self.n = len(A)
        self.w = self.v = matrix(np.zeros((target.size, 1)))
        self.rest = self._averaged()

    def _averaged(self) -> arb_mat:
        self.z = (self.A * self.w - self.y).entries()
        phi = self.link.phi
        return arb_mat([[phi.ball({"x": z}) - label] for z, label in zip(self.z, self.labels, strict=True)])

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on |w_j| and |v_j|."""
        w, v = ([above(abs(x)) for x in one.entries()] for one in (self.w, self.v))
        return np.array(w), np.array(v)

    def links(self) -> np.ndarray:
        """Bounds on their absolute values."""
        return np.array([above(abs(x)) for x in self.rest.entries()])

    def step(self) -> float:
        """One step; returns how far the midpoints are from what a step gives."""
        target, rate = self.target, arb(self.target.rate)
        gradient = self.across * self.rest / arb(self.n)
        v, w = [], []
        lost = 0.0
        entries = zip(
            self.w.entries(), self.v.entries(), gradient.entries(), target.decays, target.thresholds, strict=True
        )
        for before, speed, g, decay, threshold in entries:
            moved = arb(target.momentum) * speed - rate * (g + decay * before)
            after = before + moved
            if threshold is not None:
                after = positive_part(after - threshold) - positive_part(-after - threshold)
            lost += above(after.rad()) + above(moved.rad())
            v.append([moved.mid()])
            w.append([after.mid()])
        self.w, self.v = arb_mat(w), arb_mat(v)
        self.rest = self._averaged()
        return lost * SLACK


def positive_part(x: arb) -> arb:
    return (x + abs(x)) / 2


def bound_for_prompt(
    step: Step, target: Descent, link: Link, A: np.ndarray, y: np.ndarray, stated: float, model: Arithmetic
) -> float:
    size, n = np.abs(A), len(A)
    reach = np.sqrt((A**2).sum(axis=1)) * SLACK
    taken = np.abs(y) if link.form == "residual" else np.zeros(n)
    label = float(np.abs(y).max()) if link.form == "labelled" else 0.0
    with precision():
        path = Path(target, link, A, y)
        seen = []
        for _ in range(target.times):
            ends = np.array([(below(z), above(z)) for z in path.z])
            seen.append((ends, path.links(), *path.sizes(), path.step()))
    margin = float(reach.max()) * stated * 1.02
    low, high = (float(f([f(ends) for ends, *_ in seen])) for f in (np.min, np.max))
    low, high = low - margin, high + margin
    largest = max(float(w.sum()) for _, _, w, _, _ in seen) + math.sqrt(target.size) * stated * 1.02
    terms = (
        max(float((size @ w + taken).max()) for _, _, w, _, _ in seen) + float(size.sum(axis=1).max()) * stated * 1.02
    )
    curved = curvature(A, target.rate, target.decays)
    aim = 0.02 * stated / (target.times * target.rate * math.sqrt(curved.eigenvalue) + 1e-300)
    errors = (
        None
        if step.score is None
        else LinkError(step.score, step.parts, link, low, high, label, terms * SLACK, largest * SLACK, aim, model)
    )
    ours, own = _drifts(target, link.straight, curved.steepest, curved.contraction)
    met = slopes(link.phi, low, high)
    decay = max(above(one) for one in target.decays)
    least = target.rate * min(met[0], 0.0) * curved.eigenvalue * SLACK
    most = target.rate * (max(met[1], 0.0) * curved.eigenvalue + decay) * SLACK
    for ends, links, w, v, lost in seen:
        e = (ours.bound + own.bound) * SLACK
        if not e <= stated * 1.01:
            raise NotVerified(f"paths may be {e:.3g} apart, more than what is stated")
        moved = reach * e
        weight = float(w.sum()) + math.sqrt(target.size) * e
        sums = (size @ w + taken + size.sum(axis=1) * e) * SLACK
        wrong, steep = np.zeros(n), np.ones(n)
        if errors is not None:
            wrong, steep = errors.each(ends[:, 0] - moved, ends[:, 1] + moved, sums, weight * SLACK)
        g = (links + steep * moved + wrong) * SLACK
        if not np.isfinite(g).all():
            return math.inf
        at = prompt_moments(
            A, curved.eigenvalue, g, float((sums if errors is None else g).max()), weight * SLACK, wrong
        )
        speed = _length(v) + ours.velocity + own.velocity
        found = step.error(target.rate, at, (_length(w) + e) * SLACK, speed * SLACK, model)
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
