"""Heads with their own key for hardswish: a parabola between two kinks, 0 on the left, s on the right.

Registers of small slopes make the parabola s (s + 3)/6 around [-3, 3], as any head on an interval does (heads.solver).
With L(s) the logarithm of the sum of their exponentials, a register of slope -A, value 0 and offset L(-3) - 3 A takes
over at -3, and the own key, of slope A and offset L(3) - 3 A, at 3. Where two branches that meet, with slopes that
differ by d, are blended so, the error is about 0.28 d / A; here d = 1/2.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.self_key import Own, SelfKeyHead
from anchorhead.heads.solver.solve import improvements

_KINK = 3.0
_BEYOND = 2.0**-4  # how far beyond the kinks the parabola goes on
_STEEPER = (16, 64, 256)  # parts of 1 / (u kink), beyond which rounding moves the crossings


def parabola(s: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return s * (s + _KINK) / (2 * _KINK)


def glued_heads(name: str, dtype: Dtype, registers: int) -> list[SelfKeyHead]:
    """Heads for hardswish with at most so many registers, nothing proven of them yet."""
    far = _KINK + _BEYOND
    try:
        found = improvements(parabola, (), -far, far, registers - 1, dtype)
    except AnchorheadError:
        return []
    best = min(found, key=lambda solution: solution.total)
    part, *more = best.atom.parts
    if more:
        return []
    kind = np.dtype(dtype).type
    slopes, offsets, values = (np.asarray(a, np.float64) for a in (part.slopes, part.offsets, part.values[:, 0]))
    offsets = offsets - slopes * best.atom.origin
    bias = float(best.atom.bias[0])
    if bias:
        values = values + bias
    heads = []
    for share in _STEEPER:
        steep = 2.0 ** math.floor(math.log2(1 / (share * arithmetic_of(dtype).unit * _KINK)))
        low, high = (float(np.logaddexp.reduce(slopes * end + offsets)) for end in (-_KINK, _KINK))
        columns = (
            np.append(slopes, -steep).astype(dtype),
            np.append(offsets, low - _KINK * steep).astype(dtype),
            np.append(values, 0.0).astype(dtype),
        )
        own = Own(steep, float(kind(high - _KINK * steep)), 1.0)
        heads.append(SelfKeyHead(name, *columns, own, 0.0, 0.0, 0.0, -np.inf, np.inf, dtype, np.inf, np.inf))
    return heads
