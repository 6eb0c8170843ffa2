"""Rounding of a softmax that holds v_k + o_k s, on a cell of s, divided by max(1, |s|): by the lemma of moved weights.

Lemma. Let w_k > 0 add up to 1, r = sum w_k V_k, and w~ in proportion to w_k e^(lambda_k), |lambda_k| <= Lambda_k. Then
sum w~_k V_k <= r + b for all such lambda if and only if, with d_k = V_k - r,

    sum_k w_k (e^(Lambda_k) - 1) (d_k - b)+  +  sum_k w_k (1 - e^(-Lambda_k)) (b - d_k)+  <=  b.

Proof. sum w~ V <= r + b says sum w_k e^(lambda_k) (d_k - b) <= 0. The left side is largest at lambda_k = Lambda_k where
d_k > b and -Lambda_k elsewhere; take sum w_k (d_k - b) = -b off. The left side of the lemma may be replaced by any
bound on it, so it is taken from balls over the cell. For the other side, change the signs of d.

Lambda_k is kept as a linear function of |s|, so that e^(z_k + Lambda_k) is a ball of one product: far out both grow,
and only their sum falls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb

from anchorhead.verify.balls import above, size
from anchorhead.verify.rounding import Arithmetic
from anchorhead.verify.self_keys.head import Cell, Mixture, Quotient, SelfKey, exponential

UP = 1 + 1e-9
"""More than float64 loses in the few sums of positive numbers here; and than the products of roundings left out."""
LEAST = 1e-290
"""Added to numbers that a float64 may have rounded to 0."""


@dataclass(frozen=True)
class Moved:
    """Keys on a cell: their weights w; bounds on w_k (e^(Lambda_k) - 1) and on w_k (1 - e^(-Lambda_k)); what they hold,
    over max(1, |s|), the mean of that, and the lemma's b for it."""

    weights: list[arb]
    grown: list[float]
    shrunk: list[float]
    held: list[arb]
    mean: arb
    mean_moved: float


def moved_weights(head: SelfKey, mixture: Mixture, cell: Cell, model: Arithmetic) -> Moved:
    """Logits, the largest taken off, and exponentials, as the dtype has them."""
    s, j = cell.ball, mixture.heaviest(float(cell.ball.mid()))
    slopes, offsets, _, _ = mixture.relative(j)
    logs = [a * s + g for a, g in zip(slopes, offsets, strict=True)]
    constant, linear = _log_errors(head, cell, j, slopes, offsets, max(above(log) for log in logs), model)
    if above(constant[j] + linear[j] * cell.far) > 0.25:
        # a factor that all share changes nothing: that of key j, the others' errors growing by its own
        constant = [one + constant[j] for one in constant]
        linear = [one + linear[j] for one in linear]
        constant[j], linear[j] = arb(0), arb(0)
    weights = [exponential(log) for log in logs]
    total = sum(weights, arb(0))
    grown, shrunk = [], []
    for a, g, w, fixed, more in zip(slopes, offsets, weights, constant, linear, strict=True):
        share = 1 - exponential(-fixed - more * cell.sign * s)
        grown.append(above(exponential((a + cell.sign * more) * s + (g + fixed)) * share / total) + LEAST)
        shrunk.append(above(w * share / total) + LEAST)
    weights = [w / total for w in weights]
    held, apart = mixture.held(cell, j)
    mean = mixture.mean(cell, j, weights, apart)
    return Moved(weights, grown, shrunk, held, mean + held[j], largest_move(grown, shrunk, [d - mean for d in apart]))


