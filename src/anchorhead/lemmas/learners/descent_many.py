"""The proof for a network of many learners (incontext.many_layers) on one prompt.

Exact is what the rows of the prompt say, w <- w - F(w), F(w) = (1/N) sum_i v_i (phi_i(w . x_i - a_i) - b_i). With
c_i = v_ij / x_ij for the largest entry of x_i, two paths' difference is multiplied by

    I - (1/N) sum_i c_i phi_i' x_i x_i'  -  (1/N) sum_i phi_i' (v_i - c_i x_i) x_i'

for slopes phi_i' between `least` and `slope` (mean value theorem). The first two terms have norm at most
1 + mean(c |least below 0| |x|^2) as long as the largest eigenvalue of mean(c slope x x') is at most 2; the last one is
what v has been rounded by.

The registers of w and -w may come to differ in more than sign, so let w+ and w- be what they carry. Scores see
w~ = (w+ - w-)/2 alone, because a softmax of two logits depends on their difference; w~ follows the descent, each step
erring by the f of either register's update at most, and (w+ + w-)/2 changes by at most f a step. w+ is their sum.

A step errs in the score by tanh in place of a line,

    sum_a o_a tanh(h_a s) = k_0 s - k_1 s^3/3 + k_2 2 s^5/15 + rest,  |rest| <= sum |o_a| 1.56 rho^7/(1 - rho^2)

(Cauchy's estimate on the unit circle, |tanh| <= tan 1 there), then in the link by its head, and in what is collected
as the squared loss does (learners.descent_squared), with links in the place of residuals, known to the heads up to
an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.lemmas.learners.average import Moments, step_error
from anchorhead.lemmas.learners.link_reading import facts_of, outward, reading_error
from anchorhead.lemmas.learners.loop import DescentBound, Drift, RateTooLarge, eigenvalue_bound, length_of, lengths
from anchorhead.lemmas.learners.many import ManyStep, read
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.heads.link_heads import LinkFacts
from anchorhead.targets.descent import Descent
from anchorhead.targets.expressions.precision import FLOAT64_BITS, precision
from anchorhead.targets.losses import named_loss
from anchorhead.targets.many_learners import ManyLearners, Rows

__all__ = ["METHOD", "bound_for_rows", "read", "steepness"]
METHOD = (
    "tanh for scores and sinh for sums by their series, links by their heads; softmax and sums in any order of "
    "rounding; errors of the steps add up, because a safe rate brings paths no further apart"
)
TAN_1 = 1.56
MARGINS = (1e-4, 0.1, 2.0, 16.0)
"""By how much scores may be off, tried in turn: the narrower the range, the tighter its facts."""
Array = Float[np.ndarray, " rows"]


@dataclass(frozen=True, eq=False)
class _Links:
    """Facts of each row's link, on the scores that come up; reading: the rounding of its head."""

    least: Array
    slope: Array
    size: Array
    error: Array
    reading: Array
    low: Array
    high: Array

    @property
    def steepest(self) -> Array:
        return np.maximum(self.slope, -self.least)


def bound_for_rows(step: ManyStep, target: ManyLearners, rows: Rows, model: Arithmetic) -> DescentBound:
    """For one prompt; raises RateTooLarge. Infinite where scores leave the range in which heads serve."""
    path = target.path(rows)
    if not np.isfinite(path).all():
        raise RateTooLarge("the rate is too large for this prompt: its descent diverges")
    found = DescentBound(np.inf, {})
    for margin in MARGINS:
        found = _bound(step, target, rows, _links(step, target, rows, path, margin, model), model)
        if np.isfinite(found.total):
            break
    return found


def _bound(step: ManyStep, target: ManyLearners, rows: Rows, links: _Links, model: Arithmetic) -> DescentBound:
    growth = _growth(rows, links)
    ours, spread, rounding, reference = Drift(growth=growth), Drift(), Drift(growth=growth), Drift(growth=growth)
    w = rows.start
    for _ in range(target.steps):
        at = _Place(step, target, rows, links, w, ours.bound + reference.bound, spread.bound)
        every, of_rounding = at.error(model)
        w, own = at.next(w)
        ours.step(every)
        spread.step(every)
        rounding.step(2 * of_rounding)
        reference.step(own)
        if not np.isfinite(ours.bound):
            break
    total = UP * (ours.bound + spread.bound)
    method = max(total - rounding.bound, 0.0) if np.isfinite(total) else np.inf
    return DescentBound(total, {"heads in place of scores, links and sums": method, "rounding": rounding.bound})


