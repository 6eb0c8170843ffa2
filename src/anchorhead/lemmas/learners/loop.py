"""The loop: how far a path that errs a little at every step is from exact gradient descent.

Three things make a bound: how large an error may grow in a step (`growth`, here), what holds along the exact path
(an invariant: lemmas.learners.prompt and lemmas.learners.box), and how far a step errs from where it begins.

*One second derivative.* Let H be the second derivative of the objective. Without momentum a step is
w -> w - rate grad(w), and by the mean value theorem two paths' difference is multiplied by I - rate H for some
symmetric H between 0 and its largest value, so its length does not grow as long as rate times the largest eigenvalue of
H is at most 2. The soft threshold brings points no further apart either. So errors f_t that are made at the steps only
add up: e_T <= sum_t f_t.

With momentum mu, and H the same at all steps (squared loss), the difference obeys
E_(t+1) = (1 + mu - rate H) E_t - mu E_(t-1) + f_t, so E_T = sum_k p_k(H) f_(T-1-k), with the polynomials
p_k(lambda) = mu^(k/2) U_k((1 + mu - rate lambda) / (2 sqrt(mu))), U_k Chebyshev's of the second kind. |U_k(x)| grows
with |x| beyond 1 and is at most U_k(1) before, so for rate lambda between 0 and 2 (1 + mu) the largest |p_k| is
p_k(0) = (1 - mu^(k+1)) / (1 - mu) <= 1 / (1 - mu): e_T <= sum_t f_t / (1 - mu).

*One that changes along the path*: all losses but the squared one. Two paths' difference E = w - exact w,
D = v - exact v obeys, for some symmetric H between the least and the largest second derivative on the way between them,

    D' = mu D - rate H E + f_v,     E' = E + mu D - rate H E + f_w.

Without momentum, |E'| <= |1 - rate H| |E| + f_w. With momentum no norm of the pair is known that falls for all rates at
which a fixed H is safe. For 0 <= rate H <= K = 2 (1 - mu)^2 / (1 + mu) one is:

    N^2 = |U|^2 + c |D|^2,     U = E + mu/(1 - mu) D,     c = mu/(1 - mu)^2.

Without f, U' = U - a G with a = rate/(1 - mu) and G = H E, and D' = mu D - rate G, so with E.G >= |G|^2/L, L = |H|,

    N'^2 - N^2 <= -(2a/L - a^2 - c rate^2) |G|^2 + 2 mu (a/(1 - mu) + c rate) |D||G| - c (1 - mu^2) |D|^2,

and this form is never positive if mu^2 (a/(1 - mu) + c rate)^2 <= c (1 - mu^2)(2a/L - a^2 - c rate^2), which is
rate L <= K. From N: |E| <= N sqrt(1 + mu), |D| <= N (1 - mu)/sqrt(mu). Errors f add
sqrt((f_w + mu/(1 - mu) f_v)^2 + c f_v^2) to N. What H has below 0 or above K/rate is an error of its own,
f_w = f_v = rate |that| |E|, which multiplies N by at most 1 + rate |that| (1 + mu)/(1 - mu).

*Several tokens that carry w*, each computing the same step, stray from one another by what rounding adds to each:
`apart` bounds by how much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from anchorhead.conditions import Condition
from anchorhead.errors import CertificateError
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.norms import eigenvalue_bound, gram_of, norm_bound
from anchorhead.lemmas.learners.update import Update
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP
from anchorhead.terms import Term

Part = Literal["score", "link", "update"]
"""Of a step: arguments as they are written, links at these, and w after it, with all that came before."""


@dataclass(frozen=True)
class PathBound:
    """A bound on |w_t - exact w_t| at all steps t, how much of it is rounding; infinite where nothing can be said.

    given   what must hold of the prompts, beside the rate's being safe
    parts   what a step's parts err by at most, over all steps: with rounding, and by rounding alone
    """

    total: float = math.inf
    rounding: float = math.inf
    given: tuple[Condition, ...] = ()
    parts: Mapping[Part, tuple[float, float]] = field(default_factory=dict)

    def terms(self, heads: str) -> tuple[Term, Term]:
        """What it adds up; heads: in place of what they stand. Of rounding alone less may be known than of all."""
        rounding = min(self.rounding, self.total)
        return Term("approximation", self.total - rounding, heads), Term("rounding", rounding)


@dataclass(frozen=True)
class StepError:
    """The lengths by which a step errs, in w and in v, and how much of that in w is rounding.

    apart   by how much more tokens that carry w and v may then differ, in w and in v
    """

    of_weights: float
    of_velocity: float
    rounding: float
    apart: tuple[float, float] = (0.0, 0.0)

    def more(self, length: float) -> StepError:
        """The same, with an error more, of rounding."""
        return replace(
            self,
            of_weights=self.of_weights + length,
            of_velocity=self.of_velocity and self.of_velocity + length,
            rounding=self.rounding + length,
        )


@dataclass(frozen=True)
class Off:
    """How far w and v are from where they should be, and tokens that carry w from one another."""

    w: float
    v: float
    apart: float = 0.0


class RateTooLarge(CertificateError):
    """The rate is beyond what a prompt's curvature allows: errors of a descent that diverges have no useful bound."""


def most_curvature(target: Descent) -> float:
    """The largest eigenvalue of H that the rate bears."""
    return 2 * (1 + target.momentum) / target.rate


