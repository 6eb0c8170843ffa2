"""How much the numbers add up to that a map of a softmax's weights sums: S >= sum_k w_k |v_k|, as computed."""

from __future__ import annotations

import numpy as np

from anchorhead.heads.atom import Part
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.enclosures.analytic import size_bound
from anchorhead.proof.heads.activation_head import ActivationHead

STEEP = 100.0
"""Slopes that many times those before them are set apart."""
MANY = 40
"""Of more anchors than these the largest value will do: such values differ little, and sharper bounds take long."""


def weight_sums(shape: ActivationHead, arithmetic: Arithmetic, errors: list[np.ndarray] | None = None) -> list[float]:
    """For each part a bound on sum_k w_k |v_k| as computed, with logits that err by `errors` beyond their rounding.

    Anchors much steeper than the others are set apart: whatever weight they take, the sum is at most the larger of
    their values and the sum over the others alone, whose logits err little.
    """
    wrong = [np.zeros(len(part)) for part in shape.parts] if errors is None else errors
    return [_weight_sum(part, own, shape.queries, arithmetic) for part, own in zip(shape.parts, wrong, strict=True)]


def _weight_sum(part: Part, wrong: np.ndarray, queries: tuple[float, float], arithmetic: Arithmetic) -> float:
    slopes, offsets, values = part.astype(np.float64)
    size, reach = np.abs(values[:, 0]), max(map(abs, queries))
    if len(part) > MANY:
        return float(size.max()) * (1 + float(arithmetic.gamma(2 * len(part) + 2))) * UP
    order = np.argsort(np.abs(slopes))
    steps = np.abs(slopes[order][1:]) / np.maximum(np.abs(slopes[order][:-1]), 1e-3 / reach)
    few = len(slopes) if not len(steps) or steps.max() < STEEP else int(steps.argmax()) + 1
    gentle, steep = order[:few], order[few:]
    rest = Part.of(slopes[gentle], offsets[gentle], size[gentle], "float64")
    most = size_bound(rest, *queries)
    logits = np.abs(slopes[gentle]) * reach + np.abs(offsets[gentle])
    log_error = (wrong[gentle] + 5 * arithmetic.unit * logits.max()).max() + 2 * arithmetic.exp_error
    bound = max(most * float(np.exp(2 * log_error)), float(size[steep].max(initial=0.0)))
    return min(bound, float(size.max())) * (1 + float(arithmetic.gamma(2 * len(part) + 2))) * UP
