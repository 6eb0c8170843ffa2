"""Folders land whole, too: filled under another name, then put in place.

Linux exchanges two folders in one step, so there is no moment without one. Elsewhere, and on disks that cannot, it
takes two renames, and the first is undone if the second fails.

Every folder carries a list of the files that were written. One that is to be replaced must have such a list, and hold
no file that is not in it: what somebody else put there is never lost.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anchorhead.disk.partial import partial
from anchorhead.disk.paths import kind_of, path_of, read_whole
from anchorhead.errors import AnchorheadError

LIST = ".anchorhead-files.json"
LONGEST_LIST = 10_000_000
AT_FDCWD, RENAME_EXCHANGE = -100, 2
"""Of Linux's renameat2: paths count from the current folder; both names change places."""


@contextmanager
def whole_folder(out: Any, replace: bool = False) -> Iterator[Path]:
    """A folder to fill, which takes the place of `out` if nothing fails; with `replace`, of one written before."""
    out = path_of(out)
    check_folder_out(out, replace)
    real = Path(os.path.realpath(out))
    try:
        with partial(real.parent, os.mkdir) as temporary:
            yield temporary
            _finish(temporary)
            check_folder_out(out, replace)
            _put(temporary, real)
    except OSError as error:
        raise AnchorheadError(f"{out} cannot be written: {error}") from error


def check_folder_out(out: Any, replace: bool = False) -> None:
    """Refuses what no folder can be written to, and what may not be replaced, before any work is done."""
    out = path_of(out)
    real = Path(os.path.realpath(out))
    try:
        kind = kind_of(real)
        if kind not in (None, "a folder"):
            raise AnchorheadError(f"{out} is not a folder but {kind}: give the name of one, which need not exist")
        if not real.parent.is_dir():
            raise AnchorheadError(f"{out} cannot be written: there is no folder {real.parent}; create it first")
        if not os.access(real.parent, os.W_OK | os.X_OK):
            raise AnchorheadError(f"{out} cannot be written: you may not make folders in {real.parent}")
        if kind is None or not any(real.iterdir()):
            return
        if not replace:
            raise AnchorheadError(f"{out} exists: give another name, or --force (force=True) to replace it")
        foreign = _foreign(real)
    except OSError as error:
        raise AnchorheadError(f"{out} cannot be written: {error.strerror}") from error
    if foreign is not None:
        raise AnchorheadError(
            f"{out} {foreign}: only folders that anchorhead wrote are replaced; give another name, or take away "
            "what is there yourself"
        )


def _foreign(folder: Path) -> str | None:
    """Why a folder is not, or not only, what was written here; None if it is."""
    try:
        ours = set(json.loads(read_whole(folder / LIST, "a list of files", LONGEST_LIST))["files"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"was not written by anchorhead (it has no list of its files, {LIST})"
    other = next((name for name in _files(folder) if name not in ours and name != LIST), None)
    return None if other is None else f"holds {other}, which anchorhead did not write"


def _files(folder: Path) -> Iterator[str]:
    """Everything in a folder that is no folder itself, relative to it; links are not followed."""
    for root, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        for name in (*files, *links):
            yield Path(root, name).relative_to(folder).as_posix()


def _finish(folder: Path) -> None:
    """Files as readable as the folder is, which some libraries write for their owner alone; and their list."""
    allowed = stat.S_IMODE(folder.stat().st_mode) & 0o666
    names = sorted(_files(folder))
    for name in names:
        if not (folder / name).is_symlink():
            (folder / name).chmod(allowed)
    content = {"written by": "anchorhead", "files": names}
    (folder / LIST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _put(made: Path, out: Path) -> None:
    """The made folder at its place; what was there is then at the other's, or gone."""
    if out.exists():  # who may look into it stays as it was
        made.chmod(stat.S_IMODE(out.stat().st_mode))
    if not out.exists() or not any(out.iterdir()):
        os.rename(made, out)  # over an empty folder, too: fails if it is not empty any more
        return
    if not _exchanged(made, out):
        _put_by_two_renames(made, out)


def _exchanged(one: Path, other: Path) -> bool:
    """Whether two names have changed places, at once; not every system and disk can."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))


def _put_by_two_renames(made: Path, out: Path) -> None:
    """What was there is kept under a name that nobody sweeps away until the other is in its place."""
    aside = out.with_name(f"{out.name}.before-{secrets.token_hex(4)}")
    os.rename(out, aside)
    try:
        os.rename(made, out)
    except BaseException:
        os.rename(aside, out)
        raise
    shutil.rmtree(aside, ignore_errors=True)
