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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat

from anchorhead.verify.balls import above, precision
from anchorhead.verify.rounding import SLACK

SQUARINGS = 14
BITS = 256


@dataclass
class Drift:
    """The bound e_t on |w_t - exact w_t|; growth bounds |I - rate H|, at most 1. bound: the largest e_t so far.

    With momentum e_t = (sum of errors - mu sum_k mu^k (error of step t-1-k)) / (1 - mu), by p_k(0) above.
    """

    momentum: float = 0.0
    growth: float = 1.0
    bound: float = 0.0
    _sum: float = 0.0
    _recent: float = 0.0
    _before: float = 0.0

    @property
    def velocity(self) -> float:
        """A bound on |v_t - exact v_t|: v is the difference of two w's, and of what the last step got wrong."""
        return SLACK * (2 * self.bound + self._before) if self.momentum else 0.0

    def step(self, of_weights: float, apart: float, least: float = 0.0, most: float = 0.0) -> None:
        """A step errs by so much in w; its errors in w and v differ by at most `apart`. H is the same at all steps."""
        mu = self.momentum
        error = of_weights + mu * self._before
        self._sum = SLACK * ((1.0 if mu else self.growth) * self._sum + error)
        self._recent = (mu * self._recent + error) / SLACK
        self._before = apart
        found = SLACK * (self._sum - mu * self._recent) / (1 - mu)
        self.bound = max(self.bound, found) if math.isfinite(found) else math.inf


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


@dataclass
class Apart:
    """How far apart tokens may be that all carry w and add the same number to it, but round it each on its own."""

    w: float = 0.0
    v: float = 0.0

    def step(self, kept: float, pulled: float, momentum: float, rounding: float) -> None:
        w, v = self.w, self.v
        self.w, self.v = (SLACK * (by * w + momentum * v + 2 * rounding) for by in (kept, pulled))


def safe_limit(momentum: float) -> float:
    """K: up to here errors do not grow."""
    return 2 * (1 - momentum) ** 2 / (1 + momentum) / SLACK


def ball(number: Fraction) -> arb:
    return arb(number.numerator) / arb(number.denominator)


def matrix(A: np.ndarray) -> arb_mat:
    return arb_mat([[arb(float(x)) for x in row] for row in A])


def norm(symmetric: arb_mat) -> float:
    """A bound on the norm: |P| = |P^m|^(1/m), at most the m-th root of the Frobenius norm of P^m, m = 2^14."""
    with precision(BITS):
        power = symmetric
        for _ in range(SQUARINGS):
            power = power * power
        total = sum((x * x for x in power.entries()), arb(0)).sqrt()
        return 0.0 if total.is_zero() else above(total.root(2**SQUARINGS))


def weighted(x: np.ndarray, weights: np.ndarray, decays: Sequence[Fraction], rate: float = 0.0) -> arb_mat:
    """H = mean_i weights_i x_i x_i' + decay; with a rate, I - rate H."""
    with precision(BITS):
        rows, size = matrix(x), len(decays)
        scaled = arb_mat(
            [[arb(float(by)) * one for one in row] for by, row in zip(weights, rows.tolist(), strict=True)]
        )
        H = scaled.transpose() * rows / arb(len(x))
        for j in range(size):
            H[j, j] = H[j, j] + ball(decays[j])
        identity = arb_mat([[arb(int(i == j)) for j in range(size)] for i in range(size)])
        return identity - H * arb(rate) if rate else H
