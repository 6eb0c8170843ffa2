"""The bound for one prompt: the walk along its path.

What holds along the exact path is known from a reference: the same descent in float64, with heads in place of links,
whose own distance from the exact path is followed in the same way. With e_t how far w may be at a step, arguments z_i
lie within |x_i| e_t of the reference's; the rest is lemmas.learners.follow.

Two paths' difference is multiplied by I - rate H, H = mean of phi_i' v_i x_i' + decay, phi_i' between the slopes that
the link has between the paths (lemmas.learners.loop). The prompt of a network of many learners says v_i, c_i x_i up to
rounding: what c_i x_i is off adds to H, in norm, at most the mean of |phi_i'| |v_i - c_i x_i| |x_i|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from anchorhead.errors import CertificateError
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.many_learners import ManyLearners, Rows
from anchorhead.lemmas.learners.average import Moments
from anchorhead.lemmas.learners.follow import Links, follow, steepest
from anchorhead.lemmas.learners.given import ARGUMENTS
from anchorhead.lemmas.learners.links import outward
from anchorhead.lemmas.learners.loop import (
    Off,
    PathBound,
    Paths,
    RateTooLarge,
    contraction,
    most_rate,
    require_safe_rate,
)
from anchorhead.lemmas.learners.norms import eigenvalue_bound, length_of, lengths
from anchorhead.lemmas.learners.score import Arguments, Written
from anchorhead.lemmas.learners.steps import HeadAt, Step, unit_descent
from anchorhead.lemmas.learners.threshold import require_known
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic

ROOMS = (2.0**-8, 2.0**-3, 2.0)
"""How much wider than the arguments of a path the range is on which a head is proven, relative to their size: the
first for which errors stay in it."""
Array = Float[np.ndarray, " n"]
Weights = Float[np.ndarray, " weights"]


class ScoresOutside(CertificateError):
    """A prompt takes the link's argument where its head does not serve."""


@dataclass(frozen=True, eq=False)
class Prompt(Rows):
    """The rows of a prompt of many learners, or examples as such rows, with their labels y (n,)."""

    y: Array

    @classmethod
    def of(cls, step: Step, A: Float[np.ndarray, "n weights"], y: Array) -> Prompt:
        none, which = np.zeros(len(y)), np.zeros(len(y), int)
        return cls(A, A, y if step.residual else none, y if step.labelled else none, which, np.zeros(A.shape[1]), y)

    @classmethod
    def of_rows(cls, rows: Rows) -> Prompt:
        return cls(rows.x, rows.v, rows.a, rows.b, rows.loss, rows.start, rows.b)

    def terms(self, step: Step, w: Weights) -> Array:
        """What the terms of arguments add up to, in size; where logits are made of anchors, those of labels count."""
        return np.abs(self.x) @ np.abs(w) + np.abs(self.y if step.carriers == "each" else self.a)

    def scale(self) -> Array:
        """c_i, by which x_i is multiplied to make v_i, but for rounding."""
        if self.v is self.x:
            return np.ones(len(self.x))
        place = np.abs(self.x).argmax(axis=1)[:, None]
        x, v = (np.take_along_axis(one, place, axis=1)[:, 0] for one in (self.x, self.v))
        scale = np.divide(v, x, out=np.zeros_like(x), where=x != 0)
        if not (scale >= 0).all():
            raise CertificateError("a row's v points away from its x: that is no descent")
        return scale


def steepness(slope: Array, prompt: Prompt) -> float:
    """The largest eigenvalue of mean(c slope x x')."""
    return eigenvalue_bound(prompt.x * np.sqrt(prompt.scale() * slope)[:, None] * UP) * UP


def bound_for_prompt(step: Step, target: Descent, A: np.ndarray, y: np.ndarray, model: Arithmetic) -> PathBound:
    """For one prompt of examples A (n, weights) with labels y (n,); raises RateTooLarge for a straight link,
    ScoresOutside where the head does not serve."""
    if step.carriers == "each" and len(A) != target.examples:
        raise CertificateError(f"{len(A)} examples for a network that takes {target.examples}")
    require_known(target)
    return _bound(step, target, Prompt.of(step, A, y), model)


def bound_for_rows(step: Step, target: ManyLearners, rows: Rows, model: Arithmetic) -> PathBound:
    """For one prompt of a network of many learners, whose update is the mean itself; raises RateTooLarge."""
    return _bound(step, unit_descent(target), Prompt.of_rows(rows), model)


def _bound(step: Step, target: Descent, prompt: Prompt, model: Arithmetic) -> PathBound:
    if not step.ranged:
        heads = _heads(step, prompt, np.zeros(len(prompt.y)), np.zeros(len(prompt.y)), math.inf, model)
        return AlongOne(step, target, prompt, heads).bound(model)
    low, high, terms = _range(step, target, prompt)
    found = PathBound()
    for share in ROOMS:
        room = share * (1 + max(float(np.abs(low).max()), float(np.abs(high).max())))
        if np.isfinite(room):
            heads = _heads(step, prompt, low - room, high + room, terms + room, model)
            found = AlongOne(step, target, prompt, heads).bound(model)
        if np.isfinite(found.total):
            break
    return found


