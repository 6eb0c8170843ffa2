"""How much of a proof over boxes is done, and how much is left: from work that is counted, not from hope."""

from __future__ import annotations

from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.progress import Counting


class TooLong(AnchorheadError):
    """A proof that takes more work than it may."""


class Work:
    """How much of the whole is done, and with how many operations (proof.enclosures.operations): what is left is taken
    to need as many for its share."""

    def __init__(self, effort: Effort, counting: Counting | None) -> None:
        self.effort, self.most, self.counting = effort, effort.left, counting
        self.spent = self.share = 0.0

    def spend(self, operations: float) -> None:
        """So many operations more; raises if they are more than there may be."""
        self.spent += operations
        self.effort.spend(operations)
        if self.effort.over:
            raise TooLong(
                f"not proven with {self.most:,.0f} operations on balls, {self.share:.0%} of it done: give a larger "
                "error or a smaller box, or leave the proof out, prove=False"
            )

    def done(self, share: float, operations: float) -> None:
        """So much more of the whole, which took so many operations."""
        self.spend(operations)
        self.share = min(self.share + share, 1.0)
        if self.counting is not None:
            left = self.spent * (1 - self.share) / self.share
            self.counting(self.share, self.spent, max(0.0, min(left, self.effort.left)))
