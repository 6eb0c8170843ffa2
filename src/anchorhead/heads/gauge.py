"""The gauge: weights that change no result in exact arithmetic and decide the rounding.

One number is added to all slopes, one to all offsets, and an output bias is split off the values. The best
of each is found by a simplex search on max_i |error_i| + rho_i, the rounding bound rho in the gauge tried; i
goes over some of the samples while searching: rho is smooth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from anchorhead.heads.atom import Dtype
from anchorhead.heads.rounding_estimate import total_bound
from anchorhead.heads.solver.projection import Fit, Samples, peaks

_TRIES = 50  # evaluations of the bound for every number that is free
_BASES = 64  # anchors, at most, that are tried as the one whose logit is 0
_SOME = 60  # samples that the search looks at, besides the peaks of the error


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

    slopes: Float[np.ndarray, " p"]
    offsets: Float[np.ndarray, " p"]
    values: Float[np.ndarray, "p m"]
    bias: Float[np.ndarray, " m"]
    frame: Frame
    rho: Float[np.ndarray, "n m"]
    total: float


def gauged(
    fit: Fit, samples: Samples, dtype: Dtype, frame: Frame, caps: Caps, still: Float[np.ndarray, " m"]
) -> Gauged:
    """The best gauge found; `still` is the bias (in normalised units) that means no bias once stored."""
    m = fit.values.shape[1]
    t, size = samples.x + frame.shift + frame.origin, np.abs(fit.residual).max(axis=1)
    everywhere = np.arange(len(t))
    some = np.unique(np.concatenate([everywhere[:: 1 + len(t) // _SOME], everywhere[-1:], np.flatnonzero(peaks(size))]))

    def build(at: np.ndarray, base: int, slope: float, offset: float, bias: np.ndarray) -> Gauged:
        slopes, offsets = fit.keys.weights(base)
        low, high = slopes[0] + caps.slope, slopes[-1] - caps.slope
        slopes = slopes + (slope if not np.isfinite(caps.slope) else min(max(slope, -low), -high))
        offsets = offsets + offset - slopes * frame.shift
        values = fit.values - bias
        rho = total_bound([(slopes, offsets, values)], bias - still, t[at], dtype, frame.origin)
        total = float((np.abs(fit.residual[at]) + rho).max())
        excess = max(float(np.abs(values).max()) / caps.value, float(np.abs(slopes).max()) / caps.slope)
        return Gauged(slopes, offsets, values, bias, frame, rho, total * max(1.0, excess) ** 8)

    steps = fit.keys.steps
    gaps = np.concatenate([[steps[0]], np.minimum(steps[1:], steps[:-1]), [steps[-1]]])
    bases = range(0, len(gaps), 1 + len(gaps) // _BASES)
    tried = [(base, slope) for base in bases for slope in (0.0, -steps[min(base, len(steps) - 1)] / 2)]
    base, slope = min(tried, key=lambda pair: build(some, *pair, 0.0, still).total)
    plain = build(everywhere, base, slope, 0.0, still)
    if plain.total < 1.01 * fit.error:
        return plain

    free = m if m <= 3 else 0
    scale = np.array([gaps[base], 1.0, *([0.3] * free)])
    start = np.array([slope / gaps[base], 0.0, *([0.0] * free)])

    def of(x: np.ndarray, at: np.ndarray) -> Gauged:
        x = x * scale
        return build(at, base, x[0], x[1], x[2:] if free else np.zeros(m))

    simplex = np.concatenate([start[None], start + np.diag(np.full(len(start), 0.5))])
    found = minimize(
        lambda x: np.log(np.fmin(of(x, some).total, 1e300)),  # a rounding without bound is merely very bad
        start,
        method="Nelder-Mead",
        options={"maxfev": _TRIES * len(start), "initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-3},
    )
    best = of(found.x, everywhere)
    return best if best.total < 0.99 * plain.total else plain
