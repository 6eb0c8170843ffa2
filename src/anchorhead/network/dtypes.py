"""Which floating-point type a user means."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch

from anchorhead.errors import AnchorheadError
from anchorhead.given import shown

CERTIFIED = ("float32", "float64")


def stored(array: Any, dtype: Any) -> np.ndarray:
    """Numbers as a network stores them: rounded once to the dtype, and 0 below its smallest normal number.

    Processors may take smaller ones for 0, so that a network that held them would not be the same everywhere.
    """
    with np.errstate(over="ignore"):
        rounded = np.asarray(array).astype(dtype)
    return np.where(
        np.abs(rounded) < np.finfo(rounded.dtype).tiny, np.copysign(rounded.dtype.type(0), rounded), rounded
    )


def dtype_name(dtype: Any, like: Any = None) -> Literal["float32", "float64"]:
    """float32 or float64, from a text, a torch or a numpy type; by default that of `like`, or float64."""
    if dtype is None:
        given = getattr(like, "dtype", None)
        floating = isinstance(given, torch.dtype) and given.is_floating_point
        floating = floating or (isinstance(given, np.dtype) and given.kind == "f")
        dtype = given if floating else "float64"
    name = str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else dtype
    if name == "bfloat16":
        raise AnchorheadError("dtype bfloat16 is not certified: use float32 or float64")
    try:
        name = np.dtype(name).name
    except (TypeError, ValueError) as error:
        raise AnchorheadError(f"dtype={shown(dtype)} is no floating-point type: use float32 or float64") from error
    if name not in CERTIFIED:
        raise AnchorheadError(f"dtype {name} is not certified: use float32 or float64")
    return name  # type: ignore[return-value]
