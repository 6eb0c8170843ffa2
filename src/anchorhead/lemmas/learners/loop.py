"""How far a path that errs a little at every step is from exact gradient descent.

Let H be the second derivative of the objective. Without momentum a step is w -> w - rate grad(w), and by the mean value
theorem two paths' difference is multiplied by I - rate H for some symmetric H between 0 and its largest value, so its
length does not grow as long as rate times the largest eigenvalue of H is at most 2. The soft threshold brings points
no further apart either. So errors f_t that are made at the steps only add up: e_T <= sum_t f_t.

With momentum mu, and H the same at all steps (squared loss), the difference obeys
E_(t+1) = (1 + mu - rate H) E_t - mu E_(t-1) + f_t, so E_T = sum_k p_k(H) f_(T-1-k), with the polynomials
p_k(lambda) = mu^(k/2) U_k((1 + mu - rate lambda) / (2 sqrt(mu))), U_k Chebyshev's of the second kind. |U_k(x)| grows
with |x| beyond 1 and is at most U_k(1) before, so for rate lambda between 0 and 2 (1 + mu) the largest |p_k| is
p_k(0) = (1 - mu^(k+1)) / (1 - mu) <= 1 / (1 - mu): e_T <= sum_t f_t / (1 - mu).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.conditions import Condition
from anchorhead.errors import CertificateError
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP
from anchorhead.targets.descent import Descent

SQUARINGS = 10


def lengths(vectors: Float[np.ndarray, "... d"]) -> Float[np.ndarray, "..."]:
    """Bounds on the lengths along the last axis; their squares neither overflow nor vanish."""
    largest = np.asarray(np.abs(vectors).max(axis=-1, initial=0.0))
    with np.errstate(all="ignore"):
        scale = np.where((largest > 0) & np.isfinite(largest), np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)
        found = np.linalg.norm(vectors / scale[..., None], axis=-1) * scale
        return np.asarray(np.maximum(found * UP, largest))


def length_of(vector: Float[np.ndarray, " d"]) -> float:
    """A bound on the length of one vector."""
    return float(lengths(vector))


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


def eigenvalue_bound(A: Float[np.ndarray, "n weights"]) -> float:
    """An upper bound on the largest eigenvalue of A'A/n, about a tenth of a per cent above it."""
    gram, error = _gram(A)
    return norm_bound(gram, error)


def contraction(A: Float[np.ndarray, "n weights"], target: Descent) -> float:
    """A bound on |I - rate H| for the squared loss without momentum: 1, or less where all directions are seen.

    That the rate is safe is taken for granted.
    """
    if target.momentum:
        return 1.0
    gram, error = _gram(A)
    decay = target.decay * np.diag(target.penalised)
    rounding = 4 * FLOAT64.unit * (1 + target.rate * (float(np.linalg.norm(gram)) + target.decay)) * len(gram)
    return min(1.0, norm_bound(np.eye(len(gram)) - target.rate * (gram + decay), target.rate * error + rounding))


def _gram(A: Float[np.ndarray, "n weights"]) -> tuple[Float[np.ndarray, "weights weights"], float]:
    """A'A/n, and a bound on its error in the Frobenius norm."""
    n = len(A)
    size = np.abs(A)
    rounded = float(FLOAT64.gamma(n + 2)) * float(np.linalg.norm(size.T @ size / n)) * UP
    return A.T @ A / n, rounded + 4 * A.shape[1] * FLOAT64.tiny


def norm_bound(P: Float[np.ndarray, "d d"], error: float) -> float:
    """A bound on the norm of a symmetric matrix that is known up to `error` in the Frobenius norm.

    |P| = |P^m|^(1/m) <= |P^m|_F^(1/m), m = 2^10. The errors of the products, by |fl(PQ) - PQ| <= gamma |P||Q|, are
    followed along.
    """
    log_scale = 0.0
    for _ in range(SQUARINGS):
        norm = float(np.linalg.norm(P)) * UP
        if norm + error == 0:
            break
        # an error larger than the matrix itself must not overflow either
        scale = 2.0 ** math.floor(math.log2(norm + error))
        P, error, norm = P / scale, error / scale, norm / scale
        log_scale = 2 * (log_scale + math.log(scale))
        error = (2 * norm * error + error**2 + float(FLOAT64.gamma(len(P))) * norm**2) * UP
        P = P @ P
    last = (float(np.linalg.norm(P)) + error) * UP
    return 0.0 if last == 0 else math.exp((log_scale + math.log(last)) / 2.0**SQUARINGS) * (1 + 1e-12)


@dataclass(frozen=True)
class DescentBound:
    """A bound on |w_t - exact w_t| at all steps t, and what it adds up; infinite where nothing can be said.

    given   what must hold of the prompts, beside the rate's being safe
    """

    total: float
    terms: Mapping[str, float]
    given: tuple[Condition, ...] = ()


class RateTooLarge(CertificateError):
    """The rate is beyond what a prompt's curvature allows: errors of a descent that diverges have no useful bound."""


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

    def step(self, of_weights: float, of_velocity: float = 0.0) -> None:
        """A step errs by these lengths, in w and in v. A wrong v is seen one step later, together with w's own."""
        if self.momentum:
            self.bound += UP * (of_weights + self.momentum * self._before) / (1 - self.momentum)
            self._before = of_weights + of_velocity
        else:
            self._last = UP * (self.growth * self._last + of_weights)
            # unlike max, it keeps what is not a number
            self.bound = float(np.maximum(self.bound, self._last))
