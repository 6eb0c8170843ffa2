"""The score: an example asks the state, whose value is 1, and a reference of logit 0 and value -1.

    S(z) = sum_a o_a tanh(h_a z/2),   |S(z) - z| <= d(|z|) = |K_0 - 1| z + |K_1| z^3/3 + sum_a |o_a| 2 (h_a z/2)^5/15,

with K_m = sum_a o_a (h_a/2)^(2m+1), because tanh t is t - t^3/3 up to 2 |t|^5/15 for every real t. No score is
larger than sum_a |o_a|. Where o_1 > 0 > o_2, h_1 < h_2 and o_1 h_1 + o_2 h_2 >= 0, S grows with z (2 S' >= (o_1 h_1
+ o_2 h_2) sech^2(h_2 z/2), because sech falls), so what is written for z >= t is at least t - d(t).

Of two tokens that hold w and w', with values 1 and -1, an example reads tanh of half the difference of their logits:
the same with (w - w')/2 for w, and twice the sharpness.

*Rounding.* The logit h z is off by Delta, the other one exactly 0 (or each by half of that), exponents by at most
Lambda in all; tanh of half a difference moves by half as much. Two weights that add up to 1 are divided, multiplied by
1 and -1 and added: gamma_2, and gamma_1 of what is read for their common sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anchorhead.verify.rounding import SLACK, Arithmetic, softmax_log_error

VANISHED = 2.0**46
"""More than what underflow loses in any number here, in units of the smallest normal number and of the factors that the
number is then multiplied by: tiny in each operation on its way, of which there are a few."""


@dataclass(frozen=True, eq=False)
class Score:
    """sharpness h_a, outputs o_a, and how many products a logit sums; taken: whether a number is taken off the sum."""

    sharpness: tuple[float, ...]
    outputs: tuple[float, ...]
    terms: int
    taken: bool = False

    def most(self, taken: float = 0.0) -> float:
        """No computed score is larger, of which so much is taken off: sums of MAX_TERMS heads round by less."""
        return (float(np.abs(self.outputs).sum()) + taken) * (1 + 1e-4)

    def distance(self, z: np.ndarray) -> np.ndarray:
        """d(z) for z >= 0."""
        pairs = [(Fraction(o), Fraction(h) / 2) for o, h in zip(self.outputs, self.sharpness, strict=True)]
        k0, k1 = (abs(sum((o * h**m for o, h in pairs), Fraction(0)) - (m == 1)) for m in (1, 3))
        fifth = sum(abs(o) * 2 / 15 * (h * z / 2) ** 5 for h, o in zip(self.sharpness, self.outputs, strict=True))
        return (float(k0) * z + float(k1) * z**3 / 3 + fifth) * SLACK

    @property
    def grows(self) -> bool:
        if len(self.sharpness) != 2:
            return False
        (h1, h2), (o1, o2) = (tuple(map(Fraction, pair)) for pair in (self.sharpness, self.outputs))
        return h1 < h2 and o1 > 0 > o2 and o1 * h1 + o2 * h2 >= 0

    def rounding(self, z: np.ndarray, terms: np.ndarray, weight: float, model: Arithmetic) -> np.ndarray:
        """|computed - S(z)|, for |z| at most this, logits over h that sum up `terms`, and weight, a bound on
        sum |w_j| and on the entries of rows."""
        total, count = np.zeros_like(z), len(self.sharpness) + self.taken  # a product, and sums in any order
        for h, o in zip(self.sharpness, self.outputs, strict=True):
            vanished = 2 * (self.terms + 2) * VANISHED * model.tiny * (1 + h) * (1 + weight)
            logit = float(model.gamma(self.terms)) * h * terms + vanished
            gap = h * z + logit
            both = softmax_log_error(
                np.stack([logit, np.zeros_like(logit)], axis=-1), np.stack([gap, gap], axis=-1), model
            )
            read = np.minimum(h * z / 2, 1.0)
            off = both.sum(axis=-1) / 2 + float(model.gamma(2)) * 1.01 + float(model.gamma(1)) * read + 8 * model.tiny
            total = total + abs(o) * (off + float(model.gamma(count)) * (read + off))
        return (total + (float(model.gamma(count)) * terms if self.taken else 0.0)) * SLACK + 4 * model.tiny
