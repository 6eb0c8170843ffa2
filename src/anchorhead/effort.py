"""How much work may be done. It is counted, not timed: no outcome depends on the clock, the machine or its load.

The unit is about a microsecond of one processor: one operation on balls, or about a thousand on floats.
"""

from __future__ import annotations


class Effort:
    """Work that is left; `over` once there is none."""

    def __init__(self, most: float) -> None:
        self.most = self.left = most

    def spend(self, work: float) -> None:
        self.left -= work

    @property
    def over(self) -> bool:
        return self.left <= 0
