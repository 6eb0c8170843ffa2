"""A line for those who wait: how much of a proof is done, and about how long the rest takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Proving = Callable[[float, float], None]
"""Called with the share of a proof that is done, from 0 to 1, and about the seconds that are left."""
Counting = Callable[[float, float, float], None]
"""Called with the share of a proof that is done, the work that it took so far, and about the work that is left."""
LONG_S = 10.0
"""A proof that is expected to take no longer than this says nothing."""
EVERY_S, SELDOM_S = 0.5, 30.0
"""How often a line is renewed, and how often a new one is written where lines stay, in a file."""


@contextmanager
def proving_line(proving: Proving | None = None) -> Iterator[Proving]:
    """What a proof should call: the caller's own function, or one that writes a line to stderr if it takes long."""
    if proving is not None:
        yield proving
        return
    line = ProvingLine()
    try:
        yield line
    finally:
        line.clear()


def at_its_pace(proving: Proving) -> Counting:
    """What is told in work, told on in seconds: what is left goes on at the pace of what is done."""
    began = time.monotonic()

    def counting(share: float, done: float, left: float) -> None:
        proving(share, (time.monotonic() - began) * left / max(done, 1e-300))

    return counting


class ProvingLine:
    """One line on stderr that is renewed, in a terminal or a notebook; elsewhere a line now and then."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.renewed = bool(getattr(self.stream, "isatty", bool)()) or _in_a_notebook()
        self.began, self.last, self.width = time.monotonic(), -SELDOM_S, 0

    def __call__(self, share: float, left: float) -> None:
        now = time.monotonic()
        if now - self.began + left < LONG_S and not self.width:
            return
        if now - self.last < (EVERY_S if self.renewed else SELDOM_S):
            return
        self.last = now
        self._write(f"proving: {share:.0%}, {lasting(left)} left (interrupt it to keep the network unproven)")

    def clear(self) -> None:
        """Nothing of a line that is renewed stays."""
        if self.width and self.renewed:
            self._write("")
            self._put("\r")

    def _write(self, text: str) -> None:
        self._put(f"\r{text.ljust(self.width)}" if self.renewed else f"{text}\n")
        self.width = max(self.width, len(text))

    def _put(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def lasting(seconds: float) -> str:
    """A time in words: about 40 s, about 3 min."""
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"


def _in_a_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
