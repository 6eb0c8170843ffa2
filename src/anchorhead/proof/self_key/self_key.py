"""The error of a head with its own key: exact arithmetic against the function, and the dtype against exact arithmetic.

All bounds are divided by max(1, |s|) and hold for every s of the dtype in [head.low, head.high]; see
proof.self_key.self_key_exact, proof.self_key.self_key_rounding (as attention) and
proof.self_key.self_key_powers_rounding (as a quotient of polynomials).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.language.expressions.expression import Expression
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.self_key.self_key_exact import prove_exact_self_key
from anchorhead.proof.self_key.self_key_powers_rounding import powers_rounding
from anchorhead.proof.self_key.self_key_rounding import REACH, STEEPEST, softmax_rounding


def prove_self_key(head: SelfKeyHead, function: Expression) -> tuple[float, float]:
    """Bounds on |f - r| and on |computed r - r|, divided by max(1, |s|); infinite where nothing can be shown.

    The second is the larger of those for the two ways to evaluate the head, where its slopes have a step.
    """
    _check(head)
    arithmetic = require_model(head.dtype)
    rounding = softmax_rounding(head, arithmetic)
    if head.step > 0:
        rounding = max(rounding, powers_rounding(head, arithmetic))
    floor = min(rounding, 1.0) / 50
    return prove_exact_self_key(head, function, floor), rounding


def proven(head: SelfKeyHead, function: Expression) -> SelfKeyHead:
    """The head with its bounds filled in; where it was to hold on the whole line, as far as logits do not overflow."""
    reach = REACH[head.dtype]
    head = replace(head, low=max(head.low, -reach), high=min(head.high, reach))
    exact, rounding = prove_self_key(head, function)
    return replace(head, exact=exact, rounding=rounding)


def _check(head: SelfKeyHead) -> None:
    slopes, offsets, values = head.keys
    numbers = np.concatenate([slopes, offsets, values, [head.skip, head.bias]])
    stored = numbers.astype(head.dtype).astype(np.float64)
    if not np.isfinite(numbers).all() or not (stored == numbers).all():
        raise AnchorheadError(
            f"the head for {head.function} has weights that {head.dtype} does not hold: round them first"
        )
    reach = REACH[head.dtype]
    if not (head.low < head.high and -reach <= head.low and head.high <= reach):
        raise AnchorheadError(
            f"a head on [{head.low:g}, {head.high:g}]: give low < high, within {reach:g} of 0 ({head.dtype})"
        )
    steepest = float(np.abs(slopes).max(initial=0.0))
    if steepest > STEEPEST[head.dtype] or float(np.abs(offsets).max(initial=0.0)) > math.sqrt(reach):
        raise AnchorheadError(f"a slope of {steepest:g} overflows at s = {reach:g} in {head.dtype}")
