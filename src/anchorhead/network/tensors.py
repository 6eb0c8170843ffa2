"""Tensors and arrays as users give them: those that hold a number in every place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from anchorhead.errors import AnchorheadError


def require_dense(tensor: Tensor, what: str = "an input") -> Tensor:
    """The tensor; refuses one that has no data, or stores it in a way that arithmetic of ours cannot read."""
    if tensor.is_nested:
        wrong = "is a nested tensor: give one array, or one at a time"
    elif tensor.is_quantized:
        wrong = f"is quantized ({tensor.dtype}): give tensor.dequantize()"
    elif tensor.layout != torch.strided:
        wrong = f"is stored as {tensor.layout}: give tensor.to_dense()"
    elif tensor.is_meta:
        wrong = "is on the meta device, without numbers: give one that has data"
    else:
        return tensor
    raise AnchorheadError(f"{what} {wrong}")


def without_torch(given: Any, what: str = "an input") -> Any:
    """A tensor as an array of numpy's, bits unchanged; anything else as it is."""
    if not isinstance(given, Tensor):
        return given
    dense = require_dense(given, what).detach().cpu()
    coarse = dense.is_floating_point() and dense.dtype not in (torch.float64, torch.float32, torch.float16)
    return (dense.float() if coarse else dense).numpy()


def as_numbers(x: Any) -> np.ndarray:
    """An array of float16, float32 or float64 as it is; whole numbers and anything like an array, as float64."""
    try:
        array = np.asarray(x)
    except Exception as error:  # ragged lists, lists of tensors without data: each raises something else
        raise AnchorheadError(f"an input that is not an array of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise AnchorheadError(f"an input of dtype {array.dtype}: give real numbers")
    kept = array.dtype.newbyteorder("=") in (np.float16, np.float32, np.float64)
    return np.array(array, dtype=array.dtype.newbyteorder("=") if kept else np.float64)
