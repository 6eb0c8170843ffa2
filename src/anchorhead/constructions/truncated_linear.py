"""`ah.truncated_linear`: the functions of the paper's two head theorems."""

from __future__ import annotations

from typing import Any

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.compile import compiled
from anchorhead.constructions.theorems import multi_head, single_head
from anchorhead.constructions.theorems.truncated_linear import count_of
from anchorhead.decimals import beyond_float64
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_number, numbers, shown
from anchorhead.heads.atom import Dtype
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.network import Network, Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, progress_line

NARROWEST, WIDEST = 1e-100, 1e100
"""How far the ends of the range may be apart: beta goes with the inverse square."""


def truncated_linear(
    w: Any,
    t: Any,
    low: float,
    high: float,
    *,
    anchors: int | None = None,
    heads: int | None = None,
    on: Any = (-10, 10),
    sharpness: float | None = None,
    outputs: Any = None,
    dtype: Any = None,
    outside: Outside = "warn",
    progress: Progress | bool | None = True,
) -> Network:
    """An attention layer whose token i computes min(max(w_i . x_i + t_i, low), high), with its certificate.

    w (tokens, inputs), t (tokens,): the linear functions, one for each token
    anchors    the single-head theorem with so many anchors; by default as many as tokens
    heads      the multi-head theorem with so many heads instead: the tokens' positions are the anchors
    on         the box of inputs that the certificate covers
    sharpness  the paper's beta; by default the one with the smallest proven bound
    outputs    the paper's map G: the output feature of each anchor (of each of the (tokens - 2) heads cells), as a list
               or as a function of the anchor's number; by default one output
    dtype      float32 or float64; by default that of w
    outside    what a call does with inputs outside the box: "warn", "raise", "clip" or "ignore"
    progress   a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   a Network from (..., tokens, inputs) to (..., tokens, outputs), with its certificate

        >>> net = ah.truncated_linear([[1.0, 2.0], [0.5, -1.0]], [0.0, 0.3], low=-1, high=1, anchors=64)
        >>> y = net([[0.1, 0.2], [0.4, 0.1]])  # 0.5 and 0.4, nearly
        >>> bool(abs(y[0, 0] - 0.5) <= net.certificate.bound < 0.01)
        True
    """
    w, t, kind = _linear_functions(w, t, dtype)
    low, high = _range(low, high)
    features = _output_features(outputs, count_of(len(w), anchors, heads))
    theorem = single_head if heads is None else multi_head
    target = TruncatedLinear(w, t, low, high, *theorem.switches(low, high, features))
    with progress_line(progress, "looking for the best sharpness") as tell, beyond_float64():
        request = BuildRequest(
            dtype=kind, outside=outside, progress=tell, anchors=anchors, heads=heads, sharpness=sharpness
        )
        return compiled(program_of(target, Box.of(on)), request)


def _linear_functions(w: Any, t: Any, dtype: Any) -> tuple[np.ndarray, np.ndarray, Dtype]:
    kind = dtype_name(dtype, w)
    arrays = []
    for name, given, dims in (("w", w, 2), ("t", t, 1)):
        array = numbers(given)
        if array is None:
            raise AnchorheadError(f"{name} is {shown(given)}: give an array of real numbers")
        if array.ndim != dims:
            needed = "(tokens, inputs)" if dims == 2 else "(tokens,)"
            raise AnchorheadError(f"{name} has shape {array.shape}: needed is {needed}")
        if not np.isfinite(array).all():
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise AnchorheadError(f"{name} has the entry {array[place]} at {place}: all must be finite")
        arrays.append(array)
    w, t = arrays
    if len(w) != len(t) or not w.size:
        raise AnchorheadError(f"w has shape {w.shape} and t {t.shape}: needed are (tokens, inputs) and (tokens,)")
    return w, t, kind


def _range(low: Any, high: Any) -> tuple[float, float]:
    low, high = (checked_number(name, end, "a finite number") for name, end in (("low", low), ("high", high)))
    if not low < high:
        raise AnchorheadError(f"low={low} and high={high}: low must be below high")
    if not NARROWEST <= high - low <= WIDEST:
        raise AnchorheadError(
            f"low={low} and high={high} are {high - low:.3g} apart: from {NARROWEST:g} to {WIDEST:g} is "
            "allowed; scale w, t, low and high"
        )
    return low, high


def _output_features(outputs: Any, count: int) -> np.ndarray:
    if outputs is None:
        return np.zeros(count, int)
    try:
        features = np.array([outputs(k) for k in range(count)] if callable(outputs) else outputs)
    except (TypeError, ValueError) as error:
        raise AnchorheadError(
            f"outputs={outputs!r}: a list of output features, one an anchor, or a function"
        ) from error
    if features.shape != (count,) or features.dtype.kind not in "iu" or features.min() < 0:
        raise AnchorheadError(
            f"outputs of shape {features.shape} and dtype {features.dtype}: needed is a whole number of 0 or more for "
            f"each of the {count} anchors"
        )
    if features.max() >= count:
        raise AnchorheadError(f"outputs names feature {features.max()}: {count} anchors reach at most {count} features")
    return features.astype(int)
