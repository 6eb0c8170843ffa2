"""The one error of the verifier: something that a file claims does not follow from what it holds, or cannot be read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class NotVerified(Exception):
    """What is not justified, in a sentence that also says where."""


def require(holds: bool | np.bool_, why: str) -> None:
    """Refuses where something does not hold. What cannot be told (a comparison with NaN) does not hold."""
    if not holds:
        raise NotVerified(why)


def several(value: Any, what: str) -> list[Any]:
    """What JSON holds where a list belongs, of one thing at least."""
    require(isinstance(value, list) and bool(value), f"{what}: no list, or nothing in it")
    return value


def whole(value: Any, least: int, below: int, what: str) -> int:
    """What JSON holds where a whole number belongs, of such a size."""
    require(
        type(value) is int and least <= value < below, f"{what} is {str(value)[:40]!r}, not from {least} to {below}"
    )
    return value


def number(value: Any, what: str) -> float:
    """What JSON holds where a number belongs: one that float64 has."""
    finite = type(value) in (int, float) and abs(value) < 2**1024 and math.isfinite(value)
    require(finite, f"{what} is {str(value)[:40]!r}: a finite number")
    return float(value)
