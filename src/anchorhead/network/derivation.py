"""How a network comes to compute its program: what a proof was guided by, and a check may be guided by again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anchorhead.read_only import ReadOnly, read_only


@dataclass(frozen=True, eq=False)
class Derivation(ReadOnly):
    """By which construction a network computes its program, with the hints of its proof. Nothing in it is trusted."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", {name: read_only(array) for name, array in self.arrays.items()})
        object.__setattr__(self, "data", dict(self.data))