@dataclass(frozen=True, eq=False)
class _Heads:
    """Heads of links on the ranges that examples need; own: in float64."""

    at: list[HeadAt]
    own: list[HeadAt]
    which: Int[np.ndarray, " n"]
    terms: float

    def fact(self, name: str) -> Array:
        return np.array([getattr(head.facts, name) for head in self.at])[self.which]

    def rounding(self, heads: list[HeadAt]) -> Array:
        return np.array([head.rounding for head in heads])[self.which]

    def between(self, low: Array, high: Array) -> tuple[Array, Array]:
        least, most = np.empty_like(low), np.empty_like(low)
        for number, head in enumerate(self.at):
            own = self.which == number
            least[own], most[own] = head.between(low[own], high[own])
        return least, most


def _heads(step: Step, prompt: Prompt, low: Array, high: Array, terms: float, model: Arithmetic) -> _Heads:
    used, which = np.unique(prompt.loss, return_inverse=True)
    found: list[list[HeadAt]] = [[], []]
    for number in used.tolist():
        own = prompt.loss == number
        ends = outward(float(low[own].min()), float(high[own].max()))
        most = float(np.abs(prompt.y[own]).max())
        for heads, kind in zip(found, (model, FLOAT64), strict=True):
            heads.append(step.head(number, *ends, terms, most, kind))
    return _Heads(found[0], found[1], which.reshape(-1), terms)


def _range(step: Step, target: Descent, prompt: Prompt) -> tuple[Array, Array, float]:
    """Between what each argument of the reference lies, and what terms of arguments add up to at most."""
    w, v = prompt.start, np.zeros(target.weights)
    low, high, most = np.full(len(prompt.y), np.inf), np.full(len(prompt.y), -np.inf), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(target.steps):
            z = prompt.x @ w - prompt.a
            low, high = np.minimum(low, z), np.maximum(high, z)
            most = max(most, float(prompt.terms(step, w).max()))
            w, v = _after(target, prompt, w, v, _values(step, prompt, z))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise RateTooLarge("the rate is too large for this prompt: its descent diverges")
    return low, high, most


def _values(step: Step, prompt: Prompt, z: Array) -> Array:
    """Links by their heads, in float64."""
    found = np.empty_like(z)
    for number, link in enumerate(step.links):
        own = prompt.loss == number
        found[own] = link.values(z[own], prompt.y[own])
    return found - prompt.b


def _after(target: Descent, prompt: Prompt, w: Weights, v: Weights, links: Array) -> tuple[Weights, Weights]:
    """w and v after one step of the reference."""
    gradient = prompt.v.T @ links / len(links) + target.decay * target.penalised * w
    v = target.momentum * v - target.rate * gradient
    return target.shrunk(w + v), v


@dataclass(frozen=True, eq=False)
class _Curvature:
    """How paths drift apart. straight: with one second derivative, growth bounding |I - rate H|; else A, of which
    A' diag(slopes) A / n and the decay make H, at most `at_most`, and what rounded rows add for a slope of 1."""

    straight: bool
    growth: float
    A: np.ndarray
    at_most: float
    off: Array

    @classmethod
    def of(cls, step: Step, target: Descent, prompt: Prompt, slope: Array) -> _Curvature:
        scale, none = prompt.scale(), np.zeros(len(prompt.y))
        if prompt.v is prompt.x and step.straight:
            require_safe_rate(prompt.x, target, float(slope.max()))
            growth = contraction(prompt.x, target) if (slope == 1).all() else 1.0
            return cls(True, growth, prompt.x, 0.0, none)
        reach = lengths(prompt.x)
        off = lengths(prompt.v - scale[:, None] * prompt.x) + 4 * FLOAT64.unit * scale * reach
        at_most = steepness(np.maximum(slope, 0.0), prompt) + target.decay
        if all(step.links[number].straight for number in set(prompt.loss.tolist())) and not target.rate * at_most <= 2:
            raise RateTooLarge(
                "the rate is too large for this prompt: errors may grow from step to step. At most "
                f"{2 / at_most:.4g} of it is safe"
            )
        A = prompt.x * np.sqrt(scale)[:, None] * UP
        return cls(False, 1.0, A, at_most, none if prompt.v is prompt.x else UP * off * reach)

    def between(self, target: Descent, least: Array, most: Array) -> tuple[float, float]:
        """Bounds on rate H, for slopes of links between these."""
        if self.straight:
            return 0.0, 0.0
        more = target.rate * float((np.maximum(np.abs(least), np.abs(most)) * self.off).mean()) * UP
        if (least >= 0).all() and target.rate * self.at_most <= most_rate(target.momentum):
            return -more, target.rate * self.at_most + more
        up, down = (np.sqrt(np.maximum(part, 0.0)) for part in (most, -least))
        highest = eigenvalue_bound(self.A * up[:, None]) + target.decay
        lowest = eigenvalue_bound(self.A * down[:, None]) if down.any() else 0.0
        return -target.rate * lowest * UP - more, target.rate * highest * UP + more


