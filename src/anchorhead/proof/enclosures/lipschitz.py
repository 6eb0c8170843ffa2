"""A proof of how far a head is from a target of which only values and a Lipschitz constant are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Atom, Part
from anchorhead.proof.arithmetic.arithmetic import UP, require_model
from anchorhead.proof.enclosures.analytic import Proof, check_interval, lipschitz_bound
from anchorhead.proof.heads.head_rounding import head_rounding

_STRETCHES = 12  # the head's own Lipschitz constant is bounded on each of so many
_CHUNK = 1 << 18  # points at once


def prove_sup_lipschitz(
    parts: Sequence[Part],
    origin: float,
    bias: Any,
    function: Callable[[Float[np.ndarray, " n"]], np.ndarray],
    lipschitz: float,
    low: float,
    high: float,
    f_error: float = 0.0,
    rtol: float = 0.1,
    floor: float = 0.0,
    evaluations: int = 2_000_000,
) -> Proof:
    """Prove |f(s) - r(s)| <= bound on [low, high], given |f(s) - f(t)| <= lipschitz |s - t| and values of f.

    `function` takes n points and returns (n,) or (n, m) finite floats, each within f_error of f. On a cell with
    centre c and half width h, with |r'| <= R on it (proven on a few stretches of the interval),

        |f - r| <= |f(c) - r(c)| + f_error + noise + (lipschitz + R) h,

    r(c) being computed in float64, within `noise` of its value (proof.heads.head_rounding). Cells are halved until
    bound <= max((1 + rtol) (found + 2 (f_error + noise)), floor), or until so many `evaluations`
    are spent: the bound is then what the cells give.
    """
    check_interval(low, high)
    parts = [Part(*part.astype(np.float64)) for part in parts]
    bias = np.broadcast_to(np.asarray(bias, np.float64), parts[0].values.shape[1:])
    head = Atom(tuple(parts), origin, bias, "float64")
    noise = head_rounding(parts, origin, bias, low, high, require_model("float64"))
    ends = np.unique(np.linspace(low, high, _STRETCHES + 1))
    left, right = (ends[:-1], ends[1:]) if low < high else (ends, ends)
    rates = np.array(
        [lipschitz_bound(parts, a, b, origin, rtol=0.1) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    )
    bound, goal, found, at, spent = 0.0, floor, 0.0, math.nan, 0
    while len(left):
        centre = np.clip(left + (right - left) / 2, left, right)
        half = np.nextafter(np.maximum(centre - left, right - centre), math.inf)
        gaps = np.concatenate(
            [
                np.abs(np.reshape(function(some), (len(some), len(bias))) - head(some)).max(axis=1)
                for some in np.array_split(centre, -(-len(centre) // _CHUNK))
            ]
        )
        slack = (f_error + noise) * UP + 1e-15 * gaps
        bounds = np.nextafter((gaps + slack + (lipschitz + rates) * half) * (1 + 1e-14), math.inf)
        spent += len(left)
        best = int(gaps.argmax())
        if gaps[best] - slack[best] > found:
            found, at = math.nextafter(float(gaps[best] - slack[best]), 0.0), float(centre[best])
        goal = max((1 + rtol) * (found + 2 * (f_error + noise)), floor)
        unfinished = (bounds > goal) & (left < centre) & (centre < right)
        if spent + 2 * unfinished.sum() > evaluations:
            unfinished[:] = False
        bound = max(bound, float(bounds[~unfinished].max(initial=0.0)))
        left, right, rates = (
            np.concatenate([left[unfinished], centre[unfinished]]),
            np.concatenate([centre[unfinished], right[unfinished]]),
            np.tile(rates[unfinished], 2),
        )
    return Proof(bound, found, at)