def softmax_rounding(head: SelfKey, mixture: Mixture, cell: Cell, model: Arithmetic) -> float:
    """Of the plain and the direct evaluation: the lemma, the own value, and then sums, a product and a quotient.

    The sum of the exponentials errs by gamma_(p-1), which all weights share; a product, a division and p - 1 sums give
    each term gamma_(p+1) of its own. What underflows is below `tiny`, four times a key.
    """
    u, p = model.unit, len(head.slopes)
    on = moved_weights(head, mixture, cell, model)
    sizes = [abs(v) for v in on.held]
    average = sum((w * v for w, v in zip(on.weights, sizes, strict=True)), arb(0))
    read = above(average) + largest_move(on.grown, on.shrunk, [v - average for v in sizes])
    own = 0.0
    if head.own:
        heavy = min(1.0, above(on.weights[-1]) + on.grown[-1])
        own = heavy * (0.0 if _exact(head.values[-1]) else u * size(on.held[-1]))
        own += 2 * model.tiny * (1 + abs(head.values[-1]))
    few, many = float(model.gamma(p - 1)), float(model.gamma(p + 1))
    result = size(on.mean)
    error = on.mean_moved + own
    error += (many * (read + own) + few * (result + error)) / (1 - few) + 4 * p * model.tiny * (
        max(map(size, sizes)) + 1
    )
    return (error + _added(head, cell, result + error, model)) * UP


def gate_rounding(head: SelfKey, mixture: Mixture, cell: Cell, parts: int, model: Arithmetic) -> float:
    """Of one head of a gate, over |u|: registers hold 0, the own key F u. The sum of the exponentials, a division, F u,
    its product with the weight and the sum over the heads are p + 3 + (parts - 1) roundings in a row, p registers."""
    on = moved_weights(head, mixture, cell, model)
    gamma = float(model.gamma(len(head.slopes) + 1 + parts))
    lost = 8 * len(head.slopes) * max(abs(head.values[-1]), 1.0) * model.tiny
    return (on.mean_moved * (1 + gamma) + gamma * size(on.mean) + lost) * UP


def powers_rounding(
    head: SelfKey, quotient: Quotient, mixture: Mixture, cell: Cell, at: float | None, model: Arithmetic
) -> float:
    """Of the quotient of polynomials in y, by Horner's rule.

    The computed y is y e^lambda, |lambda| <= Lambda = u |rate t| + that of exp: weights in proportion to d_k y^k become
    those at another query, and their mean moves by Lambda sup |sum_k w_k (k - mean k) (V_k - mean V)|, the supremum
    over the queries between. Then a coefficient of y^k goes through k products and k + 1 sums (the highest one a sum
    less): numerator and denominator err by sum w_k |V_k| nu_k and sum w_k nu_k of the denominator, nu_k = gamma_(2k+1),
    the own coefficient and what it is added to by one or two roundings more; the division rounds once.
    """
    u, top = model.unit, len(quotient.denominator) - 1
    t = cell.ball if at is None else arb(at)
    away = 0.0 if _exact(quotient.rate) else u * size(quotient.rate * t)
    away = (away + model.exp_error) * UP + 2 * model.tiny * (1 + abs(quotient.rate))
    stray = arb(0, away / abs(quotient.rate)) if at is None else arb(0, away)
    kept = [k for k, d in enumerate(quotient.denominator) if d > 0]
    j = mixture.heaviest(float(cell.ball.mid()))
    slopes, offsets, masses, _ = mixture.relative(j)
    weights = [
        m * exponential(a * (cell.ball + stray) + g + (0 if at is None else (k - kept[j]) * stray))
        for m, a, g, k in zip(masses, slopes, offsets, kept, strict=True)
    ]
    total = sum(weights, arb(0))
    weights = [w / total for w in weights]
    held, apart = mixture.held(cell, j)
    mean = sum((w * d for w, d in zip(weights, apart, strict=True)), arb(0))
    place = sum((w * (k - kept[j]) for w, k in zip(weights, kept, strict=True)), arb(0)) + kept[j]
    turned = sum((w * (k - place) * (d - mean) for w, k, d in zip(weights, kept, apart, strict=True)), arb(0))
    mean += held[j]
    above_line, below_line = 0.0, 0.0
    for w, k, v, o in zip(weights, kept, mixture.values, mixture.own, strict=True):
        rounded, weight = 2 * k + (k < top), above(w)
        more = int(k == quotient.own_index and quotient.own != 0 and quotient.numerator[k] != 0)
        product = int(not _exact(quotient.own))
        registers, own = size(v * cell.unit), size(o * cell.scaled)
        above_line += weight * (registers * float(model.gamma(rounded + more)))
        above_line += weight * own * float(model.gamma(rounded + more + product))
        below_line += weight * float(model.gamma(rounded))
    lost = 4 * (top + 1) * model.tiny * (1 + abs(quotient.own))
    lost /= min(quotient.denominator[0], quotient.denominator[-1])
    above_line, below_line, result = above_line + lost, below_line + lost, size(mean)
    if not below_line < 0.5:
        return math.inf
    error = away * size(turned) + (above_line + result * below_line) / (1 - below_line)
    error += u * (result + error) + model.tiny
    return (error + _added(head, cell, result + error, model)) * UP


