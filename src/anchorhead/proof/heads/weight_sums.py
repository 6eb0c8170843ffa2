"""How much the numbers add up to that a map of a softmax's weights sums: S >= sum_k w_k |v_k|, as computed."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import numpy as np

from anchorhead.heads.atom import Part
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.enclosures.analytic import size_bound
from anchorhead.proof.heads.activation_head import ActivationHead

MANY = 40
"""Of more anchors than these the largest value will do: such values differ little, and sharper bounds take long."""


def weight_sums(shape: ActivationHead, arithmetic: Arithmetic, errors: list[np.ndarray] | None = None) -> list[float]:
    """For each part a bound on sum_k w_k |v_k| as computed, with logits that err by `errors` beyond their rounding: the
    largest value, or, where logits err little, what the sum is in exact arithmetic, and a little more."""
    wrong = [np.zeros(len(part)) for part in shape.parts] if errors is None else errors
    return [_weight_sum(part, own, shape.queries, arithmetic) for part, own in zip(shape.parts, wrong, strict=True)]


def _weight_sum(part: Part, wrong: np.ndarray, queries: tuple[float, float], arithmetic: Arithmetic) -> float:
    slopes, offsets, values = part.astype(np.float64)
    bound = float(np.abs(values).max())
    if len(part) <= MANY:
        logits = np.abs(slopes) * max(map(abs, queries)) + np.abs(offsets)
        log_error = float(wrong.max() + 5 * arithmetic.unit * logits.max()) + 2 * arithmetic.exp_error
        if log_error < 1:
            bound = min(bound, size_bound(replace(part, values=np.abs(values)), *queries) * exp(2 * log_error))
    return bound * (1 + float(arithmetic.gamma(2 * len(part) + 2))) * UP
