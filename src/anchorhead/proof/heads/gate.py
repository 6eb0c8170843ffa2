"""The error of the heads for a gated neuron phi(g) u, relative to max(1, |g|) |u|.

    r = sum_j F_j w_j(g) u,   w_j = 1 / (1 + sum_k e^(z_jk)),   z_jk = slopes_jk g + offsets_jk

In exact arithmetic r - phi(g) u = (sum_j F_j w_j - phi) u, so that phi and sum_j F_j w_j are compared as functions of
g, by complex balls and the theorem of `ellipse.py`. How far the dtype's evaluation may be from that:

One head, p registers, own logit z_0 = 0. Let w be the weights in exact arithmetic, w_0 that of the own key.

1. A logit errs by Delta_k = u |slope g| + u |z_k| + ... (heads.softmax_rounding), the own one by nothing. The largest
   computed logit is within D = max_k (Delta_k - gap_k)+ of the largest logit, gap_k = max z - z_k: a key far below the
   top cannot reach it. So the exponentials are C e^(z_k + lambda_k), |lambda_k| <= Lambda_k, one C for all
   (heads.softmax_rounding.exponent_error).
2. Exact division of these gives w_0~ = w_0 e^(lambda_0) / sum w_k e^(lambda_k). By Jensen, and by log(1 + x) <= x,

       -S <= log(w_0~ / w_0) <= T,   T = sum_(k >= 1) w_k (Lambda_k + Lambda_0),
                                     S = sum_(k >= 1) w_k (e^(Lambda_k + Lambda_0) - 1),

   so that |w_0~ - w_0| <= w_0 max(e^T - 1, min(S, 1)).
3. Summing p + 1 positive numbers in any order, the division, the value F u, its product with the weight (the registers
   add zeros) and the sum over n heads are p + 3 + (n - 1) roundings in a row.
4. Exponentials below the smallest normal number are off by less than it, against a sum that is at least about 1.

Hence |computed r - r| <= |u| sum_j |F_j| ((1 + gamma) |w_j~ - w_j| + gamma w_j), and underflow. Without the
subtraction of the largest logit, 1 / (1 + sum e^z) in place of a softmax, there is less to round; where the sum
overflows, the weight is 0 instead of a number below the smallest normal one. So this covers it too, and
(sum_j F_j w_j) u in place of sum_j (F_j u) w_j.

On a cell of g logits lie between their values at the ends, and a weight is largest where its own logit is largest and
the others smallest. Cells are halved until the largest bound of a cell is close to the largest bound at a point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.heads.self_keys.gate import GatePart
from anchorhead.heads.softmax_rounding import exponent_error, logit_error
from anchorhead.language.targets import ScalarTarget, target_of
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.enclosures.balls import ball_heads
from anchorhead.proof.heads.head import HeadBound, prove_relative
from anchorhead.proof.heads.head_rounding import first_cells, largest_on_cells
from anchorhead.proof.heads.on_cells import Cells, scale_of


def prove_gate(function: str, parts: Sequence[GatePart], low: float, high: float, arithmetic: Arithmetic) -> HeadBound:
    """Bounds relative to max(1, |g|) |u|, for every g of the dtype in [low, high] and every u whose products neither
    overflow nor underflow; the largest |phi - sum F w| / max(1, |g|) seen, and at which g."""
    target = target_of(function, (low, high))
    if not isinstance(target, ScalarTarget) or target.outputs != 1:
        raise AnchorheadError(f"{function!r} is not a named function of one variable: nothing can be proven of it")
    rounding = gate_rounding(parts, low, high, arithmetic)
    (head,) = ball_heads([_with_own(part) for part in parts])
    proof = prove_relative(head, target, rounding / 50)
    return HeadBound(proof.bound, rounding, proof.found, proof.at)


def _with_own(part: GatePart) -> Part:
    """The head as one softmax with values F for the own key and 0 for the registers, exactly."""
    slopes, offsets = (np.append(column, 0.0) for column in _columns(part))
    return Part.of(slopes, offsets, np.append(np.zeros(len(part.slopes)), part.factor), "float64")


def gate_rounding(parts: Sequence[GatePart], low: float, high: float, arithmetic: Arithmetic) -> float:
    """A bound on |computed r - r| / (max(1, |g|) |u|) for every g of the dtype in [low, high]."""
    cells = first_cells([_with_own(part) for part in parts], low, high)
    return largest_on_cells(lambda a, b: _on_cells(parts, a, b, arithmetic), *cells)


@np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")
def _on_cells(parts: Sequence[GatePart], left: Cells, right: Cells, arithmetic: Arithmetic) -> Cells:
    """The bound on each cell; infinite where it overflows."""
    total = sum((_part_on_cells(part, len(parts), left, right, arithmetic) for part in parts), np.zeros(len(left)))
    bound = total / scale_of(left, right)
    return np.where(np.isnan(bound), np.inf, bound * UP)


def _part_on_cells(part: GatePart, heads: int, left: Cells, right: Cells, arithmetic: Arithmetic) -> Cells:
    """The term of one head on each cell, and the underflow of its exponentials. Key 0 is the own one."""
    p = len(part.slopes)
    slopes, offsets = (np.insert(column, 0, 0.0) for column in _columns(part))
    far = np.maximum(np.abs(left), np.abs(right))[:, None]
    ends = left[:, None] * slopes + offsets, right[:, None] * slopes + offsets
    # how far the logits computed here, in float64, may be off
    noise = 4 * FLOAT64.unit * (np.abs(slopes) * far + np.abs(offsets))
    lowest, highest = np.minimum(*ends) - noise, np.maximum(*ends) + noise

    top, base = highest.max(axis=1, keepdims=True), lowest.max(axis=1, keepdims=True)
    least = np.exp(lowest - base)
    rest = np.maximum(least.sum(axis=1, keepdims=True) * (1 - 1e-13) - least, 0.0)
    log_weights = 1e-12 - np.logaddexp(np.log(rest) - (highest - base), 0.0)

    size = np.maximum(np.abs(lowest), np.abs(highest))
    size[:, 0] = 0.0
    errors = logit_error(np.abs(slopes), far, size, 0.0, arithmetic)
    errors[:, 0] = 0.0
    surely_below = np.maximum(base - highest, 0.0)
    top_error = np.maximum(errors - surely_below, 0.0).max(axis=1, keepdims=True)
    log_errors = exponent_error((top - lowest) * UP, errors, top_error, arithmetic)

    both = log_errors[:, 1:] + log_errors[:, :1]
    own, others = log_weights[:, 0], log_weights[:, 1:]
    up = (np.exp(others) * both).sum(axis=1)
    down = np.exp(np.minimum(others + both + np.log(-np.expm1(-both)), 700.0)).sum(axis=1)
    grown = np.where(up < 1, np.exp(own) * np.expm1(np.minimum(up, 1.0)), np.exp(np.minimum(own + up, 700.0)))
    gamma = arithmetic.gamma(p + 3 + heads - 1)
    moved = np.maximum(grown, np.exp(own) * np.minimum(down, 1.0)) * (1 + gamma) + np.exp(own) * gamma
    underflow = 8 * (p + 1) * max(abs(part.factor), 1.0) * arithmetic.tiny
    return abs(part.factor) * moved + underflow


def _columns(part: GatePart) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
    return np.asarray(part.slopes, np.float64), np.asarray(part.offsets, np.float64)
