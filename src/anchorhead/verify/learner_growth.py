"""How far a path that errs a little at every step is from exact gradient descent.

*One second derivative H all along (squared loss).* Two paths' difference E, and D of their v, obey

    D' = mu D - rate H E + f_v,    E' = E + mu D - rate H E + f_w,

so E_(t+1) = (1 + mu - rate H) E_t - mu E_(t-1) + f_w,t + mu (f_v - f_w)_(t-1). Without momentum |E'| <= |I - rate H| |E| +
f_w, and |I - rate H| <= 1 where rate |H| <= 2. With it, E_T = sum_k p_k(H) (errors of step T-1-k), where p_0 = 1, p_-1 = 0,
p_(k+1) = (1 + mu - rate lambda) p_k - mu p_(k-1), that is p_k = mu^(k/2) U_k(x), x = (1 + mu - rate lambda)/(2 sqrt(mu)),
U_k Chebyshev's of the second kind. |U_k| grows with |x| beyond 1 and is at most U_k(1) before, so for 0 <= rate lambda <=
2 (1 + mu) the largest |p_k| is p_k(0) = (1 - mu^(k+1))/(1 - mu) <= 1/(1 - mu).

What is read is the same number for w and v, so f_v - f_w has what the two sums round alone.
A soft threshold at the end of a step brings points no further apart: without momentum nothing changes.
"""

from __future__ import annotations

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
