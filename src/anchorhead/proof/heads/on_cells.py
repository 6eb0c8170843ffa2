"""A softmax on one number, on cells of it: its weights, its values, and how they vary there.

On a cell around c of half width h, with A = sum w a at c and R = sum w V,

    w_k <= w_k(c) e^(|a_k - A| h)           (log w_k is concave)
    |R(s) - R(c)| <= h speed                (speed: a bound on |R'|)
    |V_k(s) - R(s)| <= |V_k(c) - R(c)| + h speed (+ h |own| for a value own s)

Derivatives are moments under w: A' = sum w (a - A)^2, and for values that do not depend on s

    R' = sum w (V - R)(a - A) = sum w (V - R(c))(a - A),     R'' = sum w (V - R)(a - A)^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.heads.softmax_rounding import logit_error, softmax_read_error
from anchorhead.proof.arithmetic.affine_forms import along
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic

Cells = Float[np.ndarray, " cells"]
Keys = Float[np.ndarray, "cells keys"]


@dataclass(frozen=True, eq=False)
class OnCells:
    """Bounds that hold on each cell of s, for queries t with |t - s| <= stray.

    weights    w_k                           gaps     max z - z_k                 logits  |z_k|
    deviation  |V_k - R|                     values   |V_k|                       result  |R|
    leaning    |a_k - sum w a|               turning  |Cov_w(a, V)|               size    |s|
    steepness  |a_k|

    centre, slope   R and R' at the middle of the cell, as float64 has them, and how far they may be off
    """

    weights: Keys
    gaps: Keys
    logits: Keys
    deviation: Keys
    values: Keys
    result: Cells
    leaning: Keys
    turning: Cells
    size: Cells
    steepness: Float[np.ndarray, "*cells keys"]
    centre: tuple[Cells, Cells]
    slope: tuple[Cells, Cells]

    def rounding(
        self,
        arithmetic: Arithmetic,
        wrong: Float[np.ndarray, "*cells keys"] | float = 0.0,
        shifted: bool = False,
        value_error: Keys | float = 0.0,
        copies: int = 1,
    ) -> Cells:
        """How far the dtype's R may be from R (heads.softmax_rounding), on each cell.

        wrong     by how much logits may err beyond the rounding of a_k t + g_k
        shifted   whether t is a difference that rounds
        copies    how many tokens carry each key
        """
        lean = self.size[:, None] * self.leaning if shifted else 0.0
        errors = wrong + logit_error(self.steepness, self.size[:, None], self.logits, lean, arithmetic)
        values = self.values, value_error + np.zeros_like(self.values)
        return softmax_read_error(
            self.weights, self.gaps, errors, self.deviation, self.result, *values, arithmetic, copies
        )


def softmax_on_cells(
    slopes: Float[np.ndarray, "*cells keys"],
    offsets: Float[np.ndarray, "*cells keys"],
    stored: Float[np.ndarray, "*cells keys"],
    speed: float | None,
    left: Cells,
    right: Cells,
    own: Float[np.ndarray, " keys"] | float = 0.0,
    stray: Cells | float = 0.0,
) -> OnCells:
    """The softmax of slopes s + offsets, with values stored + own s; keys of all cells, or of each its own.

    speed   a bound on |R'|: values that cancel make triangle inequalities useless; None: these, cell by cell
    """
    centre = ((left + right) / 2)[:, None]
    step = ((right - left) / 2)[:, None] * UP
    half = step + np.reshape(stray, (-1, 1))
    gap, logits = logit_gaps(slopes, offsets, centre)
    log_weights = -gap - np.log(np.exp(-gap).sum(axis=1, keepdims=True))
    weights = np.exp(log_weights)
    # how far the weights computed here, in float64, may be off, relatively
    noise = 1e-13 + 8 * FLOAT64.unit * gap
    noise = 2 * (noise + (weights * noise).sum(axis=1, keepdims=True))

    values = stored + own * centre
    mean, mean_slope = (weights * values).sum(axis=1), along(weights, slopes)
    tilt, off = np.abs(slopes - mean_slope[:, None]), np.abs(values - mean[:, None])
    tilt = tilt + (weights * (noise * tilt + 1e-14 * np.abs(slopes))).sum(axis=1, keepdims=True)
    off = off + (weights * (noise * off + 1e-14 * np.abs(values))).sum(axis=1, keepdims=True)
    upper = np.exp(np.minimum(log_weights + tilt * half, 0.0)) * (1 + noise)
    leaning = tilt + half * (upper * tilt**2).sum(axis=1, keepdims=True)
    fastest = (upper * off * leaning).sum(axis=1, keepdims=True) if speed is None else speed

    # a query that strays moves R by at most stray times the range of slopes and of values
    spread = np.ptp(slopes, axis=-1, keepdims=True) * 2 * (np.abs(values) + np.abs(own) * step).max(1, keepdims=True)
    drift = np.reshape(stray, (-1, 1)) * spread
    deviation = off + step * (fastest + np.abs(own)) + drift
    lost = (weights * noise * off).sum(axis=1)
    result = np.abs(mean) + (step * fastest + drift)[:, 0] + lost
    slope = (weights * (slopes - mean_slope[:, None]) * (values - mean[:, None])).sum(axis=1)
    slope_lost = 3 * (weights * (noise + 1e-13) * tilt * off).sum(axis=1)
    turn = np.abs(slope) + slope_lost
    turn = turn + (half * (upper * leaning**2 * deviation).sum(axis=1, keepdims=True))[:, 0]
    turn = turn + (step * (np.abs(own) * upper * leaning).sum(axis=1, keepdims=True))[:, 0]

    top = np.take_along_axis(np.broadcast_to(slopes, gap.shape), gap.argmin(axis=1)[:, None], axis=1)
    move = np.abs(slopes - top) * half
    return OnCells(
        weights=upper,
        gaps=gap + move + np.maximum(move - gap, 0.0).max(axis=1, keepdims=True),
        logits=np.abs(logits) + np.abs(slopes) * half,
        deviation=deviation,
        values=np.abs(values) + np.abs(own) * step,
        result=result,
        leaning=leaning,
        turning=turn * UP,
        size=np.maximum(np.abs(left), np.abs(right)),
        steepness=np.abs(slopes),
        centre=(mean, lost + 1e-13 * (weights * np.abs(values)).sum(axis=1)),
        slope=(slope, slope_lost),
    )


def scale_of(left: Cells, right: Cells) -> Cells:
    """max(1, |s|) on each cell, from below."""
    return np.maximum(np.minimum(np.abs(left), np.abs(right)) * (left * right > 0), 1.0)


def logit_gaps(
    slopes: Float[np.ndarray, "*cells p"], offsets: Float[np.ndarray, "*cells p"], t: Float[np.ndarray, "cells 1"]
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