class AlongOne:
    """The invariant along the path of one prompt, with heads on given ranges: the reference, and how far it is off."""

    def __init__(self, step: Step, target: Descent, prompt: Prompt, heads: _Heads) -> None:
        self.step, self.target, self.prompt, self.heads = step, target, prompt, heads
        self.exact, self.rounding = heads.fact("error"), heads.rounding(heads.at)
        self.own = self.exact + heads.rounding(heads.own)
        self.low, self.high = heads.fact("low"), heads.fact("high")
        self.reaches, self.entries = lengths(prompt.x), np.abs(prompt.x).sum(axis=1)
        self.pushes, self.labels = np.abs(prompt.v), np.abs(prompt.b)
        self.w, self.v = prompt.start, np.zeros(target.weights)

    def bound(self, model: Arithmetic) -> PathBound:
        target, step = self.target, self.step
        if not (np.isfinite(self.own).all() and np.isfinite(self.rounding).all()):
            if not step.ranged:
                self._refuse_labels()
            return PathBound()
        self.curvature = _Curvature.of(step, target, self.prompt, self.heads.fact("slope"))
        paths = Paths(self.curvature.straight, target.momentum, self.curvature.growth)
        if not follow(self, paths, step, target, model):
            return PathBound()
        return paths.bound(apart=paths.apart if step.carriers == "pair" else 0.0)

    def _moved(self, off: Off) -> tuple[Array, Array, Array]:
        """The reference's arguments, by how much float64 may miss them, and by how much exact ones may differ."""
        z = self.prompt.x @ self.w - self.prompt.a
        lost = float(FLOAT64.gamma(self.target.weights + 2)) * self.prompt.terms(self.step, self.w)
        return z, lost, self.reaches * off.w + lost

    def arguments(self, t: int, off: Off) -> Arguments:
        prompt, wide = self.prompt, self._wide(off)
        z, _, moved = self._moved(off)
        terms = prompt.terms(self.step, self.w) + self.entries * wide
        return Arguments(z - moved, z + moved, terms, np.abs(self.w) + wide, prompt.a)

    def _wide(self, off: Off) -> float:
        """How far the w of a token that carries it may be off."""
        return off.w + off.apart * (self.step.carriers == "pair")

    def links(self, t: int, off: Off, z: Arguments, scores: Written) -> Links | None:
        """None where heads do not serve. Then the reference makes its next step."""
        step, target, prompt, n, w, v = self.step, self.target, self.prompt, len(self.prompt.y), self.w, self.v
        low, high = np.minimum(z.low, scores.low), np.maximum(z.high, scores.high)
        if not self._inside(low, high, z.terms):
            return None
        at, lost, moved = self._moved(off)
        slopes = self.heads.between(z.low, z.high)
        steep = steepest(slopes)
        read = _values(step, prompt, at)
        own_wrong = self.own + steep * lost + 4 * FLOAT64.unit * (np.abs(read) + self.labels)
        link = np.abs(read) + own_wrong + steep * moved
        speed, reach = np.abs(v) + off.v, float(z.terms.max()) if step.dots else None

        def moments(e: Array) -> Moments:
            return Moments.of(self.pushes, link, z.w, speed, reach, e)

        self.w, self.v = _after(target, prompt, w, v, read)
        own = target.rate * (self.pushes.T @ (own_wrong + float(FLOAT64.gamma(n + 8)) * link) / n)
        own = own + target.rate * target.decay * float(FLOAT64.gamma(4)) * np.abs(w)
        moving = np.abs(w) + np.abs(self.v) + target.momentum * np.abs(v) + target.rate * target.threshold
        return Links(
            steepest(self.heads.between(low, high)),
            self.exact,
            self.rounding,
            moments,
            float((steep * self.reaches**2).mean()),
            self.curvature.between(target, *slopes),
            length_of(own + 8 * FLOAT64.unit * moving),
        )

    def _inside(self, low: Array, high: Array, terms: Array) -> bool:
        """Whether heads serve; raises ScoresOutside where that can be said in words."""
        if (low >= self.low).all() and (high <= self.high).all():
            return bool((terms <= self.heads.terms).all())
        if not self.step.ranged:
            facts, loss = self.heads.at[0].facts, self.target.loss
            least, most = float(low.min()), float(high.max())
            raise ScoresOutside(
                f"the {' '.join(ARGUMENTS[loss.form])} of this prompt reach from {least:.4g} to {most:.4g}, but the "
                f"head for the link {loss.link} serves from {facts.low:g} to {facts.high:g}: build with "
                f"scores=({math.floor(least) - 1}, {math.ceil(most) + 1}), or scale the examples"
            )
        return False

    def _refuse_labels(self) -> None:
        most, loss = float(np.abs(self.prompt.y).max()), self.target.loss
        if self.target.labels is not None and most > self.target.labels:
            raise ScoresOutside(
                f"labels of this prompt reach {most:.4g}, but the grid for the link {loss.link} serves up to "
                f"{self.target.labels:g}: build with labels=({-math.ceil(most)}, {math.ceil(most)})"
            )
