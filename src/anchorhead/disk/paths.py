"""Paths as users give them, and what is there to be read: a file of a size that is looked at before it is read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from anchorhead.errors import AnchorheadError

SHOWN = 200
"""A name that no system takes is shown up to so many signs."""
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a disk"),
    (stat.S_ISSOCK, "a socket"),
)


def path_of(given: Any) -> Path:
    """The path that was given, if it is one that can be looked up; whether anything is there is another question."""
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str):
        raise AnchorheadError(f"a {type(given).__name__} is not a path: give the name of a file, as a text or a Path")
    if not text:
        raise AnchorheadError("the name of a file is empty: give a path")
    if "\0" in text:
        raise AnchorheadError(f"{text[:SHOWN]!r} has the sign \\0 in it, which no name of a file may have")
    try:
        os.lstat(text)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise AnchorheadError(f"{_short(text)} cannot be looked up: {error.strerror}; give another path") from error
    except UnicodeError as error:
        raise AnchorheadError(f"{text[:SHOWN]!r} is not a name that this system can write: give another") from error
    return Path(text)


def kind_of(path: Path) -> str | None:
    """What is there, links followed: "a file", "a folder", "a pipe", …; None where nothing is."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return next((name for fits, name in KINDS if fits(mode)), "a file")


def file_to_read(given: Any, what: str, most: int | None = None) -> Path:
    """The path of a regular file, of at most so many bytes: a pipe or a device might never end.

    what   which file is needed, in words: "a saved network"
    """
    path = path_of(given)
    try:
        kind, size = kind_of(path), os.stat(path).st_size if path.exists() else 0
    except OSError as error:
        raise AnchorheadError(f"{path} cannot be read: {error.strerror}") from error
    if kind != "a file":
        is_kind = "" if kind is None else f" but {kind}"
        raise AnchorheadError(f"{path} is not a file{is_kind}: give the path of {what}")
    if most is not None and size > most:
        raise AnchorheadError(f"{path} has {size:,} bytes: {what} has at most {most:,}")
    return path


def read_whole(given: Any, what: str, most: int) -> bytes:
    """All of a file, if it is one of at most so many bytes."""
    path = file_to_read(given, what, most)
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise AnchorheadError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > most:
        raise AnchorheadError(f"{path} has more than {most:,} bytes: {what} has at most so many")
    return content


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,} signs)"
