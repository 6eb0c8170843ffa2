"""Saved networks as header and arrays, to be changed and written again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from anchorhead.verify import Report, verify
from tests.networks import network

Change = Callable[[dict[str, Any], dict[str, np.ndarray]], None]
"""Changes a header and arrays in place."""


@cache
def parts(name: str) -> tuple[str, dict[str, np.ndarray]]:
    """The header, as text, and the arrays of a network of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.safetensors"
        network(name).save(path)
        return parts_of(path)


def parts_of(path: Path) -> tuple[str, dict[str, np.ndarray]]:
    with safe_open(path, framework="numpy") as file:
        return file.metadata()["anchorhead"], {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def written(name: str, folder: Path, change: Change | None = None) -> Path:
    """The file of a network, perhaps changed."""
    return rewritten(parts(name), folder, change)


def rewritten(found: tuple[str, dict[str, np.ndarray]], folder: Path, change: Change | None = None) -> Path:
    """A file of what another holds, perhaps changed."""
    text, tensors = found
    header, arrays = json.loads(text), {key: np.array(array) for key, array in tensors.items()}
    if change is not None:
        change(header, arrays)
    path = folder / "network.safetensors"
    save_file(arrays, path, {"anchorhead": json.dumps(header)})
    return path


def report(name: str, folder: Path, change: Change | None = None) -> Report:
    return verify(written(name, folder, change))
