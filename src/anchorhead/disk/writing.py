"""Files land whole or not at all: written under another name beside, then renamed.

A pipe or a device that is renamed over is lost, even the machine's own /dev/null: what exists and is no regular file is
written to as it is. Links are followed, and stay.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

from anchorhead.disk.partial import new_file, partial
from anchorhead.disk.paths import kind_of, path_of
from anchorhead.errors import AnchorheadError

MAX_LINKS = 40
"""As the kernel: a longer chain of links is taken for a circle."""
STRAIGHT = ("a pipe", "a device")
"""What is written to as it is."""


def write_atomically(path: Any, content: bytes) -> None:
    """All of the content or, if anything fails, what was there before; straight to a pipe or a device."""
    path = check_writable(path)
    try:
        number = _own_descriptor(path)
        if number is not None:
            _flush_ours()
            _write_straight(os.dup(number), content)
        elif kind_of(path) in STRAIGHT:
            _write_straight(os.open(path, os.O_WRONLY), content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise AnchorheadError(f"{path} cannot be written: {error.strerror}") from error


def check_writable(path: Any) -> Path:
    """The path; refuses what no file can be written to, so that no work is done in vain."""
    path = path_of(path)
    if _own_descriptor(path) is not None:
        return path
    try:
        kind = kind_of(path)
        real = Path(os.path.realpath(path))
        if kind == "a folder":
            raise AnchorheadError(f"{path} cannot be written: it is a folder; give the name of a file")
        if kind not in (None, "a file", *STRAIGHT):
            raise AnchorheadError(f"{path} cannot be written: it is {kind}; give the name of a file")
        if kind is None and not real.parent.is_dir():
            folder = real.parent if path.is_symlink() else path.parent
            raise AnchorheadError(f"{path} cannot be written: there is no folder {folder}; create it first")
    except OSError as error:
        raise AnchorheadError(f"{path} cannot be written: {error.strerror}") from error
    if kind is not None and not os.access(path, os.W_OK):
        raise AnchorheadError(f"{path} cannot be written: it is there, and you may not write to it")
    if kind not in STRAIGHT and not os.access(real.parent, os.W_OK | os.X_OK):
        raise AnchorheadError(f"{path} cannot be written: you may not make files in the folder {real.parent}")
    return path


def _replace(target: Path, content: bytes) -> None:
    with partial(target.parent, new_file) as temporary:
        if target.exists():  # who may read it stays as it was, and is so before there is anything to read
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode) & 0o777 | stat.S_IWUSR)
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode) & 0o777)
        os.replace(temporary, target)


def _write_straight(handle: int, content: bytes) -> None:
    with open(handle, "wb") as file:
        file.write(content)


def _own_descriptor(path: Path) -> int | None:
    """The number that /dev/stdout, /dev/fd/1, /proc/self/fd/1 or a link to one of them stands for.

    Opened anew it would be a file of its own that writes over what was printed so far.
    """
    name = os.path.abspath(path)
    for _ in range(MAX_LINKS):
        folder, last = os.path.split(name)
        folder = os.path.realpath(folder)
        if last.isascii() and last.isdecimal() and folder in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
            return int(last)
        try:
            name = os.path.join(folder, os.readlink(os.path.join(folder, last)))
        except OSError:
            return None
    return None


def _flush_ours() -> None:
    """What was printed before comes before."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
