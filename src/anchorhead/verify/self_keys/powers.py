"""A self-key head as a quotient of polynomials in y = e^(rate t), t = s clipped, by Horner's rule.

(own s y^i + sum_k n_k y^k) / sum_k d_k y^k is a softmax mean, whose keys have logits k rate t + log d_k and hold
n_k / d_k, key i own s / d_i more. Only its rounding is another one.

Lemma. The computed y is y e^lambda, |lambda| <= Lambda = u |rate t| + that of exp: weights become those at another
query, and their mean moves by Lambda sup |C|, C = sum_k w_k (k - mean k) (V_k - mean V), the supremum over the queries
between. Then a coefficient of y^k goes through k products and k + 1 sums (the highest one a sum less): numerator and
denominator err by sum w_k |V_k| nu_k and sum w_k nu_k of the denominator, nu_k = gamma_(2k+1), the own coefficient and
what it is added to by one or two roundings more; the division rounds once.

Proof. dw_k = w_k (k - mean k) d lambda, so that the mean's derivative is C. On a piece around a point C is bounded from
there: dC / dlambda = sum_k w_k (k - mean k)^2 (V_k - mean V), and V_k has the slope own_k in s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb

from anchorhead.verify.balls import exact, precision
from anchorhead.verify.errors import require
from anchorhead.verify.rounding import UNDERFLOW, Arithmetic, power_of_two
from anchorhead.verify.scalar.part import Part
from anchorhead.verify.scalar.softmax import Softmax

MAX_KEYS = 4096
UP = 1 + 1e-9
"""More than float64 loses in the few sums of positive numbers here; and than the products of roundings left out."""
Span = tuple[float, float, float | None]


@dataclass(frozen=True)
class Quotient:
    """(own s y^own_index + sum_k numerator_k y^k) / sum_k denominator_k y^k, y = e^(rate t), t = s clipped."""

    rate: float
    low: float
    high: float
    numerator: Sequence[float]
    denominator: Sequence[float]
    own: float
    own_index: int

    def spans(self, low: float, high: float, model: Arithmetic) -> list[Span]:
        """Below, between and beyond the ends where queries are clipped; and the query, if s does not move it."""
        self._require(max(abs(low), abs(high)), model)
        left, right = (min(max(end, low), high) for end in (self.low, self.high))
        spans = [(low, left, self.low), (left, right, None), (right, high, self.high)]
        return [span for span in spans if span[0] < span[1]]

    def _require(self, far: float, model: Arithmetic) -> None:
        """Powers and sums of powers are normal numbers below the largest, denominators are positive."""
        d, n = self.denominator, len(self.denominator)
        require(n == len(self.numerator) and 1 <= n <= MAX_KEYS, "numerator and denominator of different lengths")
        require(self.low < self.high and self.rate != 0, "a quotient on an empty interval")
        require(min(d) >= 0 and d[0] > 0 and d[-1] > 0, "a denominator that may vanish")
        require(all(one > 0 or v == 0 for one, v in zip(d, self.numerator, strict=True)), "a numerator over 0")
        held = self.own == 0 or (0 <= self.own_index < n and d[self.own_index] > 0)
        require(held, "an own value over 0")
        ends = [self.rate * end for end in (self.low, self.high)]
        terms = [(abs(c), k) for both in (self.numerator, d) for k, c in enumerate(both)]
        terms.append((abs(self.own) * far, self.own_index))
        largest = max(math.log(c) + k * max(*ends, 0.0) for c, k in terms if c > 0) + math.log(8 * n)
        require(largest < math.log(model.largest), f"powers overflow in {model.dtype}")
        require(min(ends) > math.log(model.tiny) + 1, f"powers underflow in {model.dtype}")


class Powers(Softmax):
    """A quotient for |s| <= far; at: beyond an end of the clipped range, where t stays."""

    rounded = True

    def __init__(self, quotient: Quotient, at: float | None, far: float, model: Arithmetic) -> None:
        self.quotient, self.at = quotient, at
        d = quotient.denominator
        self.powers = np.array([k for k, one in enumerate(d) if one > 0])
        rate, kept = exact(quotient.rate), self.powers.tolist()
        with precision():
            slopes = [rate * k if at is None else arb(0) for k in kept]
            offsets = [exact(d[k]).log() + (0 if at is None else rate * k * at) for k in kept]
            values = [exact(quotient.numerator[k]) / d[k] for k in kept]
            own = [exact(quotient.own) / d[k] if k == quotient.own_index else arb(0) for k in kept]
        a, g, v, o = (np.array([float(x) for x in column]) for column in (slopes, offsets, values, own))
        wrong = self.powers * self._away(np.full(1, far), model) + model.gamma(2 * self.powers + 4)
        no = np.zeros(len(kept))
        super().__init__(Part(a, g, v, no, no, no, wrong, no, no, model, whole=True, own=o), model)
        self.a, self.g, self.v, self.own = slopes, offsets, values, own

    def _away(self, far: np.ndarray, model: Arithmetic) -> np.ndarray:
        """Lambda, for |s| <= far."""
        rate, t = self.quotient.rate, far if self.at is None else abs(self.at)
        product = 0.0 if power_of_two(np.array(rate)) else model.unit * abs(rate) * t
        return (product + model.exp_error) * UP + 2 * model.tiny * (1 + abs(rate)) + 0 * far

    def rounding(
        self, t: np.ndarray, half: np.ndarray, speed: np.ndarray, near: Sequence[np.ndarray], leak: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Numbers of keys are `k`, `k_off` bounds |k - mean k| on the piece, queries `stray` by so much
        in all."""
        q, model, on = self.quotient, self.model, self.pieces(t, half, speed, near)
        k, own = self.powers[on.index], np.zeros(1) if on.part.own is None else on.part.own
        away = self._away(on.far, model)
        upper = np.exp(np.minimum(on.upper + np.ptp(self.powers) * away * UP, 0.0)) + UNDERFLOW
        off, apart = np.maximum(np.abs(on.away[0]), np.abs(on.away[1])), np.abs(own - own[..., :1])
        middle = (on.away[0] + on.away[1]) / 2
        stray = away + (abs(q.rate) * on.half if self.at is None else 0.0)
        k_away = k - (on.weights * k).sum(axis=2, keepdims=True)
        k_off = np.abs(k_away) + stray * (upper * k_away**2).sum(axis=2, keepdims=True) * UP + 1e-9
        turned = np.abs((on.weights * k_away * middle).sum(axis=2)) + 1e-9 * (on.weights * k_off * off).sum(axis=2)
        bends = stray * k_off**2 * off + 2 * on.half * k_off * apart
        turned = turned + (upper * bends).sum(axis=2)
        roundings = 2 * k + (k < self.powers[-1])
        more = (k == q.own_index) & (q.own != 0) & (np.array(q.numerator)[k] != 0)
        product = int(not power_of_two(np.array(q.own)))
        held = np.abs(on.part.values) * model.gamma(roundings + more)
        held = held + np.abs(own) * on.far * model.gamma(roundings + more + product)
        lost = 4 * len(q.denominator) * model.tiny * (1 + abs(q.own)) / min(q.denominator[0], q.denominator[-1])
        above_line = (upper * held).sum(axis=2) * UP + lost
        below_line = (upper * model.gamma(roundings)).sum(axis=2) * UP + lost
        with np.errstate(all="ignore"):
            moved = away[..., 0] * turned
            error = moved + (above_line + (on.result + moved) * below_line) / (1 - below_line)
            error = np.where(below_line < 0.5, error, np.inf)
        error = (error + model.unit * (on.result + error) + model.tiny) * UP + self.left_out(on, leak)
        return error, on.result + error, on.result + error
