"""Arrays that nobody can change, in copies of what holds them too."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np


def read_only(array: Any) -> np.ndarray:
    """A copy that cannot be written to."""
    return _kept(np.array(array, order="C"))


class ReadOnly:
    """A dataclass whose arrays are read-only, and stay so when it is pickled or copied.

    numpy forgets that an array is read-only when it is pickled or deep-copied, so it is told again. What a dataclass
    keeps beside its fields, cached properties for example, is left behind: it can be worked out anew, and need not be
    something that can be pickled.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, _kept(value))


def _kept(value: Any) -> Any:
    """The same, arrays in it read-only."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, dict):
        for one in value.values():
            _kept(one)
    return value
