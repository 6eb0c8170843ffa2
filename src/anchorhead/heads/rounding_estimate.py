"""How far a dtype's evaluation of an atom may lie from exact arithmetic, point by point.

The bounds are those of `softmax_rounding`, with everything known at a point. A subtraction t = fl(s - origin) is exact
for s/2 <= origin <= 2s (Sterbenz).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.atom import Arrays, Atom, Dtype
from anchorhead.heads.softmax_rounding import logit_error, softmax_read_error


def rounding(atom: Atom, s: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n m"]:
    """The bound for all parts of an atom, and for adding them and the bias."""
    arrays = [part.astype(np.float64) for part in atom.parts]
    return total_bound(arrays, atom.bias.astype(np.float64), s, atom.dtype, atom.origin)


def total_bound(
    arrays: list[Arrays], bias: Float[np.ndarray, " m"], s: Float[np.ndarray, " n"], dtype: Dtype, origin: float
) -> Float[np.ndarray, "n m"]:
    """sum_parts bound + gamma_{a} sum |terms|, a the number of additions (one addition: 1.01 u |result|)."""
    arithmetic = arithmetic_of(dtype)
    total = np.zeros((len(s), len(bias)))
    result, size = total + bias, total + np.abs(bias)
    for slopes, offsets, values in arrays:
        bound, r = bound_of_arrays(slopes, offsets, values, s, dtype, origin)
        total += bound
        result += r
        size += np.abs(r) + bound
    additions = len(arrays) - 1 + bool(np.any(bias))
    if additions <= 0:
        return total
    one = 1.01 * arithmetic.unit * (np.abs(result) + total)
    return total + (one if additions == 1 else arithmetic.gamma(additions) * size)


def bound_of_arrays(
    slopes: Float[np.ndarray, " p"],
    offsets: Float[np.ndarray, " p"],
    values: Float[np.ndarray, "p m"],
    s: Float[np.ndarray, " n"],
    dtype: Dtype,
    origin: float = 0.0,
) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n m"]]:
    """The bound for weights given as float64 arrays, and r(s) itself.

    Arrays are laid out with the samples next to each other in memory, which is far quicker than rows of p.
    """
    t = s - origin
    z = slopes[:, None] * t + offsets[:, None]
    gap = z.max(axis=0) - z
    w = np.exp(-gap)
    w /= w.sum(axis=0)
    r = w.T @ values

    lean = 0.0
    if origin != 0.0:
        inexact = (s * origin <= 0) | (np.abs(s) > 2 * abs(origin)) | (2 * np.abs(s) < abs(origin))
        lean = np.where(inexact, np.abs(t), 0.0) * np.abs(slopes[:, None] - slopes @ w)
    arithmetic = arithmetic_of(dtype)
    errors = logit_error(np.abs(slopes)[:, None], np.abs(t), np.abs(z), lean, arithmetic)
    away = np.abs(values[:, :, None] - r.T)
    of_anchors, of_outputs = (lambda array: array.T[:, None, :]), (lambda array: array.transpose(2, 1, 0))
    with np.errstate(over="ignore"):
        bound = softmax_read_error(
            of_anchors(w),
            of_anchors(gap),
            of_anchors(errors),
            of_outputs(away),
            np.abs(r),
            of_outputs(np.abs(values)[:, :, None]),
            np.zeros(1),
            arithmetic,
        )
    return bound, r


def least_rounding(anchors: int, reach: Any, dtype: Dtype) -> Any:
    """The bound of one softmax is no less than this where |r| = reach: gamma_{p+1} Wt + gamma_{p-1} |r|, Wt >= |r|."""
    arithmetic = arithmetic_of(dtype)
    return (arithmetic.gamma(anchors + 1) + arithmetic.gamma(anchors - 1)) * reach
