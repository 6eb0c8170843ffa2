"""Paths of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anchorhead.disk.writing import check_writable
from anchorhead.errors import AnchorheadError

SUFFIXES = (".png", ".svg", ".pdf")


def check_picture_path(path: Any) -> None:
    """Refuses a path that no picture can be written to, so that no work is done in vain."""
    if not isinstance(path, str | Path):
        raise AnchorheadError(f"a picture goes to a path, not to a {type(path).__name__}: ah.plot(thing, 'thing.png')")
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        raise AnchorheadError(f"{path} ends in {suffix or 'no suffix'}: a picture is written as .png, .svg or .pdf")
    check_writable(path)
