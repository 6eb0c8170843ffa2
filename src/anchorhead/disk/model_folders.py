"""Folders of models in the Hugging Face layout: whether there is one, and whether what is written keeps clear of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from anchorhead.disk.paths import path_of
from anchorhead.errors import AnchorheadError


def require_model_folder(folder: Path) -> Path:
    """The path of its config.json; refuses what has none."""
    path = folder / "config.json"
    if not os.path.isfile(path):  # unlike Path's, False where a name cannot be looked up at all
        what = "has no config.json" if os.path.isdir(folder) else "is not a folder"
        raise AnchorheadError(f"{folder} {what}: give a local folder in the Hugging Face layout, with a model in it")
    return path


def check_apart(out: Any, source: Any) -> None:
    """Refuses to write into the model's own folder, or around it."""
    one, two = path_of(out).resolve(), path_of(source).resolve()
    if one == two or two in one.parents or one in two.parents:
        raise AnchorheadError(f"{out} and the model's folder {source} are one in the other: give a folder apart")
