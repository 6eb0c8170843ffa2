"""The file: one safetensors file with arrays, and JSON under "anchorhead" in its header. Sizes are limited before any
memory is taken, and nothing is executed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from anchorhead.verify.errors import NotVerified, require

FORMAT = 3
MAX_HEADER = 2**27
MAX_NUMBERS = 2**28
"""Of all arrays that are read: what float64 holds in two gigabytes."""
MAX_BYTES = MAX_HEADER + 8 * MAX_NUMBERS + 8
_DTYPES = ("F32", "F64", "I64")


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds."""

    network: Mapping[str, Any]
    program: Mapping[str, Any] | None
    derivation: Mapping[str, Any] | None
    certificate: Mapping[str, Any] | None
    tensors: Mapping[str, np.ndarray]

    def array(self, name: Any) -> np.ndarray:
        there = isinstance(name, str) and name in self.tensors
        require(there, f"there is no array {str(name)[:80]!r} in the file")
        return self.tensors[name]


def read_file(source: str | Path | bytes) -> Stored:
    """What a file holds, given by its path or as its bytes."""
    where = "what was given" if isinstance(source, bytes) else str(source)
    try:
        content = source if isinstance(source, bytes) else _content(Path(source))
        text, tensors = _parts(content, where)
        header = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except (OSError, SafetensorError, ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise NotVerified(f"{where} cannot be read: {error}") from error
    given = header.get("format") if isinstance(header, dict) else None
    require(given == FORMAT, f"{where} has format {str(given)[:20]}: format {FORMAT} is verified")
    parts = {name: header.get(name) for name in ("network", "program", "derivation", "certificate")}
    for name, part in parts.items():
        require(isinstance(part, dict) or (part is None and name != "network"), f"{where} has no {name}")
    return Stored(tensors=tensors, **parts)  # type: ignore[arg-type]


def _content(path: Path) -> bytes:
    """All bytes of a file, whose size and whose header's are looked at first."""
    size = path.stat().st_size
    require(size <= MAX_BYTES, f"{path} has {size:,} bytes: at most {MAX_BYTES:,} are read")
    with path.open("rb") as file:
        start = file.read(8)
        _header_size(start, str(path))
        return start + file.read()


def _header_size(start: bytes, where: str) -> int:
    length = int.from_bytes(start[:8], "little")
    require(length <= MAX_HEADER, f"{where} has a header of {length:,} bytes: at most {MAX_HEADER:,} are read")
    return length


def _parts(content: bytes, where: str) -> tuple[str, dict[str, np.ndarray]]:
    """The text under "anchorhead" and the arrays, whose types and sizes are looked at first."""
    length = _header_size(content, where)
    header = json.loads(content[8 : 8 + length], object_pairs_hook=_once)
    text = header.pop("__metadata__", {}).get("anchorhead")
    require(isinstance(text, str), f"{where} is no network that anchorhead saved")
    total = 0
    for name, entry in header.items():
        kind = entry["dtype"]
        require(kind in _DTYPES, f"{where}: the array {name[:80]!r} has the type {str(kind)[:20]}")
        total += math.prod(int(side) for side in entry["shape"])
    require(total <= MAX_NUMBERS, f"{where} holds {total:,} numbers: at most {MAX_NUMBERS:,} are read")
    return text, load(content)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, in which nothing is said twice: readers differ in which of the two they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object of its JSON says something twice")
    return found


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")
