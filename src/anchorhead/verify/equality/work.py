"""How much may be done to compare two programs: a small file must not lead to work without end."""

from __future__ import annotations

from anchorhead.verify.errors import NotVerified

MOST = 300_000
"""Terms and cells that are looked at, some twenty microseconds each; a function of ten variables takes 5,000."""


class Work:
    """What was done so far. Whoever counts beyond the most is refused, and so is all that comes later."""

    def __init__(self) -> None:
        self.done = 0

    def count(self, steps: int) -> None:
        self.done += steps
        if self.done > MOST:
            raise NotVerified(
                f"the program and what it was rewritten as are too long to compare in {MOST:,} steps: one of fewer "
                "terms, or of fewer products of sums, can be compared"
            )
