"""Floats as tables hold them: hexadecimal, so what is read is what was written, to the last bit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def hex_floats(numbers: Iterable[Any]) -> str:
    """With a space between, zeros at the end of a fraction left out."""
    halves = (float(number).hex().partition("p") for number in numbers)
    return " ".join(f"{fraction.rstrip('0').rstrip('.')}{p}{exponent}" for fraction, p, exponent in halves)


def read_floats(text: str) -> list[float]:
    return [float.fromhex(number) for number in text.split()]