def largest_move(grown: Sequence[float], shrunk: Sequence[float], away: Sequence[arb]) -> float:
    """b of the lemma, the larger of both sides; infinite where none is found.

    grown, shrunk   bounds on w_k (e^(Lambda_k) - 1) and w_k (1 - e^(-Lambda_k))        away   d_k, as balls
    """
    high, low = [above(d) for d in away], [above(-d) for d in away]
    return max(_one_side(grown, shrunk, high, low), _one_side(grown, shrunk, low, high))


def _one_side(grown: Sequence[float], shrunk: Sequence[float], high: Sequence[float], low: Sequence[float]) -> float:
    """By Newton's method on a convex function that falls; its answer, a little enlarged, is put to the test."""
    b = 0.0
    for _ in range(60):
        excess, slope = -b, -1.0
        for g, f, up, down in zip(grown, shrunk, high, low, strict=True):
            excess += g * (up - b) if up > b else 0.0
            excess += f * (b + down) if b + down > 0 else 0.0
            slope += (f if b + down > 0 else 0.0) - (g if up > b else 0.0)
        if not slope < 0:
            return math.inf
        if excess <= 1e-12 * b:
            break
        b -= excess / slope
    b = b * (1 + 1e-9) + LEAST
    keys = zip(grown, shrunk, high, low, strict=True)
    left = sum(g * max(up - b, 0.0) + f * max(b + down, 0.0) for g, f, up, down in keys)
    return b if left * (1 + 1e-12) <= b else math.inf


def _log_errors(
    head: SelfKey, cell: Cell, j: int, slopes: Sequence[arb], offsets: Sequence[arb], top: float, model: Arithmetic
) -> tuple[list[arb], list[arb]]:
    """Lambda_k <= constant_k + linear_k |s|: u |a_k s| + u |z_k| for the logit, u times its distance from the largest
    computed one, the error of exp, and what may be flushed to 0. |z_k| is linear where z_k has one sign on the cell."""
    u, constant, linear = model.unit, [], []
    for a, g in zip(head.slopes, head.offsets, strict=True):
        z = a * cell.ball + g
        sign = 1 if z > 0 else -1 if z < 0 else 0
        lost = 4 * model.tiny * (1 + abs(a))
        constant.append((sign * arb(g) if sign else arb(size(z))) * u * UP + lost)
        linear.append((abs(a) + sign * cell.sign * arb(a)) * u * UP)
    # the largest computed logit is within max_k (Delta_k - gap_k)+ of the largest one, gap_k at least that from key j
    first, more = constant[j], linear[j]
    others = [
        above((a + cell.sign * rise) * cell.ball + (g + fixed))
        for k, (a, g, rise, fixed) in enumerate(zip(slopes, offsets, linear, constant, strict=True))
        if k != j
    ]
    first = first + max([0.0, *others])
    for k, (a, g) in enumerate(zip(slopes, offsets, strict=True)):
        constant[k] = constant[k] * (1 + u) + u * (max(top, 0.0) - g + first) + model.exp_error
        linear[k] = linear[k] * (1 + u) + u * (more - cell.sign * a)
    return constant, linear


def _added(head: SelfKey, cell: Cell, part: float, model: Arithmetic) -> float:
    """The rounding of skip s + bias + the rest, of which `part` bounds the size."""
    skipped = size(head.skip * cell.scaled)
    product = 0.0 if _exact(head.skip) else model.unit * skipped
    additions = int(head.skip != 0) + int(head.bias != 0)
    whole = skipped + size(head.bias * cell.unit) + part + product
    return product + float(model.gamma(additions)) * whole + 4 * model.tiny * (1 + abs(head.skip))


def _exact(factor: float) -> bool:
    """Whether a product with this number rounds nothing: 0 and powers of two."""
    return abs(math.frexp(factor)[0]) in (0.0, 0.5)
