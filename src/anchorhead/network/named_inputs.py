"""Inputs given one by one, in the order of the variables or by their names: net(0.5, 0.5), net(x=0.5, y=0.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anchorhead.errors import AnchorheadError
from anchorhead.given import shown
from anchorhead.network.tensors import as_numbers, require_dense


def is_number(given: Any) -> bool:
    """Whether something has no axes: a number, Python's, numpy's or torch's, and no text."""
    if isinstance(given, Tensor):
        return not given.is_nested and not given.dim()
    return isinstance(given, int | float | np.generic) or (isinstance(given, np.ndarray) and not given.ndim)


def side_by_side(names: Sequence[str], inputs: Sequence[Any], named: Mapping[str, Any]) -> np.ndarray | Tensor:
    """Numbers or arrays that broadcast to one shape (...), one for each name, as one array (..., names).

    A tensor if one of them is a tensor.
    """
    given = _in_order(names, inputs, named)
    device = next((one.device for one in given if isinstance(one, Tensor)), None)
    tensors = [
        require_dense(one) if isinstance(one, Tensor) else torch.from_numpy(as_numbers(one)).to(device) for one in given
    ]
    dtype = reduce(torch.promote_types, (one.dtype for one in tensors))
    dtype = dtype if dtype.is_floating_point or dtype.is_complex else torch.float64
    try:
        found = torch.stack(torch.broadcast_tensors(*(one.to(dtype) for one in tensors)), dim=-1)
    except RuntimeError as error:
        shapes = ", ".join(f"{name} of shape {tuple(one.shape)}" for name, one in zip(names, tensors, strict=True))
        raise AnchorheadError(f"{shapes}: give numbers, or arrays of one shape, or of shapes that broadcast") from error
    return found.numpy() if device is None else found


def the_only(inputs: Sequence[Any], named: Mapping[str, Any], needed: str) -> Any:
    """What was given, where one thing is to be given, and that without a name."""
    if len(inputs) != 1 or named:
        names = f" and {_listed(tuple(named))} by name" if named else ""
        raise AnchorheadError(f"{len(inputs)} inputs{names}: give {needed}")
    return inputs[0]


def _in_order(names: Sequence[str], inputs: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    takes = f"this network takes {_listed(names)}"
    example = ", ".join(f"{name}=0.5" for name in names[:3]) + (", …" if len(names) > 3 else "")
    if inputs and named:
        raise AnchorheadError(
            f"{len(inputs)} input{'s' * (len(inputs) != 1)} without a name and {_listed(tuple(named))} by name: "
            f"give all by name, as in net({example}), or all in the order {', '.join(names)}"
        )
    text = next((one for one in inputs if isinstance(one, str)), None)
    if text is not None:
        raise AnchorheadError(
            f"{shown(text)} is not an input: {takes}; what to do outside the box is said by name, as in outside='clip'"
        )
    if named:
        unknown = [name for name in named if name not in names]
        missing = [name for name in names if name not in named]
        if unknown or missing:
            wrong = f"{_listed(unknown)} is not an input" if unknown else f"{_listed(missing)} is missing"
            raise AnchorheadError(f"{wrong}: {takes}, as in net({example})")
        return [named[name] for name in names]
    if len(inputs) != len(names):
        raise AnchorheadError(
            f"{len(inputs)} input{'s' * (len(inputs) != 1)} for {len(names)} variable{'s' * (len(names) != 1)}: "
            f"{takes}, as in net({example}), or one array (..., {len(names)})"
        )
    return list(inputs)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
