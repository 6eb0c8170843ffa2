"""The gauge: weights that change no result in exact arithmetic and decide the rounding.

One number is added to all slopes, one to all offsets, and an output bias is split off the values. The best of each is
found by a simplex search on max_i |error_i| + rho_i, the rounding bound rho in the gauge tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from anchorhead.heads.atom import Dtype
from anchorhead.heads.projection import Fit, Samples
from anchorhead.heads.rounding_estimate import total_bound


@dataclass(frozen=True)
class Caps:
    """Limits on |value| and |slope| as stored, in normalised units."""

    value: float = np.inf
    slope: float = np.inf


@dataclass(frozen=True)
class Frame:
    """Where the normalised domain lies: s = origin + shift + x in units of the half width."""

    origin: float = 0.0
    shift: float = 0.0


@dataclass(frozen=True, eq=False)
class Gauged:
    """A fit in its gauge: weights on t = x + shift, with the bias split off."""

    slopes: Float[np.ndarray, "p"]
    offsets: Float[np.ndarray, "p"]
    values: Float[np.ndarray, "p m"]
    bias: Float[np.ndarray, "m"]
    frame: Frame
    rho: Float[np.ndarray, "n m"]
    total: float


def gauged(
    fit: Fit, samples: Samples, dtype: Dtype, frame: Frame, caps: Caps, still: Float[np.ndarray, "m"], tries: int = 60
) -> Gauged:
    """The best gauge found; `still` is the bias (in normalised units) that means no bias once stored."""
    raw_slopes, raw_offsets = fit.keys.weights()
    reach, m = raw_slopes[-1], fit.values.shape[1]
    lift = max(1.0, float(np.abs(raw_offsets).max()))
    dims = 2 + (m if m <= 3 else 0)

    def build(x: np.ndarray, bias: np.ndarray) -> Gauged:
        slope = x[0] * reach
        if reach <= 2 * caps.slope:
            slope = min(max(slope, -caps.slope), caps.slope - reach)
        slopes = raw_slopes + slope
        offsets = raw_offsets + x[1] * lift - slopes * frame.shift
        values = fit.values - bias
        t = samples.x + frame.shift + frame.origin
        rho = total_bound([(slopes, offsets, values)], bias - still, t, dtype, frame.origin)
        total = float((np.abs(fit.residual) + rho).max())
        excess = max(float(np.abs(values).max()) / caps.value, float(np.abs(slopes).max()) / caps.slope)
        return Gauged(slopes, offsets, values, bias, frame, rho, total * max(1.0, excess) ** 8)

    def of(x: np.ndarray) -> Gauged:
        return build(x, x[2:] if dims > 2 else np.zeros(m))

    start = np.zeros(dims)
    start[0] = -0.5
    plain = build(start[:2], still)
    if plain.total < 1.01 * fit.error:
        return plain
    simplex = np.tile(start, (dims + 1, 1))
    simplex[1:] += np.diag([-0.2, 0.1, *([0.3] * (dims - 2))])
    found = minimize(
        lambda x: np.log(of(x).total),
        start,
        method="Nelder-Mead",
        options={"maxfev": tries * dims, "initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-3},
    )
    best = of(found.x)
    return best if best.total < 0.99 * plain.total else plain
