"""Rounding of a head with its own key, evaluated as a quotient of polynomials (heads.self_keys.self_key_powers).

With y = e^(rate t), t = s clipped to [low, high]:

1. The computed y is y e^lambda, |lambda| <= Lambda = u |rate t| + exp_error: rate t is rounded (not if the rate is a
   power of two), and exp errs by some ulps; s or rate t may become 0 where they are below the smallest normal number.
   The polynomials at this y are those of the query t + lambda / rate: both move together, and R(t, s) =
   sum_k w_k(t) V_k(s) moves by at most Lambda / step sup |Cov_w(a, V)|.
2. By Horner's rule the coefficient of y^k goes through k products and k + 1 sums (the highest one through one sum
   less), each a factor 1 + delta, |delta| <= u; a fused product and sum has one factor for two. A coefficient was
   stored with a relative error delta_k that is known. So computed N and D are off by at most E_N D and E_D D,

       E_N = sum_k w_k |V_k| nu_k,     E_D = sum_k w_k nu'_k,     nu_k = (1 + gamma_(2k+1)) (1 + delta_k) - 1

   at the moved query; the own coefficient is rounded once more unless it is a power of two.
3. The quotient is off by at most (E_N + |R| E_D) / (1 - E_D), and its division rounds once.
4. A result below the smallest normal number is off by less than that. Such errors are multiplied by later powers of y,
   so they add up to 2 n tiny (1 + |own|) max(1, y^(n-1)) at most, s itself included, which the own coefficient is
   multiplied with, while D >= min(d_0, d_(n-1)) max(1, y^(n-1)).

Clipped queries: there |s| >= T, t is the end, and R(t, s) as well as the exact R(s) are within left_over of V_top.
Nothing overflows: |own s| is at most |s|/4 |value|, powers and sums are checked when the numbers are chosen.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.self_keys.self_key_powers import Powers, powers
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.heads.head_rounding import largest_on_cells
from anchorhead.proof.heads.on_cells import scale_of
from anchorhead.proof.self_key.self_key_softmax import (
    Cells,
    added_rounding,
    cells_of,
    on_cells,
    speed_bound,
    tail_of,
)


def powers_rounding(head: SelfKeyHead, arithmetic: Arithmetic) -> float:
    """A bound on |computed r(s) - r(s)| / max(1, |s|) for every s of the dtype in [head.low, head.high]."""
    path = _Path(head, powers(head), arithmetic)
    low, high = max(head.low, path.powers.low), min(head.high, path.powers.high)
    worst = max(path.beyond(-1), path.beyond(1))
    if not low < high:
        return worst
    speed = speed_bound(head, low, high)
    cells = cells_of(head, low, high)
    return max(worst, largest_on_cells(lambda a, b: path.on_cells(speed, a, b), *cells))


class _Path:
    def __init__(self, head: SelfKeyHead, numbers: Powers, arithmetic: Arithmetic) -> None:
        self.head, self.powers, self.arithmetic = head, numbers, arithmetic
        self.step = abs(numbers.rate)
        self.places = _places(head, numbers)
        self.above, self.below = _factors(head, numbers, self.places, arithmetic)
        ends = float(min(numbers.denominator[0], numbers.denominator[-1]))
        self.underflow = 4 * len(numbers.denominator) * arithmetic.tiny * (1 + abs(numbers.own)) / ends

    def wrong_exponent(self, size: Cells | float) -> Cells | float:
        """Lambda for |t| <= size."""
        product = 0.0 if exact_factor(self.step) else self.arithmetic.unit * self.step * size
        return (product + self.arithmetic.exp_error) * UP + 2 * self.arithmetic.tiny * (1 + self.step)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def on_cells(self, speed: float, left: Cells, right: Cells) -> Cells:
        size = np.maximum(np.abs(left), np.abs(right))
        wrong = self.wrong_exponent(size)
        on = on_cells(self.head, speed, left, right, stray=wrong / self.step)
        moved = wrong / self.step * on.turning
        above, below = (on.weights * on.values) @ self.above, on.weights @ self.below
        error = moved + self._quotient(above, below, on.result)
        total = error + added_rounding(self.head, on.size, on.result + error, self.arithmetic)
        return np.where(np.isnan(total) | (below >= 0.5), np.inf, total / scale_of(left, right) * UP)

    def beyond(self, side: int) -> float:
        """The bound for all s beyond the end on this side."""
        end = self.powers.high if side > 0 else self.powers.low
        if side * end >= side * (self.head.high if side > 0 else self.head.low):
            return 0.0
        tail = tail_of(self.head, side, abs(end)) if side * end > 0 else None
        if tail is None:
            return math.inf
        stray = float(self.wrong_exponent(abs(end))) / self.step
        weights = np.where(np.isfinite(tail.gaps), np.exp(-tail.gaps + tail.falls * stray), 1.0)
        others = np.where(np.isfinite(tail.gaps), weights, 0.0)
        moved = float((others * (tail.sizes + tail.sizes[tail.top])).sum()) + tail.left_over
        above, below = float((weights * tail.sizes) @ self.above), float(weights @ self.below)
        if not below < 0.5:
            return math.inf
        error = moved + float(self._quotient(above, below, float(tail.sizes[tail.top]) + moved))
        part = float(tail.sizes[tail.top]) + moved + error
        return (error + float(added_rounding(self.head, np.ones(1), np.array([part]), self.arithmetic)[0])) * UP

    def _quotient(self, above: Cells | float, below: Cells | float, result: Cells | float) -> Cells | float:
        """(E_N + |R| E_D) / (1 - E_D), underflow and the division."""
        above, below = above + self.underflow, below + self.underflow
        error = (above + result * below) / (1 - below)
        return error + self.arithmetic.unit * (result + error) + self.arithmetic.tiny


def _places(head: SelfKeyHead, numbers: Powers) -> np.ndarray:
    """The power of y that belongs to each key."""
    slopes = head.keys[0] / numbers.rate
    return np.round(slopes - slopes.min()).astype(int)


def _factors(
    head: SelfKeyHead, numbers: Powers, places: np.ndarray, arithmetic: Arithmetic
) -> tuple[Float[np.ndarray, " keys"], Float[np.ndarray, " keys"]]:
    """nu of each key in the numerator and in the denominator."""
    n, u = len(numbers.denominator), arithmetic.unit
    rounded = 2 * np.arange(n) + 1
    rounded[-1] -= n > 1
    above, below = _stored_errors(head, numbers, places)
    gammas = arithmetic.gamma(rounded[places])
    more = np.zeros(len(places))
    if head.own is not None:
        more[-1] += not exact_factor(numbers.own)
        if numbers.numerator[numbers.own_index] != 0:
            more[places == numbers.own_index] += 1
    again = gammas + 1.1 * u * more * (1 + gammas)
    return (again + above + again * above) * UP, (gammas + below + gammas * below) * UP


def _stored_errors(
    head: SelfKeyHead, numbers: Powers, places: np.ndarray
) -> tuple[Float[np.ndarray, " keys"], Float[np.ndarray, " keys"]]:
    """By how much stored coefficients are off, relative to what exact ones of their power add up to in size."""
    _, offsets, values = head.keys
    above, below = np.zeros(len(places)), np.zeros(len(places))
    own = len(places) - 1 if head.own is not None else -1
    with precision(160):
        reference = arb(float(offsets[own] if own >= 0 else offsets[places.argmin()]))
        # of any common factor, the one that the stored constant or own coefficient fixes
        anchor = own if own >= 0 else int(places.argmin())
        together = places == places[anchor]
        unit = sum(((arb(float(offsets[k])) - reference).exp() for k in np.flatnonzero(together)), arb(0))
        common = arb(float(numbers.denominator[places[anchor]])) / unit
        if own >= 0 and values[own] != 0:
            common = arb(numbers.own) / float(values[own])
        exact = [common * (arb(float(g)) - reference).exp() for g in offsets]
        for place in np.unique(places):
            keys = np.flatnonzero(places == place)
            total = sum((exact[k] for k in keys), arb(0))
            below[keys] = upper(abs(arb(float(numbers.denominator[place])) / total - 1))
            registers = [k for k in keys if k != own]
            weighed = sum((exact[k] * float(values[k]) for k in registers), arb(0))
            size = sum((exact[k] * abs(float(values[k])) for k in registers), arb(0))
            if size > 0:
                above[registers] = upper(abs(arb(float(numbers.numerator[place])) - weighed) / size)
            elif numbers.numerator[place] != 0:
                above[keys] = math.inf
    return above, below
