"""Names for what is not finished yet, and the end of those whose writer was killed.

What is being written has a name of its own in the folder where it will go, and its writer holds a lock on it. The lock
goes with the process, whatever ends it: what is not locked was left behind, and the next to write in the folder
removes it. Where there are no locks, what was left behind is known by its age.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

NAME = ".anchorhead-partial-"
OURS = re.compile(re.escape(NAME) + "[0-9a-f]{16}")
OLD_S = 24 * 3600
"""Where a lock cannot be had, what has not been touched for so long is nobody's."""


@contextmanager
def partial(folder: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """A new path in a folder, of what `make` makes there; whatever has this name at the end is removed."""
    sweep(folder)
    path, lock = _claimed(folder, make)
    try:
        yield path
    finally:
        _remove(path)
        if lock is not None:
            os.close(lock)


def new_file(path: Path) -> None:
    """Empty, for whom the user's mask allows: a file of tempfile's is for its owner alone."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))


def sweep(folder: Path) -> None:
    """Removes what killed processes of this user left in a folder; never what a process is still writing."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in list(entries):
            if OURS.fullmatch(entry.name):
                _remove_if_left(Path(entry.path))


def _remove_if_left(path: Path) -> None:
    with suppress(OSError):
        status = os.lstat(path)
        own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
        if not own or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return
        lock, held = _lock(path, wait=False)
        try:
            old = time.time() - status.st_mtime > OLD_S
            if not held and (lock is not None or old):
                _remove(path)
        finally:
            if lock is not None:
                os.close(lock)


def _claimed(folder: Path, make: Callable[[Path], None]) -> tuple[Path, int | None]:
    """A path with its lock; another one if somebody swept it away in between."""
    while True:
        path = folder / f"{NAME}{secrets.token_hex(8)}"
        make(path)
        lock, _ = _lock(path, wait=True)
        if lock is None:
            if path.exists():
                return path, None
            continue
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.lstat(path)):
                return path, lock
        os.close(lock)


def _lock(path: Path, wait: bool) -> tuple[int | None, bool]:
    """A descriptor that holds the lock, if it can be had; and whether somebody else holds it."""
    if fcntl is None:
        return None, False
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None, False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        os.close(handle)
        return None, isinstance(error, BlockingIOError)
    return handle, False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