def require_safe_rate(A: Float[np.ndarray, "n weights"], target: Descent, slope: float = 1.0) -> None:
    """Refuses a rate beyond what the second derivative, at most slope A'A/n + decay, allows."""
    steepest = slope * eigenvalue_bound(A) + target.decay
    if not steepest <= most_curvature(target):
        safe = target.rate * most_curvature(target) / steepest
        raise RateTooLarge(
            f"rate={target.rate:g} is too large for this prompt: errors may grow from step to step. The largest safe "
            f"rate is {safe:.4g}"
        )


def contraction(A: Float[np.ndarray, "n weights"], target: Descent) -> float:
    """A bound on |I - rate H| for the squared loss without momentum: 1, or less where all directions are seen.

    That the rate is safe is taken for granted.
    """
    if target.momentum:
        return 1.0
    gram, error = gram_of(A)
    decay = target.decay * np.diag(target.penalised)
    rounding = 4 * FLOAT64.unit * (1 + target.rate * (float(np.linalg.norm(gram)) + target.decay)) * len(gram)
    return min(1.0, norm_bound(np.eye(len(gram)) - target.rate * (gram + decay), target.rate * error + rounding))


@dataclass
class Drift:
    """The bound e_t on |w_t - exact w_t|, step by step.

    growth   what multiplies an error that is there already: at most 1
    bound    the largest e_t so far: where growth is less than 1, early errors may be larger than the last
    """

    momentum: float = 0.0
    growth: float = 1.0
    bound: float = 0.0
    _last: float = 0.0
    _before: float = 0.0

    @property
    def velocity(self) -> float:
        """A bound on |v_t - exact v_t|, since v_(t+1) is the difference of two w's and what the step got wrong."""
        return UP * (2 * self.bound + self._before) if self.momentum else 0.0

    def step(self, of_weights: float, of_velocity: float = 0.0, least: float = 0.0, most: float = 0.0) -> None:
        """A step errs by these lengths, in w and in v. A wrong v is seen one step later, together with w's own.

        Between what rate H lies says nothing more than the growth does.
        """
        if self.momentum:
            self.bound += UP * (of_weights + self.momentum * self._before) / (1 - self.momentum)
            self._before = of_weights + of_velocity
        else:
            self._last = UP * (self.growth * self._last + of_weights)
            # unlike max, it keeps what is not a number
            self.bound = float(np.maximum(self.bound, self._last))


def most_rate(momentum: float) -> float:
    """K: up to here errors do not grow."""
    return 2 * (1 - momentum) ** 2 / (1 + momentum)


@dataclass
class VaryingDrift:
    """The bound e_t on |w_t - exact w_t|, step by step."""

    momentum: float = 0.0
    norm: float = 0.0

    @property
    def bound(self) -> float:
        return UP * self.norm * math.sqrt(1 + self.momentum)

    @property
    def velocity(self) -> float:
        """A bound on |v_t - exact v_t|."""
        return UP * self.norm * (1 - self.momentum) / math.sqrt(self.momentum) if self.momentum else 0.0

    def step(self, of_weights: float, of_velocity: float, least: float, most: float) -> None:
        """A step errs by these lengths; rate H lies between `least` and `most` on the way between the paths."""
        mu = self.momentum
        if not mu:
            self.norm = UP * (max(1.0, 1 - least, most - 1) * self.norm + of_weights)
            return
        beyond = max(0.0, -least, most - most_rate(mu) / UP)
        growth = 1 + beyond * (1 + mu) / (1 - mu)
        added = math.hypot(of_weights + mu / (1 - mu) * of_velocity, math.sqrt(mu) / (1 - mu) * of_velocity)
        self.norm = UP * (growth * self.norm + added)


class Paths:
    """Bounds that grow in the same way: of all errors, of rounding alone, of a reference path in float64."""

    def __init__(self, straight: bool, momentum: float, growth: float = 1.0) -> None:
        """straight: whether the second derivative is the same all along; growth then bounds |I - rate H|."""
        kinds = [Drift(momentum, growth) if straight else VaryingDrift(momentum) for _ in range(3)]
        self.all, self.rounding, self.reference = kinds
        self.apart = self.apart_in_v = 0.0
        self.parts: dict[Part, tuple[float, float]] = {}

    @property
    def off(self) -> Off:
        """How far off the reference what is computed may be by now."""
        return Off(self.all.bound + self.reference.bound, self.all.velocity + self.reference.velocity, self.apart)

    def step(
        self, error: StepError, rounding: float, update: Update, least: float, most: float, own: float = 0.0
    ) -> None:
        """One more step errs by these; own: the error of the reference; rate H lies between least and most."""
        of_v = error.of_velocity
        lengths = (error.of_weights, of_v), (rounding, of_v and rounding), (own, own)
        for drift, (w, v) in zip((self.all, self.rounding, self.reference), lengths, strict=True):
            drift.step(w, v, least, most)
        kept, pulled, mu = max(map(abs, update.kept)), max(map(abs, update.pulled)), abs(update.momentum)
        more, more_in_v = error.apart
        self.apart, self.apart_in_v = (
            UP * (kept * self.apart + mu * self.apart_in_v + more),
            UP * (mu * self.apart_in_v + pulled * self.apart + more_in_v),
        )

    def bound(self, given: tuple[Condition, ...] = (), apart: float = 0.0) -> PathBound:
        """apart: by how much the token that is read may differ from that whose path this is."""
        return PathBound(UP * (self.all.bound + apart), self.rounding.bound, given, dict(self.parts))

    def note(self, part: Part, every: Any, rounding: Any) -> None:
        """A part of a step errs by so much, and by rounding alone; of several examples, or ranges, the most counts."""
        most = np.maximum(self.parts.get(part, (0.0, 0.0)), [np.max(every), np.max(rounding)])
        self.parts[part] = float(most[0]), float(most[1])
