"""A softmax in which the token is a key itself: r(s) = skip s + bias + sum_k w_k(s) (v_k + o_k s), on the whole line.

Claim: for every s of the dtype in [low, high], whichever way r is evaluated, |computed r(s) - f(s)| <= stated
max(1, |s|). Intervals are halved until on each |f - r| / max(1, |s|) in exact arithmetic (Taylor polynomials) and the
rounding (`self_key_rounding`) add up to no more than what is stated. Two evaluations are covered, each as a mixture of
its own, since their stored numbers differ: the softmax (plain and direct), and the quotient of polynomials in
y = e^(rate t), t = s clipped (powers), whose keys weigh in proportion to denominator_k y^k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from flint import arb, arb_series

from anchorhead.verify.balls import above, coefficient, precision, size
from anchorhead.verify.errors import require
from anchorhead.verify.programs.expressions import Expression, Undecided
from anchorhead.verify.rounding import Arithmetic, arithmetic_of
from anchorhead.verify.self_keys.cover import cover, taylor_bound
from anchorhead.verify.self_keys.head import ORDER, Cell, Mixture, Quotient, SelfKey
from anchorhead.verify.self_keys.rounding import powers_rounding, softmax_rounding
from anchorhead.verify.self_keys.tail import line_of

MAX_KEYS = 4096
WIDEST = 2.0**8
"""The ends of a cell that does not begin at 0 are at most this far apart, as a quotient: balls have short radii."""


def verify_self_key(
    head: SelfKey, quotient: Quotient | None, function: Expression, low: float, high: float, dtype: str, stated: float
) -> int:
    """The number of cells that it took; raises NotVerified where the bound does not follow."""
    model = arithmetic_of(dtype)
    require_room(head, low, high, model)
    with precision(cap=ORDER + 1):
        softmax = head.mixture()

        def rounding(cell: Cell) -> float:
            return softmax_rounding(head, softmax, cell, model)

        cells = covered([softmax], function, (low, high), stated, rounding, model)
        if quotient is not None:
            for a, b, at in _spans(quotient, low, high, model):
                cells += _powers(head, quotient, function, (a, b, at), stated, model)
    return cells


def _spans(quotient: Quotient, low: float, high: float, model: Arithmetic) -> list[tuple[float, float, float | None]]:
    """Below, between and beyond the ends where queries are clipped; at: the query, where it does not depend on s."""
    _require_powers(quotient, max(abs(low), abs(high)), model)
    ends = (quotient.low, quotient.high)
    left, right = (min(max(end, low), high) for end in ends)
    spans = [(low, left, ends[0]), (left, right, None), (right, high, ends[1])]
    return [span for span in spans if span[0] < span[1]]


def _powers(
    head: SelfKey,
    quotient: Quotient,
    function: Expression,
    span: tuple[float, float, float | None],
    stated: float,
    model: Arithmetic,
) -> int:
    low, high, at = span
    mixture = quotient.mixture(head.skip, head.bias, at)

    def rounding(cell: Cell) -> float:
        return powers_rounding(head, quotient, mixture, cell, at, model)

    return covered([mixture], function, (low, high), stated, rounding, model)


def covered(
    mixtures: Sequence[Mixture],
    function: Expression,
    ends: tuple[float, float],
    stated: float,
    rounding: Callable[[Cell], float],
    model: Arithmetic,
) -> int:
    """The number of cells that it took to show |f - sum of mixtures| / max(1, |s|) + rounding <= stated."""
    (name,) = function.variables or ("x",)

    def gap(s: arb) -> list[arb]:
        f, found = function.series({name: arb_series([s, 1])}), [one.series(s) for one in mixtures]
        return [coefficient(f, i) - sum((one[i] for one in found), arb(0)) for i in range(ORDER + 1)]

    def by_taylor(cell: Cell, a: float, b: float) -> float:
        if cell.far > 4 * cell.near > 0:
            return math.inf
        try:
            found = taylor_bound(gap, a, b, ORDER)
        except Undecided:
            found = size(function.ball({name: cell.ball}) - sum((one.enclosure(cell.ball) for one in mixtures), arb(0)))
        return found / max(1.0, cell.near) * (1 + 1e-9)

    def bound(a: float, b: float) -> float:
        """The first way that is good enough: by lines far out, by Taylor's theorem; with rounding, or alone if that is
        too much already."""
        cell = Cell.of(a, b)
        best, rounded = math.inf, None
        for way in (_far_out(mixtures, function, cell) if cell.near >= 1 else math.inf, None):
            found = by_taylor(cell, a, b) if way is None else way
            if found <= stated:
                rounded = rounding(cell) if rounded is None else rounded
                found += rounded
            best = min(best, found)
            if best <= stated:
                break
        return best

    return cover(bound, scales(*ends), stated, model.dtype)


def _far_out(mixtures: Sequence[Mixture], function: Expression, cell: Cell) -> float:
    """|f - r| / |s| where both are nearly straight: by their lines, and what keys add beside the heaviest."""
    try:
        slope, rest = line_of(function, cell.ball)
    except Undecided:
        return math.inf
    others = arb(0)
    for one in mixtures:
        j = one.heaviest(float(cell.ball.mid()))
        weights, (_, apart) = one.exponentials(cell.ball, j), one.held(cell, j)
        others += abs(sum((w * d for w, d in zip(weights, apart, strict=True)), arb(0)) / sum(weights, arb(0)))
        slope, rest = slope - one.skip - one.own[j], rest - one.bias - one.values[j]
    return above(abs(slope) + abs(rest) * abs(cell.unit) + others)


def scales(low: float, high: float) -> list[tuple[float, float]]:
    """Cells of one sign, within or beyond [-1, 1], whose ends are not too far apart."""
    cuts = {low, high, *(x for x in (-1.0, 0.0, 1.0) if low < x < high)}
    x = WIDEST
    while x < max(-low, high):
        cuts |= {y for y in (-x, x) if low < y < high}
        x *= WIDEST
    ends = sorted(cuts)
    return list(pairwise(ends))


def require_room(head: SelfKey, low: float, high: float, model: Arithmetic) -> None:
    """Nothing overflows: |slope s| + |offset| and what is held stay far below the largest number of the dtype."""
    far, lengths = max(abs(low), abs(high)), {len(head.slopes), len(head.offsets), len(head.values)}
    require(low < high and math.isfinite(far), f"a head on [{low}, {high}]")
    require(len(lengths) == 1 and 1 <= min(lengths) <= MAX_KEYS, f"a head of {lengths} keys")
    sizes = [abs(a) * far + abs(g) for a, g in zip(head.slopes, head.offsets, strict=True)]
    held = max(map(abs, head.values)) * max(far, 1.0) + abs(head.skip) * far + abs(head.bias)
    require(max(sizes) < model.largest / 4 and held < model.largest / 4, f"a head overflows in {model.dtype}")


def _require_powers(quotient: Quotient, far: float, model: Arithmetic) -> None:
    """Powers and sums of powers are normal numbers below the largest, denominators are positive."""
    d, n = quotient.denominator, len(quotient.denominator)
    require(n == len(quotient.numerator) and 1 <= n <= MAX_KEYS, "numerator and denominator of different lengths")
    require(quotient.low < quotient.high and quotient.rate != 0, "a quotient on an empty interval")
    require(min(d) >= 0 and d[0] > 0 and d[-1] > 0, "a denominator that may vanish")
    require(all(one > 0 or v == 0 for one, v in zip(d, quotient.numerator, strict=True)), "a numerator over 0")
    held = quotient.own == 0 or (0 <= quotient.own_index < n and d[quotient.own_index] > 0)
    require(held, "an own value over 0")
    ends = [quotient.rate * end for end in (quotient.low, quotient.high)]
    terms = [(abs(c), k) for both in (quotient.numerator, d) for k, c in enumerate(both)]
    terms.append((abs(quotient.own) * far, quotient.own_index))
    largest = max(math.log(c) + k * max(*ends, 0.0) for c, k in terms if c > 0) + math.log(8 * n)
    require(largest < math.log(model.largest), f"powers overflow in {model.dtype}")
    require(min(ends) > math.log(model.tiny) + 1, f"powers underflow in {model.dtype}")