def steepness(slope: Array, rows: Rows) -> float:
    """The largest eigenvalue of mean(c slope x x'): at most 2 for a safe rate."""
    return eigenvalue_bound(rows.x * np.sqrt(_scale(rows) * slope)[:, None] * (1 + 1e-15)) * UP


def _scale(rows: Rows) -> Array:
    """c_i, by which x_i is multiplied to make v_i, but for rounding."""
    place = np.abs(rows.x).argmax(axis=1)[:, None]
    x, v = (np.take_along_axis(one, place, axis=1)[:, 0] for one in (rows.x, rows.v))
    scale = np.divide(v, x, out=np.zeros_like(x), where=x != 0)
    if not (scale >= 0).all():
        raise CertificateError("a row's v points away from its x: that is no descent")
    return scale


def _growth(rows: Rows, links: _Links) -> float:
    steepest = steepness(np.maximum(links.slope, 0.0), rows)
    if not steepest <= 2:
        raise RateTooLarge(
            f"the rate is too large for this prompt: errors may grow from step to step. At most {2 / steepest:.4g} of "
            "it is safe"
        )
    scale, length = _scale(rows), lengths(rows.x)
    wrong = lengths(rows.v - scale[:, None] * rows.x) + 4 * FLOAT64.unit * scale * length
    rise = scale * np.maximum(-links.least, 0.0) * length**2 + links.steepest * wrong * length
    return 1 + UP * float(rise.mean())


def _links(
    step: ManyStep, target: ManyLearners, rows: Rows, path: np.ndarray, margin: float, model: Arithmetic
) -> _Links:
    """Facts on a range that is wider by the margin than that of the path in float64."""
    scores = rows.x @ path.T - rows.a[:, None]
    facts: list[tuple[LinkFacts, float, float, float] | None] = []
    for number, (parts, loss) in enumerate(zip(step.links, target.losses, strict=True)):
        mine = scores[rows.loss == number]
        if not mine.size:
            facts.append(None)
            continue
        low, high = float(mine.min()), float(mine.max())
        low, high = outward(low - margin, high + margin)
        found = facts_of(parts, loss.link, low, high)
        reading = reading_error(parts, low, high, 0.0, 0, model)
        facts.append((found, reading, max(low, found.low), min(high, found.high)))
    columns = np.zeros((7, len(rows.a)))
    for number, one in enumerate(facts):
        if one is not None:
            found, reading, low, high = one
            numbers = (found.least, found.slope, found.size, found.error, reading, low, high)
            columns[:, rows.loss == number] = np.array(numbers)[:, None]
    return _Links(*columns)


