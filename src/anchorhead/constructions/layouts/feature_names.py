"""What features are called: which number each name has, and names of quantities in units of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

HIDDEN = "stands in for hidden tokens"
ONE = "one"
"""The name of the feature that is 1 in every token."""
IS_INPUT = "is an input"
OWN = (ONE, IS_INPUT, HIDDEN, "at position ", "not at position ", "slope of shape ", "offset of shape ")
"""How the names of features begin that layouts look up: no input can have one of these."""


@dataclass
class Features:
    """Names of features, and which number each has."""

    names: list[str] = field(default_factory=list)

    def add(self, *names: str) -> list[int]:
        self.names += names
        return list(range(len(self.names) - len(names), len(self.names)))

    def __getitem__(self, name: str) -> int:
        return self.names.index(name)

    def __len__(self) -> int:
        return len(self.names)


def inputs_called(variables: Iterable[str]) -> list[str]:
    """What the features of variables are called: none like a feature that a layout looks up."""
    return [f"variable {name}" if name == ONE or name.startswith(OWN[1:]) else name for name in variables]


def outputs_called(count: int) -> tuple[str, ...]:
    """What the features of so many outputs are called."""
    return tuple(f"output {i}" for i in range(count)) if count > 1 else ("output",)


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
