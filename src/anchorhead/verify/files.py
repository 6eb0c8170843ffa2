"""The file: one safetensors file with arrays, and JSON under "anchorhead" in its header. Sizes are limited before any
memory is taken, and nothing is executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from anchorhead.verify.errors import Unreadable

FORMAT = 3
MAX_BYTES = 2**33
MAX_HEADER = 2**27
MAX_NUMBERS = 2**28
"""Of all arrays that are read: what float64 holds in two gigabytes."""
_DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds."""

    network: Mapping[str, Any]
    program: Mapping[str, Any] | None
    derivation: Mapping[str, Any] | None
    certificate: Mapping[str, Any] | None
    tensors: Mapping[str, np.ndarray]

    def array(self, name: Any) -> np.ndarray:
        if not isinstance(name, str) or name not in self.tensors:
            raise Unreadable(f"there is no array {str(name)[:80]!r} in the file")
        return self.tensors[name]


def read_file(path: str | Path) -> Stored:
    """The file, or Unreadable."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Unreadable(f"{path} has {path.stat().st_size:,} bytes: at most {MAX_BYTES:,} are read")
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER:
            raise Unreadable(f"{path} has a header of {length:,} bytes: at most {MAX_HEADER:,} are read")
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("anchorhead")
            if text is None:
                raise Unreadable(f"{path} is no network that anchorhead saved")
            tensors = _tensors(file, path)
        header = json.loads(text, parse_constant=_no_constant)
    except (OSError, SafetensorError, ValueError, RecursionError, TypeError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        given = header.get("format") if isinstance(header, dict) else None
        raise Unreadable(f"{path} has format {str(given)[:20]}: format {FORMAT} is verified")
    parts = {name: header.get(name) for name in ("network", "program", "derivation", "certificate")}
    for name, part in parts.items():
        if not isinstance(part, dict) and not (part is None and name != "network"):
            raise Unreadable(f"{path} has no {name}")
    return Stored(tensors=tensors, **parts)  # type: ignore[arg-type]


def _tensors(file: Any, path: Path) -> dict[str, np.ndarray]:
    names = list(file.keys())
    total = 0
    for name in names:
        part = file.get_slice(name)
        if part.get_dtype() not in _DTYPES:
            raise Unreadable(f"{path}: the array {name[:80]!r} has the type {part.get_dtype()}")
        total += int(np.prod([int(side) for side in part.get_shape()], dtype=object))
    if total > MAX_NUMBERS:
        raise Unreadable(f"{path} holds {total:,} numbers: at most {MAX_NUMBERS:,} are read")
    return {name: file.get_tensor(name) for name in names}


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")
