"""How far a long piece of work has come: one signature for whoever wants to know, and a line for those who wait.

`progress=` is the same everywhere. A function of a Status is called as the work goes on (`progress=print` will do).
True, the default, shows a line on stderr once three seconds have gone by, in a terminal or a notebook, and takes it
away at the end; elsewhere, and in processes that another one started, it shows nothing. False shows nothing.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.given import shown

AFTER_S, EVERY_S = 3.0, 0.5
"""After how many seconds there is a line, and how often it is renewed."""
BAR = 20
"""Signs of a bar."""


@dataclass(frozen=True)
class Status:
    """What is being done, and how far it has come, as far as that is known.

    anchors, error   of the head or grid that the search has come to
    share            of the work that is done, from 0 to 1
    left             about how many seconds are left
    """

    doing: str
    anchors: int | None = None
    error: float | None = None
    share: float | None = None
    left: float | None = None

    def __str__(self) -> str:
        known = (
            "" if self.anchors is None else f"{self.anchors:,} anchor{'s' * (self.anchors != 1)}",
            "" if self.error is None else f"error {self.error:.2g}",
            "" if self.share is None else f"{self.share:.0%}",
            "" if self.left is None else f"{lasting(self.left)} left",
        )
        return ": ".join(filter(None, (self.doing, ", ".join(filter(None, known)))))


Progress = Callable[[Status], object]
Counting = Callable[[float, float, float], None]
"""Called with the share of a proof that is done, the work that it took so far, and about the work that is left."""


@contextmanager
def progress_line(progress: Any, doing: str, stream: Any = None) -> Iterator[Progress]:
    """What a piece of work should call, from the `progress` that a user gave; within another's line, that line."""
    if callable(progress):
        yield progress
        return
    if not isinstance(progress, bool | None):
        raise AnchorheadError(
            f"progress={shown(progress)}: True or False, or a function that is called with a Status, such as print"
        )
    outer = _open.get()
    if not progress or outer is not None or not _watched(stream or sys.stderr):
        yield outer if progress and outer is not None else _nothing
        return
    line = Line(doing, stream or sys.stderr)
    token = _open.set(line)
    try:
        with line.shown():
            yield line
    finally:
        _open.reset(token)


def at_its_pace(progress: Progress, doing: str) -> Counting:
    """What is told in work, told on in seconds: what is left goes on at the pace of what is done."""
    began = time.monotonic()

    def counting(share: float, done: float, left: float) -> None:
        progress(Status(doing, share=share, left=(time.monotonic() - began) * left / max(done, 1e-300)))

    return counting


class Line:
    """One line that is renewed by a thread of its own, since work may have nothing to say for long."""

    def __init__(self, doing: str, stream: Any) -> None:
        self.stream, self.status = stream, Status(doing)
        self.began, self.width = time.monotonic(), 0

    def __call__(self, status: Status) -> None:
        self.status = status

    @contextmanager
    def shown(self) -> Iterator[None]:
        """From three seconds on, until all is done."""
        ended = threading.Event()
        thread = threading.Thread(target=self._keep_up, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.clear()

    def renew(self) -> None:
        """Writes how far it is now, in as much of one line as there is room for."""
        status, seconds = self.status, time.monotonic() - self.began
        done = 0 if status.share is None else round(BAR * min(max(status.share, 0.0), 1.0))
        bar = "" if status.share is None else f" [{'#' * done}{'-' * (BAR - done)}]"
        room = shutil.get_terminal_size().columns - 1
        text = f"{status}{bar} ({seconds:.0f} s)"[:room]
        self._put(f"\r{text.ljust(min(self.width, room))}")
        self.width = max(self.width, len(text))

    def clear(self) -> None:
        """Nothing of it stays."""
        if self.width:
            self._put(f"\r{' ' * self.width}\r")

    def _keep_up(self, ended: threading.Event) -> None:
        wait = AFTER_S
        while not ended.wait(wait):
            self.renew()
            wait = EVERY_S

    def _put(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def lasting(seconds: float) -> str:
    """A time in words: about 40 s, about 3 min."""
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"


_open: ContextVar[Line | None] = ContextVar("open", default=None)


def _nothing(status: Status) -> None:
    """For whom nobody waits."""


def _watched(stream: Any) -> bool:
    """Whether somebody sees the line as it changes: in a terminal, or in a notebook, whose stderr obeys \\r too."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.current_process().name != "MainProcess":
        return False
    return bool(getattr(stream, "isatty", bool)()) or _in_a_notebook()


def _in_a_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
