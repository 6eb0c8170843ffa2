"""Gradient descent on the squared loss by signed averages: the bound for all prompts of a box, and for one prompt.

*The exact path.* Let a decay count as further examples with label 0, and let r be all residuals. In the eigenvectors of H
the part of the labels that w can reach is multiplied by q_t = p_t - mu p_(t-1) (learner_growth), the rest by 1 = q_t(0),
and |q_t| <= C = (1 + mu)/(1 - mu). So mean r^2 <= C^2 mean y^2 and |r_i| <= C sqrt(n) max|y|. The gradient is at most
sqrt(|H|) C max|y|, and with rate |H| <= limit a step pushes v by at most sqrt(limit rate) C max|y|, which bounds v and w.

With a threshold (and no momentum), F = mean r^2/2 + decay |w|^2/2 + penalty |w|_1 never grows: u = (w - w')/rate - grad f(w)
is a subgradient of the penalty at w', so penalty(w) >= penalty(w') + |w - w'|^2/rate - grad f(w).(w - w'), and f(w') <= f(w)
+ grad f(w).(w' - w) + |H| |w' - w|^2/2; together F(w') <= F(w) - (1/rate - |H|/2) |w' - w|^2. So mean r^2 <= mean y^2 again,
and w' is no further from 0 than before the threshold.

*The network's path* is at most e_t away: its residuals are larger by at most |a_i| e_t, in the root mean square by
sqrt(L) e_t, L the largest eigenvalue of mean a a'. From these follows the step's error, and e_(t+1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat

from anchorhead.verify.balls import above, precision
from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Network
from anchorhead.verify.learner_average import Average, Moments, box_moments, prompt_moments
from anchorhead.verify.learner_clip import Clip, read_clip
from anchorhead.verify.learner_growth import Drift, curvature, matrix
from anchorhead.verify.learner_step import Reading, Update
from anchorhead.verify.learner_target import Descent
from anchorhead.verify.rounding import SLACK, Arithmetic


@dataclass(frozen=True, eq=False)
class Step:
    """Everything that a step does: how it reads a gradient, what becomes of w, and its threshold."""

    average: Average
    update: Update
    clip: Clip | None


def read_step(network: Network, target: Descent, stated: float, model: Arithmetic) -> Step:
    """A step of one attention, and one more for a threshold: logits carry residuals w . a - y.

    stated: the bound that is aimed at, of which a threshold may take a hundredth
    """
    require(not (target.momentum and target.shrinks), "with momentum and a threshold at once nothing is known")
    reading = Reading(network, target, target.features)
    require(len(reading.body) == 1 + target.shrinks, "a step on the squared loss is one attention, and a threshold")
    carries = {}
    for sign in (1.0, -1.0):
        form = np.zeros((reading.tokens.state.shape[1], reading.tokens.plus.shape[1]))
        for feature, column in zip(reading.w, reading.columns, strict=True):
            form[1 + feature] = reading.entry(column, sign)
        form[0] = -reading.entry(target.features + 1, sign)
        carries[sign] = form
    average, update = reading.average(reading.body[0], reading.live[1], carries)
    aim = 0.01 * stated / (target.times * math.sqrt(target.size))
    clip = read_clip(reading, reading.body[1], reading.live[2], aim, model) if target.shrinks else None
    reading.require_same()
    return Step(average, update, clip)


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


def bound_for_box(step: Step, target: Descent, box: Box, model: Arithmetic) -> float:
    mu, size = target.momentum, target.size
    grown = (1 + mu) / (1 - mu) * SLACK
    push = math.sqrt(box.limit * target.rate) * grown * box.y / (1 - mu) * SLACK
    eigenvalue = min(box.limit / target.rate, box.length**2) * SLACK
    drift = Drift(mu)
    for t in range(target.times):
        e = drift.bound
        rms = (grown * box.y + math.sqrt(eigenvalue) * e) * SLACK
        most = (grown * math.sqrt(box.examples) * box.y + box.length * e) * SLACK
        w, v = (t * push + e) * SLACK, (push + drift.velocity) * SLACK
        terms = (w * box.length + box.y) * SLACK
        at = box_moments(
            eigenvalue, box.length, max(box.a), size, rms, most, terms, math.sqrt(size) * w * SLACK, box.examples
        )
        if not _stepped(drift, step, target, at, w, v, model):
            return math.inf
    return drift.bound


def _stepped(
    drift: Drift, step: Step, target: Descent, at: Moments, w: float, v: float, model: Arithmetic
) -> bool:
    """Adds the error of one step; False where nothing is known any more."""
    method, rounding, size = step.average.error(target.rate, at, model)
    if not np.isfinite(method + rounding):
        return False
    of_w, of_v = step.update.error(w, v, size, model)
    total = method + rounding + of_w
    if step.clip is not None:
        total = total + step.clip.error((step.update.kept * w + size + total) * SLACK, model)
    drift.step(total * SLACK, (of_w + of_v) * SLACK)
    return bool(np.isfinite(drift.bound))


def bound_for_prompt(step: Step, target: Descent, A: np.ndarray, y: np.ndarray, model: Arithmetic) -> float:
    """For one prompt. A path of midpoints of balls stands for the exact one: a step's radius is its error, which is
    followed as that of the network is."""
    curved = curvature(A, target.rate, target.decays)
    limit = 2 * (1 + target.momentum)
    require(target.rate * curved.steepest * SLACK <= limit, "the rate is too large for this prompt: errors may grow")
    growth = 1.0 if target.momentum else min(1.0, curved.contraction)
    ours, own = Drift(target.momentum, growth), Drift(target.momentum, growth)
    size = np.abs(A)
    reach = np.sqrt((A**2).sum(axis=1)) * SLACK
    with precision():
        path = Path(target, A, y)
        for _ in range(target.times):
            w, v = path.sizes()
            e = (ours.bound + own.bound) * SLACK
            r = (path.residuals() + reach * e) * SLACK
            terms = float((size @ w + np.abs(y) + size.sum(axis=1) * e).max()) * SLACK
            moved, speed = _length(w) + e, _length(v) + ours.velocity + own.velocity
            at = prompt_moments(A, curved.eigenvalue, r, terms, float(w.sum() + math.sqrt(len(w)) * e), np.zeros(len(A)))
            if not _stepped(ours, step, target, at, moved * SLACK, speed * SLACK, model):
                return math.inf
            lost = path.step()
            own.step(lost, 2 * lost)
    return ours.bound


class Path:
    """Exact descent on one prompt, as midpoints of balls."""

    def __init__(self, target: Descent, A: np.ndarray, y: np.ndarray) -> None:
        self.target, self.A, self.y = target, matrix(A), matrix(y[:, None])
        self.across = self.A.transpose()
        self.n = len(A)
        self.w = self.v = matrix(np.zeros((target.size, 1)))
        self.rest = self._averaged()

    def _averaged(self) -> arb_mat:
        """What the gradient averages."""
        return self.A * self.w - self.y

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on |w_j| and |v_j|."""
        w, v = ([above(abs(x)) for x in one.entries()] for one in (self.w, self.v))
        return np.array(w), np.array(v)

    def residuals(self) -> np.ndarray:
        """Bounds on |residuals|, or on |links|."""
        return np.array([above(abs(x)) for x in self.rest.entries()])

    def step(self) -> float:
        """One step; returns how far the midpoints are from what a step gives."""
        target, rate = self.target, arb(self.target.rate)
        gradient = self.across * self.rest / arb(self.n)
        v, w = [], []
        lost = 0.0
        entries = zip(self.w.entries(), self.v.entries(), gradient.entries(), target.decays, target.thresholds, strict=True)
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


def _length(x: np.ndarray) -> float:
    return float(np.sqrt((x**2).sum())) * SLACK
