"""How much of a proof over boxes is done, and how much is left: from work that is counted, not from hope."""

from __future__ import annotations

from anchorhead.effort import Effort
from anchorhead.errors import AnchorheadError
from anchorhead.progress import Counting


class TooLong(AnchorheadError):
    """A proof that takes more work than it may."""


class Work:
    """Boxes one after the other, each with a share of the whole; of a box, the nodes at which the target is evaluated.

    Work is counted in operations (proof.enclosures.operations). A box takes those until its nodes are known, and then
    as many for each node as those before; what is left is taken to need as many for its share as what is done.
    """

    def __init__(self, effort: Effort, counting: Counting | None) -> None:
        self.effort, self.most, self.counting = effort, effort.left, counting
        self.spent = self.finished = self.told = 0.0
        self.share, self.box, self.total, self.evaluated, self.counted = 1.0, 0.0, 0, 0, 0.0

    def spend(self, operations: float) -> None:
        """So many operations more; raises if they are more than there may be."""
        self.spent += operations
        self.effort.spend(operations)
        if self.effort.over:
            raise TooLong(
                f"not proven with {self.most:,.0f} operations on balls, {self.told:.0%} of it done: give a larger "
                "error or a smaller box, or leave the proof out, prove=False"
            )

    def begin(self, share: float) -> None:
        self.share, self.box = share, self.spent

    def nodes(self, total: int) -> None:
        self.total, self.evaluated, self.counted = total, 0, self.spent

    def done(self, nodes: int, operations: float) -> None:
        """So many nodes more, which took so much."""
        self.evaluated += nodes
        self.spend(operations)
        taken = self.spent - self.box
        rest = (self.spent - self.counted) / self.evaluated * (self.total - self.evaluated)
        self._tell(self.finished + self.share * taken / (taken + rest))

    def end(self) -> None:
        """The box is done."""
        self.finished += self.share
        self._tell(self.finished)

    def _tell(self, share: float) -> None:
        self.told = max(self.told, min(share, 1.0))
        if self.counting is not None:
            left = self.spent * (1 - self.told) / self.told
            self.counting(self.told, self.spent, max(0.0, min(left, self.effort.left)))
