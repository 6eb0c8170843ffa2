"""How far a dtype's evaluation of a grid head may be from exact arithmetic, over a whole box.

Every axis is cut into cells. On one, log w_k is concave in x_j, so with A = sum w a at its centre c and half width h

    w_k(x) <= w_k(c) exp(|a_k - A| h),

and heads.grid_rounding turns upper bounds on the weights of each axis into a bound for every product of cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.heads.grids.grid_rounding import axis_log_errors, grid_read_error
from anchorhead.proof.arithmetic.arithmetic import Arithmetic

MAX_CELLS = 150_000
FINE = 0.02  # cells on which logits move by no more than this, if there are not too many of them
LARGEST_LOGIT = 1e6


def prove_grid_rounding(
    atom: GridAtom,
    low: Float[np.ndarray, " d"],
    high: Float[np.ndarray, " d"],
    arithmetic: Arithmetic,
    more: Sequence[Float[np.ndarray, " p"]] | None = None,
) -> float:
    """A bound on |computed r(x) - r(x)| for every real x of the box, however it is rounded to the dtype first.

    more   by how much logits may be wrong beyond that, for the anchors of each axis; what the axes add is added up
    """
    d = atom.variables
    few = max(1, int(MAX_CELLS ** (1 / d)))
    uppers, errors = [], []
    for (slopes, offsets), origin, left, right in zip(atom.axes, atom.origins, low, high, strict=True):
        slopes, offsets = slopes.astype(np.float64), offsets.astype(np.float64)
        reach = max(abs(left - origin), abs(right - origin)) * (1 + 1e-12)
        size = float((np.abs(slopes) * reach + np.abs(offsets)).max())
        if not size <= LARGEST_LOGIT:
            raise AnchorheadError(
                f"the logits of the grid reach {size:.3g}: nothing is proven beyond {LARGEST_LOGIT:g}"
            )
        count = min(few, max(1, math.ceil(float(np.ptp(slopes)) * (right - left) / 2 / FINE)))
        cuts = np.linspace(left, right, count + 1)
        uppers.append(upper_weights(slopes, offsets, float(origin), cuts))
        errors.append(axis_log_errors(slopes, offsets, float(origin), cuts[:-1], cuts[1:], d, arithmetic))
    if more is not None:
        # subtracting the largest logit rounds by u times how far logits are off, twice
        errors = [one + own * (1 + 4 * arithmetic.unit) for one, own in zip(errors, more, strict=True)]
    return float(grid_read_error(atom, uppers, errors, arithmetic).max())


def upper_weights(
    slopes: Float[np.ndarray, " p"],
    offsets: Float[np.ndarray, " p"],
    origin: float,
    cuts: Float[np.ndarray, " cuts"],
) -> Float[np.ndarray, "cells p"]:
    """Upper bounds on softmax_k(slopes (x - origin) + offsets) for x between neighbouring cuts."""
    centre = (cuts[1:] / 2 + cuts[:-1] / 2)[:, None]
    half = np.maximum(cuts[1:, None] - centre, centre - cuts[:-1, None]) * (1 + 1e-12)
    z = slopes * (centre - origin) + offsets
    # how far logits computed here may be off, and so by which factor the weights
    noise = 1e-12 + 16 * 2.0**-53 * (np.abs(slopes * (centre - origin)) + np.abs(offsets)).max()
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    mean = weights @ slopes
    tilt = np.abs(slopes - mean[:, None]) + 4 * noise * np.abs(slopes).max()
    return np.minimum((weights + 1e-300) * np.exp(tilt * half + 4 * noise), 1.0)
