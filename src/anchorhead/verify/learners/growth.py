"""How far a path that errs a little at every step is from exact gradient descent.

*One second derivative H all along (squared loss).* Two paths' difference E, and D of their v, obey

    D' = mu D - rate H E + f_v,    E' = E + mu D - rate H E + f_w,

so E_(t+1) = (1 + mu - rate H) E_t - mu E_(t-1) + f_w,t + mu (f_v - f_w)_(t-1). Without momentum |E'| <= |I - rate H|
|E| + f_w, and |I - rate H| <= 1 where rate |H| <= 2. With it, E_T = sum_k p_k(H) (errors of step T-1-k), where p_0 =
1, p_-1 = 0, p_(k+1) = (1 + mu - rate lambda) p_k - mu p_(k-1), that is p_k = mu^(k/2) U_k(x), x = (1 + mu - rate
lambda)/(2 sqrt(mu)), U_k Chebyshev's of the second kind. |U_k| grows with |x| beyond 1 and is at most U_k(1) before,
so for 0 <= rate lambda <= 2 (1 + mu) the largest |p_k| is p_k(0) = (1 - mu^(k+1))/(1 - mu) <= 1/(1 - mu).

What is read is the same number for w and v, so f_v - f_w has what the two sums round alone. *Another H at every step
(curved links).* Then D' = mu D - rate G + f_v, E' = E + mu D - rate G + f_w with G = H E, 0 <= H <= L, so E . G >=
|G|^2/L. Let U = E + mu/(1 - mu) D, c = mu/(1 - mu)^2, N^2 = |U|^2 + c |D|^2. Without f, U' = U - a G with a =
rate/(1 - mu), and

    N'^2 - N^2 <= -(2a/L - a^2 - c rate^2) |G|^2 + 2 mu (a/(1 - mu) + c rate) |D||G| - c (1 - mu^2) |D|^2,

which is never positive if rate L <= K = 2 (1 - mu)^2/(1 + mu) (its discriminant). |E| <= N sqrt(1 + mu), |D| <= N (1
- mu)/sqrt(mu). Errors add |(f_w + mu/(1 - mu) f_v, sqrt(c) f_v)| to N. What rate H has below 0 or above K, at most
b, is an error f_w = f_v = b |E| of its own, which multiplies N by at most 1 + b (1 + mu)/(1 - mu).

A soft threshold at the end of a step brings points no further apart: without momentum nothing changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat

from anchorhead.verify.balls import above, precision
from anchorhead.verify.rounding import SLACK

SQUARINGS = 14
BITS = 256


@dataclass
class Drift:
    """The bound e_t on |w_t - exact w_t|; growth bounds |I - rate H|, at most 1. bound: the largest e_t so far."""

    momentum: float = 0.0
    growth: float = 1.0
    bound: float = 0.0
    _last: float = 0.0
    _before: float = 0.0

    @property
    def velocity(self) -> float:
        """A bound on |v_t - exact v_t|: v is the difference of two w's, and of what the last step got wrong."""
        return SLACK * (2 * self.bound + self._before) if self.momentum else 0.0

    def step(self, of_weights: float, apart: float) -> None:
        """A step errs by so much in w; its errors in w and v differ by at most `apart`."""
        if self.momentum:
            self.bound = SLACK * (self.bound + (of_weights + self.momentum * self._before) / (1 - self.momentum))
            self._before = apart
        else:
            self._last = SLACK * (self.growth * self._last + of_weights)
            self.bound = float(np.maximum(self.bound, self._last))


@dataclass
class Varying:
    """The bound on |w_t - exact w_t| where H varies: N, and what follows from it."""

    momentum: float = 0.0
    norm: float = 0.0

    @property
    def bound(self) -> float:
        return SLACK * self.norm * math.sqrt(1 + self.momentum)

    @property
    def velocity(self) -> float:
        return SLACK * self.norm * (1 - self.momentum) / math.sqrt(self.momentum) if self.momentum else 0.0

    def step(self, of_weights: float, apart: float, least: float, most: float) -> None:
        """A step errs by so much in w, and in v by at most `apart` more; rate H lies between least and most."""
        mu = self.momentum
        if not mu:
            self.norm = SLACK * (max(1.0, 1 - least, most - 1) * self.norm + of_weights)
            return
        beyond = max(0.0, -least, most - safe_limit(mu))
        of_speed = of_weights + apart
        added = math.hypot(of_weights + mu / (1 - mu) * of_speed, math.sqrt(mu) / (1 - mu) * of_speed)
        self.norm = SLACK * ((1 + beyond * (1 + mu) / (1 - mu)) * self.norm + added)


def safe_limit(momentum: float) -> float:
    """K: up to here errors do not grow."""
    return 2 * (1 - momentum) ** 2 / (1 + momentum) / SLACK


def matrix(A: np.ndarray) -> arb_mat:
    return arb_mat([[arb(float(x)) for x in row] for row in A])


def norm(symmetric: arb_mat) -> float:
    """A bound on the norm: |P| = |P^m|^(1/m), at most the m-th root of the Frobenius norm of P^m, m = 2^14."""
    with precision(BITS):
        power = symmetric
        for _ in range(SQUARINGS):
            power = power * power
        total = sum((x * x for x in power.entries()), arb(0)).sqrt()
        return above(total.root(2**SQUARINGS)) if above(total) > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Curvature:
    """Of one prompt, for the squared loss: bounds on the largest eigenvalues of mean a a', and of H, and on
    |I - rate H|."""

    eigenvalue: float
    steepest: float
    contraction: float


def curvature(A: np.ndarray, rate: float, decays: tuple[arb, ...]) -> Curvature:
    with precision(BITS):
        design = matrix(A)
        gram = design.transpose() * design / arb(len(A))
        size = len(decays)
        diagonal = arb_mat([[decays[i] if i == j else arb(0) for j in range(size)] for i in range(size)])
        identity = arb_mat([[arb(int(i == j)) for j in range(size)] for i in range(size)])
        H = gram + diagonal
        return Curvature(norm(gram), norm(H), norm(identity - H * arb(rate)))
