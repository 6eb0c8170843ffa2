"""How much of a proof over boxes is done, and how long the rest will take: from work that is counted, not from hope."""

from __future__ import annotations

import time

from anchorhead.errors import AnchorheadError
from anchorhead.progress import Proving


class TooLong(AnchorheadError):
    """A proof that does not end within its time."""


class Work:
    """Boxes one after the other, each with a share of the whole; of a box, the nodes at which the target is evaluated.

    A box costs the time until its nodes are known, and then as much for each node as those before. A box that waits
    costs as much as the mean of those that were done, or as many of them as its share is larger.
    """

    def __init__(self, limit_s: float, proving: Proving | None) -> None:
        self.limit_s, self.proving = limit_s, proving
        self.finished, self.boxes, self.seconds, self.told = 0.0, 0, 0.0, 0.0
        self.share, self.waiting = 1.0, [0.0]
        self.total, self.evaluated = 0, 0
        self.began = self.box = self.counted = time.perf_counter()

    def begin(self, share: float, waiting: list[float]) -> None:
        """A box, and the shares of those that wait."""
        self.share, self.waiting, self.total, self.evaluated = share, waiting, 0, 0
        self.box = time.perf_counter()
        self.check()

    def nodes(self, total: int) -> None:
        self.total, self.counted = total, time.perf_counter()

    def done(self, nodes: int) -> None:
        """So many nodes more."""
        self.evaluated += nodes
        self.check()
        now = time.perf_counter()
        spent = now - self.box
        rest = (now - self.counted) / self.evaluated * (self.total - self.evaluated)
        self._tell(self.finished + self.share * spent / (spent + rest), rest + self._others(spent + rest))

    def end(self) -> None:
        """The box is done."""
        self.finished += self.share
        self.boxes += 1
        self.seconds += time.perf_counter() - self.box
        self._tell(self.finished if self.waiting else 1.0, self._others(0.0))

    def check(self) -> None:
        """Raises if the time is over."""
        spent = time.perf_counter() - self.began
        if spent > self.limit_s:
            raise TooLong(
                f"not proven within {self.limit_s:g} s, {self.told:.0%} of it done: give a larger error or a smaller "
                "box, or leave the proof out, prove=False"
            )

    def _others(self, this: float) -> float:
        """About the seconds that the waiting boxes take; `this`: those of the box at hand, if it is not done."""
        count = self.boxes + (this > 0)
        seconds, share = (self.seconds + this) / count, (self.finished + self.share * (this > 0)) / count
        return sum(seconds * max(1.0, one / share) for one in self.waiting)

    def _tell(self, share: float, left: float) -> None:
        self.told = max(self.told, min(share, 1.0))
        if self.proving is not None:
            self.proving(self.told, max(0.0, min(left, self.limit_s - (time.perf_counter() - self.began))))
