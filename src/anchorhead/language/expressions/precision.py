"""The precision of ball arithmetic, at one place: python-flint has one for the whole process.

Every operation on balls rounds to `flint.ctx.prec` bits. A thread that sets it sets it for all others, in the middle of
what they do: their balls stay enclosures, but become so wide that nothing is decided any more. So whoever computes with
balls does so inside

    with precision(128):
        ...

which holds a lock for as long. One thread computes with balls at a time, which costs nothing, as flint keeps the
interpreter to itself anyway. The lock is re-entrant: proofs at one precision call others at another.

What a ball is worth must not depend on the precision that a caller, or a user's own code, happened to leave behind:
no code here computes with balls outside, or is called inside by those that do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flint import ctx

FLOAT64_BITS = 53
"""Where balls only bound, and their last digits do not matter."""

_LOCK = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Balls are rounded to so many bits inside, in this thread alone; what was set before is set again afterwards.

    Also a decorator. It must not be held by a generator that yields, which would keep others out in between.
    """
    with _LOCK:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def working_bits() -> int:
    """The precision that holds here, inside `precision`."""
    return ctx.prec
