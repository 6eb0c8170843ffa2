"""Rounding of a head with its own key, evaluated as attention: logits, softmax, values.

Between the tails (proof.self_key.self_key_softmax) the formula of heads.softmax_rounding is taken on cells
(proof.self_key.self_key_softmax), with the own key's value s among the values. On a tail, where |s| >= T,

    |computed z_k - z_k| <= Delta_k(s), the bound of heads.softmax_rounding.logit_error, |z_k| <= |a_k| |s| + |g_k|, and

    computed gaps are at least q_k(s) = (gap_k(s) - Delta_k(s) - Delta_top(s)) (1 - u)

which is linear in |s|, rises if |a_top - a_k| > 2.1 u (|a_k| + |a_top|), and is then at least q_k(T). If all q_k(T) are
positive, the largest computed logit is that of the top key. Its exponential is that of 0, and the others, relative to
it, are at most eps_k = e^(-q_k(T) + 2 exp_error) + 2 tiny, on the whole tail. So the sum of exponentials is e_top (1 +
eps) (1 + delta) with 0 <= eps <= sum eps_k and |delta| <= gamma_(p-1); a quotient, a product and a sum of p terms
follow: the computed R lies within

    |V_top| (eps + gamma_(2p+1) (1 + eps)) + sum_k eps_k |V_k| (1 + gamma_(2p+1))

of V_top, to which the exact R is as near as left_over(T). The own value costs a rounding more unless its factor is a
power of two.

No logit overflows while |slope s| + |offset| stays below the largest number: REACH keeps to that.
"""

from __future__ import annotations

import numpy as np

from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.softmax_rounding import logit_error
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.heads.head_rounding import largest_on_cells
from anchorhead.proof.heads.on_cells import scale_of
from anchorhead.proof.self_key.self_key_softmax import (
    Cells,
    Tail,
    added_rounding,
    cells_of,
    on_cells,
    settled,
    speed_bound,
    tail_of,
)

REACH: dict[Dtype, float] = {"float32": 1e30, "float64": 1e290}
STEEPEST: dict[Dtype, float] = {"float32": 2.0**27, "float64": 2.0**58}
_SHARE = 2.0**-10  # of a unit round-off, where a tail begins


def softmax_rounding(head: SelfKeyHead, arithmetic: Arithmetic) -> float:
    """A bound on |computed r(s) - r(s)| / max(1, |s|) for every s of the dtype in [head.low, head.high]."""
    low, high = head.low, head.high
    worst = 0.0
    for side in (-1, 1):
        end = high if side > 0 else -low
        start = settled(head, side, _SHARE * arithmetic.unit)
        if start < end:
            tail = tail_of(head, side, start)
            worst = max(worst, np.inf if tail is None else _on_tail(head, tail, arithmetic))
            low, high = (low, start) if side > 0 else (-start, high)
    if not low < high:
        return worst
    if not np.isfinite([low, high]).all():
        return np.inf
    speed = speed_bound(head, low, high)
    cells = cells_of(head, low, high)
    return max(worst, largest_on_cells(lambda a, b: _on_cells(head, speed, a, b, arithmetic), *cells))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _on_cells(head: SelfKeyHead, speed: float, left: Cells, right: Cells, arithmetic: Arithmetic) -> Cells:
    on = on_cells(head, speed, left, right)
    wrong = np.zeros_like(on.values)
    if head.own is not None:
        rounded = 0.0 if exact_factor(head.own.value) else arithmetic.unit * on.values[:, -1]
        wrong[:, -1] = rounded + 2 * arithmetic.tiny * (1 + abs(head.own.value))  # s or the product may become 0
    read = on.rounding(arithmetic, value_error=wrong)
    total = read + added_rounding(head, on.size, on.result + read, arithmetic)
    return np.where(np.isnan(total), np.inf, total / scale_of(left, right) * UP)


def _on_tail(head: SelfKeyHead, tail: Tail, arithmetic: Arithmetic) -> float:
    slopes, offsets, _ = head.keys
    u, p, top = arithmetic.unit, len(slopes), tail.top
    steep = np.abs(slopes) + abs(slopes[top])
    others = np.arange(p) != top
    if (tail.falls[others] <= 2.1 * u * steep[others]).any():
        return np.inf
    sizes = np.abs(slopes) * tail.start + np.abs(offsets)
    wrong = logit_error(np.abs(slopes), np.full(p, tail.start), sizes, 0.0, arithmetic)
    least = (tail.gaps - wrong - wrong[top]) * (1 - 1.1 * u)
    if (least[others] <= 1).any():
        return np.inf
    eps = np.where(others, np.exp(-least + 2 * arithmetic.exp_error) + 2 * arithmetic.tiny, 0.0)
    gamma, mass = arithmetic.gamma(2 * p + 1), float(eps.sum())
    computed = tail.sizes[top] * (mass + gamma * (1 + mass)) + float((eps * tail.sizes).sum()) * (1 + gamma)
    if head.own is not None and not exact_factor(head.own.value):
        computed += u * abs(head.own.value) * (1 + 2 * gamma)
    computed += tail.left_over
    part = float(tail.sizes[top]) + computed
    # relative to max(1, |s|): |s| counts as 1, a bias as at most itself
    return (computed + float(added_rounding(head, np.ones(1), np.array([part]), arithmetic)[0])) * UP
