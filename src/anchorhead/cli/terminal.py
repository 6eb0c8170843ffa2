"""Terminals as they are: without colours, without signs beyond ASCII, closed early, or onto a disk that is full."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress

import typer

SIGNS = {"…": "...", "·": "*", "×": "x", "→": "->", "≤": "<=", "≥": ">=", "²": "^2", "–": "-", "—": "-", "−": "-"}
"""What stands for signs that a terminal does not have; for others a question mark."""
HANDLER = "anchorhead.cli.terminal"
INTERRUPTED = 130


def prepare() -> None:
    """What stdout and stderr cannot encode is written in other signs: no output fails for it."""
    codecs.register_error(HANDLER, _in_other_signs)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def without_colours() -> bool:
    """Whether the user or the terminal wants none: https://no-color.org."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def give_up_output() -> None:
    """Nothing more is written to where nothing can be: what is still in buffers goes nowhere, without a traceback."""
    with suppress(OSError, ValueError, AttributeError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def stopped(said: str) -> typer.Exit:
    """How a command ends that the user has stopped."""
    typer.secho(said, fg="yellow", err=True)
    return typer.Exit(INTERRUPTED)


def in_one_line(text: str) -> str:
    """One paragraph; what a terminal would obey rather than print is replaced: files may hold anything."""
    joined = " ".join(text.split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in joined)


def _in_other_signs(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(SIGNS.get(sign, "?") for sign in error.object[error.start : error.end]), error.end
