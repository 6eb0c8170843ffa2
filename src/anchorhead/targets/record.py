"""What a network approximates, as it is saved with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anchorhead.read_only import ReadOnly, read_only


@dataclass(frozen=True, eq=False)
class TargetRecord(ReadOnly):
    """What a network approximates, in the canonical form that is saved with it."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", {name: read_only(array) for name, array in self.arrays.items()})
        object.__setattr__(self, "data", dict(self.data))
