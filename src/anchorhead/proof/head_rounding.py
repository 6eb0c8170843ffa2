"""How far a dtype's evaluation of a head on a scalar may be from exact arithmetic, over a whole interval.

The head is a sum of softmaxes, r(s) = bias + sum over parts of sum_k v_k softmax_k(a_k t + g_k), t = s - origin, with
weights that the dtype stores exactly. On a cell around c of half width h, with A = sum w a at c,

    w_k <= w_k(c) exp(|a_k - A| h)          (log w_k is concave)
    |r - r(c)| <= h sup |r'|                (proof.analytic: values that cancel make triangle inequalities useless)

so that the bound of proof.rounding at a point becomes one for the cell. Cells are halved until the largest bound of a
cell is close to the largest bound at a point. A rounding of s - origin moves all logits by a_k t u; what they share
changes no softmax, so |a_k - A| t u remains.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.proof.analytic import lipschitz_bound
from anchorhead.proof.arithmetic import FLOAT64, Arithmetic
from anchorhead.proof.balls import Part
from anchorhead.proof.rounding import softmax_read_error

ROUNDS, LOOSE, MOST_CELLS = 60, 0.02, 40_000


def head_rounding(
    parts: Sequence[Part],
    origin: float,
    bias: Float[np.ndarray, " m"],
    low: float,
    high: float,
    arithmetic: Arithmetic,
) -> float:
    """A bound on |computed r(s) - r(s)| for every s of the dtype in [low, high], in every output."""
    left, right = _first_cells(parts, np.nextafter(low - origin, -np.inf), np.nextafter(high - origin, np.inf))
    speeds = [lipschitz_bound([part], low, high, origin) for part in parts]
    sup = floor = 0.0
    shifted = origin != 0
    for _ in range(ROUNDS):
        bound = _cell_bound(parts, speeds, shifted, bias, left, right, arithmetic)
        centre = (left + right) / 2
        floor = max(floor, float(_cell_bound(parts, speeds, shifted, bias, centre, centre, arithmetic).max()))
        loose = (bound > (1 + LOOSE) * floor) & (centre > left) & (centre < right)
        sup = max(sup, float(bound[~loose].max(initial=0.0)))
        if not loose.any() or loose.sum() > MOST_CELLS:
            return max(sup, float(bound.max()))
        left, right = (np.concatenate(ends) for ends in ((left[loose], centre[loose]), (centre[loose], right[loose])))
    return max(sup, float(_cell_bound(parts, speeds, shifted, bias, left, right, arithmetic).max()))


def _first_cells(
    parts: Sequence[Part], low: float, high: float
) -> tuple[Float[np.ndarray, " cells"], Float[np.ndarray, " cells"]]:
    """Cells of t = s - origin that narrow geometrically towards the crossings of neighbouring anchors."""
    nodes = [np.linspace(low, high, 33), np.array([0.0])]
    for part in parts:
        slopes, offsets = part.slopes.astype(np.float64), part.offsets.astype(np.float64)
        steps = np.diff(slopes)
        crossings = -np.diff(offsets)[steps > 0] / steps[steps > 0]
        reach = np.concatenate([[0.0], np.geomspace(0.1 / max(np.ptp(slopes), 1e-300), high - low, 24)])
        nodes += [(crossings[:, None] + sign * reach).ravel() for sign in (-1, 1)]
    cuts = np.unique(np.clip(np.concatenate(nodes), low, high))
    return cuts[:-1], cuts[1:]


def _cell_bound(
    parts: Sequence[Part],
    speeds: Sequence[float],
    shifted: bool,
    bias: Float[np.ndarray, " m"],
    left: Float[np.ndarray, " cells"],
    right: Float[np.ndarray, " cells"],
    arithmetic: Arithmetic,
) -> Float[np.ndarray, " cells"]:
    """The bound on each cell, for the worst output."""
    worst = np.zeros(len(left))
    for output, shift in enumerate(bias.astype(np.float64)):
        total, size = np.zeros(len(left)), np.full(len(left), abs(shift))
        for part, speed in zip(parts, speeds, strict=True):
            error, reach = _part_bound(part, speed, output, shifted, left, right, arithmetic)
            total, size = total + error, size + reach
        additions = len(parts) - 1 + int(shift != 0)
        worst = np.maximum(worst, total + arithmetic.gamma(additions) * (size + total))
    return worst * (1 + 1e-9)


def _part_bound(
    part: Part,
    speed: float,
    output: int,
    shifted: bool,
    left: Float[np.ndarray, " cells"],
    right: Float[np.ndarray, " cells"],
    arithmetic: Arithmetic,
) -> tuple[Float[np.ndarray, " cells"], Float[np.ndarray, " cells"]]:
    """The rounding of one softmax on each cell, and a bound on |its output|."""
    slopes, offsets, values = (np.asarray(a, np.float64) for a in (part.slopes, part.offsets, part.values[:, output]))
    centre, half = ((left + right) / 2)[:, None], ((right - left) / 2)[:, None] * (1 + 1e-9)
    gap, logits = _gaps(slopes, offsets, centre)
    log_weights = -gap - np.log(np.exp(-gap).sum(axis=1, keepdims=True))
    weights = np.exp(log_weights)
    # how far the weights computed here, in float64, may be off, relatively
    noise = 1e-13 + 8 * FLOAT64.unit * gap
    noise = 2 * (noise + (weights * noise).sum(axis=1, keepdims=True))

    mean, mean_slope = (weights @ a for a in (values, slopes))
    tilt, off = np.abs(slopes - mean_slope[:, None]), np.abs(values - mean[:, None])
    tilt = tilt + (weights * (noise * tilt + 1e-14 * np.abs(slopes))).sum(axis=1, keepdims=True)
    off = off + (weights * (noise * off + 1e-14 * np.abs(values))).sum(axis=1, keepdims=True)
    upper = np.exp(np.minimum(log_weights + tilt * half, 0.0)) * (1 + noise)
    leaning = tilt + half * (upper * tilt**2).sum(axis=1, keepdims=True)
    moved = half * speed
    deviation, result = off + moved, np.abs(mean) + moved[:, 0] + (weights * noise * off).sum(axis=1)

    u, query = arithmetic.unit, np.abs(centre) + half
    logit_error = u * np.abs(slopes) * query + u * (np.abs(logits) + np.abs(slopes) * half)
    logit_error = logit_error * (1 + 1e-6) + 2 * arithmetic.tiny
    if shifted:
        logit_error = logit_error + u * query * leaning * (1 + 1e-6)
    step = np.abs(slopes - slopes[gap.argmin(axis=1)][:, None]) * half
    gaps = gap + step + np.maximum(step - gap, 0.0).max(axis=1, keepdims=True)
    nothing = np.zeros_like(upper)
    size = np.broadcast_to(np.abs(values), upper.shape)
    error = softmax_read_error(upper, gaps, logit_error, deviation, result, size, nothing, arithmetic)
    return error, (upper * size).sum(axis=1)


def _gaps(
    slopes: Float[np.ndarray, " p"], offsets: Float[np.ndarray, " p"], t: Float[np.ndarray, "cells 1"]
) -> tuple[Float[np.ndarray, "cells p"], Float[np.ndarray, "cells p"]]:
    """max z - z_k for the logits z = slopes t + offsets, right to a few units of the result, and the logits.

    A slope of 1e11 against an offset of -1e11 leaves nothing of float64, so products and sums carry their rounding
    error along (Dekker's product, Knuth's sum).
    """
    product, product_error = _two_product(slopes + 0 * t, t + 0 * slopes)
    z, sum_error = _two_sum(product, offsets + 0 * t)
    error = product_error + sum_error
    rows = np.arange(len(z))[:, None]
    top = z.argmax(axis=1)[:, None]
    difference, rest = _two_sum(z[rows, top] + 0 * z, -z)
    gap = difference + (rest + (error[rows, top] - error))
    return gap - gap.min(axis=1, keepdims=True), z


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    big = a * (2.0**27 + 1)
    high = big - (big - a)
    return high, a - high
