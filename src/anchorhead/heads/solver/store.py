"""From a fit in its gauge to stored weights.

Keys are rounded once, then the values are solved for again on the rounded keys. Values are rounded one by
one, the largest first, and those that are not yet rounded make up for it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Atom, Dtype, Part, softmax
from anchorhead.heads.gauge import Frame, Gauged
from anchorhead.heads.solver.minimax import best_values
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.projection import Samples
from anchorhead.network.dtypes import stored as stored_as


def frame_of(problem: Problem, origin: float, dtype: Dtype) -> Frame:
    """The frame of an origin, as the dtype stores it."""
    stored = float(np.dtype(dtype).type(origin))
    return Frame(stored / problem.half, (problem.mid - stored) / problem.half)


def stored(gauged: Gauged, samples: Samples, problem: Problem, dtype: Dtype, cap: float) -> Atom:
    """The atom of these weights in the units of the problem; values that would exceed the cap are not
    solved again.
    """
    kind, frame = np.dtype(dtype).type, gauged.frame
    most = 0.1 * float(np.finfo(dtype).max)  # a fit beyond that is of no use, but must not overflow
    slopes = stored_as(np.clip(gauged.slopes / problem.half, -most, most), dtype)
    offsets = stored_as(np.clip(gauged.offsets, -most, most), dtype)
    bias = (problem.centre + gauged.bias * problem.scale).astype(kind)
    bias = np.where(np.abs(bias) < 1e-12 * problem.scale, kind(0), bias)
    rest = (bias.astype(np.float64) - problem.centre) / problem.scale

    t = samples.x + frame.shift
    w = softmax(t[:, None] * (slopes.astype(np.float64) * problem.half) + offsets.astype(np.float64))
    held = gauged.values + gauged.bias - rest
    values = best_values(w, samples.f - rest, held, gauged.rho)
    values = held if np.abs(values).max() > cap else values
    values = _rounded(w, values, problem.scale, dtype)
    part = Part.of(slopes, offsets, values * problem.scale, dtype)
    return Atom.of((part,), frame.origin * problem.half, bias, dtype)


def _rounded(
    w: Float[np.ndarray, "n p"], values: Float[np.ndarray, "p m"], scale: float, dtype: Dtype
) -> Float[np.ndarray, "p m"]:
    """Values that the dtype holds once multiplied by the scale."""
    if dtype == "float64":
        return values
    most = 0.1 * float(np.finfo(dtype).max) / scale  # a fit beyond that is of no use, but must not overflow
    values = np.clip(values, -most, most)
    left = list(np.argsort(-np.abs(values).max(axis=1)))
    while left:
        k = left.pop(0)
        held = (values[k] * scale).astype(dtype).astype(np.float64) / scale
        change, values[k] = values[k] - held, held
        if left:
            more = np.linalg.lstsq(w[:, left], np.outer(w[:, k], change), rcond=1e-3)[0]
            values[left] = np.clip(values[left] + more, -most, most)
    return values
