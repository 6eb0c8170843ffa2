"""The bound for one prompt.

The exact path is followed first, as midpoints of balls whose radii are errors of its own steps. Arguments of links
are then known up to |x_i| times the distance of the paths, and so are links, slopes and errors, example by example.

Two paths' difference is multiplied by I - rate (mean_i phi_i' v_i x_i' + decay) for slopes phi_i' that are met. With
v_i = c_i x_i + d_i and c_i >= 0 that is a symmetric matrix, whose eigenvalues lie between 1 - rate times the norm of
mean c max(phi', 0) x x' + decay, and 1 + rate times that of mean c max(-phi', 0) x x', up to rate mean |phi'| |d| |x|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat

from anchorhead.verify.balls import above, below, precision
from anchorhead.verify.errors import require
from anchorhead.verify.learners.average import Moments, prompt_moments
from anchorhead.verify.learners.growth import ball, matrix, norm, weighted
from anchorhead.verify.learners.heads import At
from anchorhead.verify.learners.link import FINE, Link, slopes
from anchorhead.verify.learners.link_error import LinkError
from anchorhead.verify.learners.shown import Rows
from anchorhead.verify.learners.step import Path, Step
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.rounding import SLACK, Arithmetic


class Exact:
    """Exact descent on one prompt, as midpoints of balls. z: arguments of links; rest: the links, to be averaged."""

    def __init__(self, target: Descent, links: Sequence[Link], rows: Rows) -> None:
        self.target, self.links, self.rows = target, links, rows
        self.x, self.across = matrix(rows.x), matrix(rows.v).transpose()
        self.a, self.b, self.y = ([arb(float(one)) for one in column] for column in (rows.a, rows.b, rows.y))
        self.w, self.v = (matrix(one[:, None]) for one in (rows.start, np.zeros(target.size)))
        self._average()

    def _average(self) -> None:
        self.z = [s - a for s, a in zip((self.x * self.w).entries(), self.a, strict=True)]
        each = zip(self.rows.link.tolist(), self.z, self.y, self.b, strict=True)
        self.rest = arb_mat([[self.links[k].phi.ball({"x": z, "y": y}) - b] for k, z, y, b in each])

    def now(self) -> tuple[np.ndarray, ...]:
        """The ends of arguments (n, 2), and bounds on links, |w_j| and |v_j|."""
        sizes = [np.array([above(abs(x)) for x in one.entries()]) for one in (self.rest, self.w, self.v)]
        return np.array([(below(z), above(z)) for z in self.z]), *sizes

    def step(self) -> float:
        """One step; returns how far the midpoints are from what a step gives."""
        target = self.target
        pull = [[ball(decay) * one] for decay, one in zip(target.decays, self.w.entries(), strict=True)]
        gradient = self.across * self.rest / arb(len(self.z)) + arb_mat(pull)
        moved = self.v * arb(target.momentum) - gradient * arb(target.rate)
        after = (self.w + moved).entries()
        for j, tau in enumerate(target.thresholds):
            if tau is not None:
                after[j] = positive_part(after[j] - ball(tau)) - positive_part(-after[j] - ball(tau))
        lost = sum(above(one.rad()) for one in (*after, *moved.entries()))
        self.w, self.v = (arb_mat([[one.mid()] for one in each]) for each in (after, moved.entries()))
        self._average()
        return lost * SLACK


def positive_part(x: arb) -> arb:
    return (x + abs(x)) / 2


class PromptPath(Path):
    """What holds along the exact path on one prompt, and of links, example by example, `stated` away at most."""

    def __init__(self, target: Descent, links: Sequence[Link], rows: Rows, stated: float) -> None:
        self.target, self.rows, self.links = target, rows, links
        self.size, n = np.abs(rows.x), len(rows.x)
        self.reach, self.entries = np.sqrt((rows.x**2).sum(axis=1)) * SLACK, self.size.sum(axis=1)
        self.entry = max(float(np.abs(one).max()) for one in (rows.x, rows.v, rows.a, rows.b, rows.y))
        self.room = room = stated * 1.02
        with precision():
            path = Exact(target, links, rows)
            self.seen: list[tuple[np.ndarray, ...]] = []
            self.lost: list[float] = []
            for _ in range(target.times):
                self.seen.append(path.now())
                self.lost.append(path.step())
            self.weight = max(self._weight(w, room) for _, _, w, _ in (*self.seen, path.now()))
        self.eigenvalue = norm(weighted(rows.v, np.ones(n), (Fraction(0),) * target.size))
        self.met = np.zeros((n, 2))
        self.ends: dict[int, tuple[float, float]] = {}
        for k in sorted(set(rows.link.tolist())):
            own = rows.link == k
            ends = np.array([one[0][own] for one in self.seen])
            more = float(self.reach.max()) * room
            self.ends[k] = float(ends.min()) - more, float(ends.max()) + more
            self.met[own] = slopes(links[k], *self.ends[k], FINE if links[k].form != "both" else math.inf)
        self._between()

    def read(self, step: Step, model: Arithmetic) -> None:
        rows, target, self.errors = self.rows, self.target, {}
        self.taken = np.abs(rows.y) if step.carriers == "each" else np.abs(rows.a)
        sums = [float((self.size @ w + self.taken + self.entries * self.room).max()) for _, _, w, _ in self.seen]
        aim = 0.02 / 1.02 * self.room / (target.times * target.rate * math.sqrt(self.eigenvalue) + 1e-300)
        for k, ends in self.ends.items() if step.heads else ():
            own = rows.link == k
            at = At(*ends, float(np.abs(rows.y[own]).max()), max(sums) * SLACK, self.weight, aim)
            off = float(np.abs(rows.a[own]).max()) if step.score is not None and step.score.taken else 0.0
            self.errors[k] = LinkError(step.score, step.heads[k], self.links[k], at, model, off)

    def _weight(self, w: np.ndarray, wide: float) -> float:
        """A bound on the sum of |w_j|, where w may be off by so much, and on the entries of rows."""
        return max(float(w.sum()) + math.sqrt(self.target.size) * wide, self.entry) * SLACK

    def _between(self) -> None:
        """Between what rate H lies, and the growth of errors."""
        target, rows, rate, met = self.target, self.rows, self.target.rate, self.met
        scale, line, none = rows.scale, self.links[0].line, tuple(0 * one for one in target.decays)
        off = np.sqrt(((rows.v - scale[:, None] * rows.x) ** 2).sum(axis=1)) + 4e-16 * scale * self.reach
        off = off * float(rows.v is not rows.x)
        most = rate * norm(weighted(rows.x, scale * np.maximum(met[:, 1], 0.0) * SLACK, target.decays)) * SLACK
        least = -rate * norm(weighted(rows.x, scale * np.maximum(-met[:, 0], 0.0) * SLACK, none)) * SLACK
        more = rate * float((np.abs(met).max(axis=1) * off * self.reach).mean()) * SLACK
        self.least, self.most, self.growth = least - more, most + more, None
        if line is None or len(set(rows.link.tolist())) > 1 or off.any():
            return
        require(most <= 2 * (1 + target.momentum), "the rate is too large for this prompt: errors may grow")
        exact = weighted(rows.x, scale * float(line[0]), target.decays, rate)
        self.least, self.growth = 0.0, 1.0 if target.momentum else min(1.0, norm(exact) * SLACK)

    def at(self, t: int, e: float, wide: float, apart: float) -> tuple[Moments, float, float]:
        ends, found, w, v = self.seen[t]
        moved = self.reach * e
        weight = self._weight(w, wide)
        sums = (self.size @ w + self.taken + self.entries * wide) * SLACK
        wrong, steep = np.zeros(len(moved)), np.abs(self.met).max(axis=1)
        for k, error in self.errors.items():
            own = self.rows.link == k
            near = ends[own, 0] - moved[own], ends[own, 1] + moved[own]
            wrong[own], steep[own] = error.each(*near, sums[own], weight)
        wrong = wrong + steep * self.reach * apart
        g = (found + steep * moved + wrong) * SLACK
        require(bool(np.isfinite(g).all()), "the links of this prompt have no bound")
        terms = float((g if self.errors else sums).max())
        moments = prompt_moments(self.rows.v, self.eigenvalue, g, terms, weight, wrong)
        return moments, _length(w), _length(v)


def _length(x: np.ndarray) -> float:
    return float(np.sqrt((x**2).sum())) * SLACK
