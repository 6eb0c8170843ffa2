"""What both ways to evaluate a head with its own key need on a cell of s: its weights, values and how they vary.

On a cell around c of half width h, with A = sum w a at c and R = sum w V,

    w_k <= w_k(c) e^(|a_k - A| h)           (log w_k is concave)
    |R(s) - R(c)| <= h speed                (speed: a bound on |R'|, by balls)
    |V_k(s) - R(s)| <= |V_k(c) - R(c)| + h speed (+ h |value| for the own key)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flint import acb, arb
from jaxtyping import Float

from anchorhead.heads.atom import Part
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.enclosures.supremum import Span, Supremum
from anchorhead.proof.heads.head_rounding import first_cells, logit_gaps
from anchorhead.proof.self_key.self_key_balls import BallSelfKeyHead

Cells = Float[np.ndarray, " cells"]
Keys = Float[np.ndarray, "cells keys"]


def speed_bound(head: SelfKeyHead, low: float, high: float) -> float:
    """A bound on |R'(s)| for s in [low, high]."""
    balls = BallSelfKeyHead(head)
    sup = Supremum(0.05)
    whole: Callable[[acb], acb] = balls.derivative
    span = Span(arb(low), arb(high), (arb(low), arb(high)), whole, balls.operations)
    sup.cover([span], balls.steepness, balls.logit_bits(max(-low, high)), balls.landmarks(), 1.0)
    return sup.bound


def cells_of(head: SelfKeyHead, low: float, high: float) -> tuple[Cells, Cells]:
    """Cells that narrow towards the crossings of neighbouring keys, cut at -1, 0 and 1 too."""
    slopes, offsets, values = head.keys
    left, right = first_cells([Part.of(slopes, offsets, values, "float64")], low, high)
    cuts = np.unique(np.concatenate([left, right, np.clip([-1.0, 0.0, 1.0], low, high)]))
    return cuts[:-1], cuts[1:]


@dataclass(frozen=True, eq=False)
class OnCells:
    """Bounds that hold on each cell of s, for queries t with |t - s| <= stray.

    weights    w_k                           gaps     max z - z_k                 logits  |z_k|
    deviation  |V_k - R|                     values   |V_k|                       result  |R|
    leaning    |a_k - sum w a|               turning  |Cov_w(a, V)|               scale   max(1, |s|), from below
    size       |s|
    """

    weights: Keys
    gaps: Keys
    logits: Keys
    deviation: Keys
    values: Keys
    result: Cells
    leaning: Keys
    turning: Cells
    scale: Cells
    size: Cells


def on_cells(head: SelfKeyHead, speed: float, left: Cells, right: Cells, stray: Cells | float = 0.0) -> OnCells:
    slopes, offsets, stored = head.keys
    own = (np.arange(len(slopes)) == head.registers).astype(float) * stored
    centre = ((left + right) / 2)[:, None]
    step = ((right - left) / 2)[:, None] * UP
    half = step + np.reshape(stray, (-1, 1))
    gap, logits = logit_gaps(slopes, offsets, centre)
    log_weights = -gap - np.log(np.exp(-gap).sum(axis=1, keepdims=True))
    weights = np.exp(log_weights)
    # how far the weights computed here, in float64, may be off, relatively
    noise = 1e-13 + 8 * FLOAT64.unit * gap
    noise = 2 * (noise + (weights * noise).sum(axis=1, keepdims=True))

    values = np.where(own != 0, own * centre, stored)
    mean, mean_slope = (weights * values).sum(axis=1), weights @ slopes
    tilt, off = np.abs(slopes - mean_slope[:, None]), np.abs(values - mean[:, None])
    tilt = tilt + (weights * (noise * tilt + 1e-14 * np.abs(slopes))).sum(axis=1, keepdims=True)
    off = off + (weights * (noise * off + 1e-14 * np.abs(values))).sum(axis=1, keepdims=True)
    upper = np.exp(np.minimum(log_weights + tilt * half, 0.0)) * (1 + noise)
    leaning = tilt + half * (upper * tilt**2).sum(axis=1, keepdims=True)

    # a query that strays moves R by at most stray times the range of slopes and of values
    drift = (
        np.reshape(stray, (-1, 1)) * np.ptp(slopes) * 2 * (np.abs(values) + np.abs(own) * step).max(1, keepdims=True)
    )
    deviation = off + step * (speed + np.abs(own)) + drift
    result = np.abs(mean) + (step * speed + drift)[:, 0] + (weights * noise * off).sum(axis=1)
    turn = np.abs((weights * (slopes - mean_slope[:, None]) * (values - mean[:, None])).sum(axis=1))
    turn = turn + 3 * (weights * (noise + 1e-13) * tilt * off).sum(axis=1)
    turn = turn + (half * (upper * leaning**2 * deviation).sum(axis=1, keepdims=True))[:, 0]
    turn = turn + (step * (np.abs(own) * upper * leaning).sum(axis=1, keepdims=True))[:, 0]

    move = np.abs(slopes - slopes[gap.argmin(axis=1)][:, None]) * half
    return OnCells(
        weights=upper,
        gaps=gap + move + np.maximum(move - gap, 0.0).max(axis=1, keepdims=True),
        logits=np.abs(logits) + np.abs(slopes) * half,
        deviation=deviation,
        values=np.abs(values) + np.abs(own) * step,
        result=result,
        leaning=leaning,
        turning=turn * UP,
        scale=np.maximum(np.minimum(np.abs(left), np.abs(right)) * (left * right > 0), 1.0),
        size=np.maximum(np.abs(left), np.abs(right)),
    )


def is_exact_factor(number: float) -> bool:
    """Whether a product with this number is exact."""
    return bool(exact_factor(np.asarray(number)))


def added_rounding(
    head: SelfKeyHead, size: Cells | float, part: Cells | float, arithmetic: Arithmetic
) -> Cells | float:
    """The rounding of skip s + bias + R for |s| <= size and |computed R| <= part."""
    product = 0.0 if is_exact_factor(head.skip) else arithmetic.unit * abs(head.skip) * size
    additions = int(head.skip != 0) + int(head.bias != 0)
    whole = abs(head.skip) * size + abs(head.bias) + part
    return product + arithmetic.gamma(additions) * (whole + product) + arithmetic.tiny * 4 * (1 + abs(head.skip))
