"""What features are called that hold a quantity in units of their own."""

from __future__ import annotations

HIDDEN = "stands in for hidden tokens"


def less(name: str, *middles: float) -> str:
    """What a feature is called that holds what the name says, less its middle; tokens may differ in it."""
    if len(set(middles)) > 1:
        return f"{name} less its middle"
    return scaled(name, shift=middles[0])


def scaled(name: str, scale: float = 1.0, shift: float = 0.0) -> str:
    """(name - shift) / scale, as short as may be."""
    text = name if shift == 0 else f"{name} {'-' if shift > 0 else '+'} {abs(shift):.4g}"
    if scale == 1:
        return text
    return f"{text} / {scale:.4g}" if shift == 0 else f"({text}) / {scale:.4g}"
