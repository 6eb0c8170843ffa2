"""Errors that no dtype can reach are refused at once: numbers of the size of a function are themselves that far apart.

Between neighbouring floats of size |f| lie 2 u |f|, u the unit round-off, so that a value is at best right to u |f|;
and a head's proof counts more than that for its sums.
"""

from __future__ import annotations

import numpy as np

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.several import SeveralVariables

_LOOKS = 8


def points_of(on: Box, shape: tuple[int, ...]) -> np.ndarray:
    """The middle of a box and points all over it, the same ones every time: (points, *shape)."""
    box = on.broadcast_to(shape)
    low, high = (np.asarray(end, np.float64) for end in (box.low, box.high))
    shares = np.random.default_rng(0).uniform(size=(_LOOKS, *shape))
    shares[0] = 0.5
    return low * (1 - shares) + high * shares


def require_representable(within: float, values: np.ndarray, dtype: str) -> None:
    """Refuses an error below half of what rounding the largest of some values may cost."""
    finite = np.abs(values[np.isfinite(values)])
    largest = float(finite.max(initial=0.0))
    least = float(np.finfo(dtype).eps) / 2 * largest
    if within < least / 2:
        wider = 'dtype="float64", ' if dtype == "float32" else ""
        raise AnchorheadError(
            f"within={within:g} is less than {dtype} can tell apart: the function has values of size {largest:.3g}, "
            f"which are right to {least:.2g} at best. What would help: {wider}a larger error"
        )


def require_expressions_representable(within: float, target: SeveralVariables, dtype: str) -> None:
    """Refuses an error that is too small for the dtype; linear maps may be exact."""
    if any(term.becomes not in ("constant", "affine") for term in target.parts.terms):
        x = points_of(target.on, target.input_shape).reshape(-1, len(target.variables))
        require_representable(within, target.values(x), dtype)
