"""How errors of steps add up where the second derivative H changes along the path: all losses but the squared one.

Two paths' difference E = w - exact w, D = v - exact v obeys, for some symmetric H between the least and the largest
second derivative on the way between them,

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from anchorhead.proof.arithmetic.arithmetic import UP


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