class _Place:
    """A step from any w within `drift` of the given one, with registers that differ by at most `spread`."""

    def __init__(
        self,
        step: ManyStep,
        target: ManyLearners,
        rows: Rows,
        links: _Links,
        w: Float[np.ndarray, " weights"],
        drift: float,
        spread: float,
    ) -> None:
        self.step, self.target, self.rows, self.links = step, target, rows, links
        self.drift, self.spread = drift, spread
        size, weights = np.abs(rows.x), len(w)
        self.w = np.abs(w) + drift + spread
        scores = rows.x @ w
        self.terms = UP * size @ np.abs(w)
        noise = float(FLOAT64.gamma(weights + 2)) * (self.terms + np.abs(rows.a))
        self.moved = UP * (lengths(rows.x) * drift + noise)
        self.score = np.abs(scores) + self.moved
        self.argument = scores - rows.a
        self.link, self.link_error = self._computed_links()
        self.size = np.abs(self.link) + self.link_error + links.steepest * self.moved

    @precision(FLOAT64_BITS)
    def _computed_links(self) -> tuple[Array, Array]:
        """phi_i - b_i at the arguments as float64 has them, and how far that is from exact."""
        found, error = np.empty(len(self.argument)), np.empty(len(self.argument))
        for i, (s, number) in enumerate(zip(self.argument.tolist(), self.rows.loss.tolist(), strict=True)):
            ball = self.target.losses[number].link.ball({"x": arb(s)})
            found[i] = float(ball.mid())
            error[i] = upper(abs(ball - found[i]))
        link = found - self.rows.b
        return link, error + FLOAT64.unit * np.abs(link)

    def next(self, w: Float[np.ndarray, " weights"]) -> tuple[Float[np.ndarray, " weights"], float]:
        """The next w of the path in float64, and its own error."""
        rows, n, weights = self.rows, len(self.rows.a), len(w)
        move = rows.v.T @ self.link / n
        size = np.abs(rows.v)
        noise = float(FLOAT64.gamma(weights + 2)) * (self.terms + np.abs(rows.a))
        wrong = self.links.steepest * noise + self.link_error + float(FLOAT64.gamma(n + 3)) * np.abs(self.link)
        own = size.T @ wrong / n + 2 * FLOAT64.unit * (np.abs(w) + np.abs(move))
        return w - move, length_of(own)

    def error(self, model: Arithmetic) -> tuple[float, float]:
        """The length by which either register's update errs, and how much of that is rounding."""
        rows = self.rows
        score, score_rounding = self._score_error(model)
        low, high = (self.argument + sign * (self.moved + score) for sign in (-1, 1))
        if not ((low >= self.links.low).all() and (high <= self.links.high).all()):
            return np.inf, np.inf
        if not float(np.maximum(-low, high).max()) <= self.step.most:
            return np.inf, np.inf
        parts = max(len(one) for one in self.step.links)
        read = self.links.size + self.links.error + self.links.reading
        rounding = self.links.steepest * score_rounding + self.links.reading
        rounding = rounding + float(model.gamma(parts + 1)) * (read + np.abs(rows.b)) + 4 * model.tiny
        wrong = self.links.steepest * score + self.links.error + rounding
        collected = [step_error(self.step.collect, _unit(len(self.w)), self._at(e), model) for e in (wrong, rounding)]
        return collected[0].of_weights, collected[1].rounding

    def _at(self, wrong: Array) -> Moments:
        """What is collected: links, known up to `wrong`, in the place of residuals, and v in that of x."""
        return Moments.of(np.abs(self.rows.v), self.size, self.w, np.zeros_like(self.w), wrong=wrong)

    def _score_error(self, model: Arithmetic) -> tuple[Array, Array]:
        """What a score is wrong by, and how much of that is rounding."""
        heads = [(Fraction(h), Fraction(o)) for h, o in self.step.score]
        h, o = (np.array([float(one) for one in column])[:, None] for column in zip(*heads, strict=True))
        k0, k1, k2 = (float(abs(sum((o * h**m for h, o in heads), Fraction(-(m == 1))))) for m in (1, 3, 5))
        s, rho = self.score, h * self.score
        if not (rho < 0.25).all():
            return np.full_like(s, np.inf), np.full_like(s, np.inf)
        method = k0 * s + k1 * s**3 / 3 + k2 * 2 * s**5 / 15
        method = method + (np.abs(o) * TAN_1 * rho**7 / (1 - rho**2)).sum(axis=0)
        reach = np.abs(self.rows.x) @ self.w
        lost = 4 * (len(self.w) + 2) * model.tiny * (1 + self.w.sum() + np.abs(self.rows.x).sum(axis=1))
        logit = float(model.gamma(len(self.w) + 1)) * h * reach * UP + lost
        moved = logit + model.unit * (2 * rho + 2 * logit) + model.exp_error
        if not (moved < 0.1).all():
            return np.full_like(s, np.inf), np.full_like(s, np.inf)
        one = np.exp(2 * moved) * (np.expm1(moved) + float(model.gamma(5)))
        read = rho + one
        rounding = (np.abs(o) * one).sum(axis=0)
        sums = float(model.gamma(len(heads) + 2)) * ((np.abs(o) * read).sum(axis=0) + np.abs(self.rows.a))
        rounding = UP * (rounding + sums) + 100 * model.tiny * float(np.abs(o).sum())
        return UP * method + rounding, rounding


def _unit(weights: int) -> Descent:
    """A descent whose update is the mean itself."""
    return Descent(named_loss("squared"), 1, 1.0, weights)
