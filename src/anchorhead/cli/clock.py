"""How long a user has waited: from when the program began to load, or a command began where a program runs several."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOADED = time.perf_counter()
"""This module is the first that the command line imports."""
NOTABLE = 0.1
"""A part of the time waited that is worth naming."""

_began: ContextVar[float | None] = ContextVar("began", default=None)


@contextmanager
def running(began: float | None = None) -> Iterator[None]:
    """Within a command. The first that says when it began is believed: the program itself, or else its command."""
    token = _began.set(_began.get() or began or time.perf_counter())
    try:
        yield
    finally:
        _began.reset(token)


def waited() -> float:
    """The seconds since it began."""
    now = time.perf_counter()
    return now - (_began.get() or now)


def time_words(searched: float = 0.0) -> str:
    """The time waited; and how much of it a search for the largest error took, if that is a notable part."""
    seconds = waited()
    part = f", {searched:.1f} s of them searching for the largest error" if searched > NOTABLE * seconds else ""
    return f"{seconds:.1f} s{part}"


def print_time(searched: float = 0.0) -> None:
    """The last line of a command: how long the user has waited."""
    import typer  # the clock runs while that is loaded

    typer.echo(f"Time: {time_words(searched)}")
