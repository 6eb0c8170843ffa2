"""Numbers in words: with few decimal digits, rounded to the safe side; counts of things; numbers beyond float64;
words that are not too long; and by how much bounds are rounded up."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

UP = 1 + 1e-9
"""Slack of the proofs' own arithmetic: more than millions of float64 operations on numbers of one sign lose."""


def counted(count: int, noun: str) -> str:
    """`1 head`, `1,200 heads`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def shortened(text: str, most: int) -> str:
    """The text, or its beginning where it has more signs."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def round_up(value: float, digits: int = 3) -> float:
    """The smallest number with so many decimal digits that is not below value, as a float not below it either."""
    up = _rounded(value, ROUND_CEILING, digits)
    return up if up >= value else math.nextafter(up, math.inf)


def round_down(value: float, digits: int = 3) -> float:
    """The largest number with so many decimal digits that is not above value, as a float not above it either."""
    down = _rounded(value, ROUND_FLOOR, digits)
    return down if down <= value else math.nextafter(down, -math.inf)


def beyond_float64() -> Any:
    """Around a search or a proof: what is beyond float64 becomes infinite, or NaN, and numpy does not warn of it.

    That is expected at the scales at which float64 ends, and handled: a bound that is not finite is none, and refused.
    """
    import numpy as np

    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def _rounded(value: float, rounding: str, digits: int) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    return float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value)))
