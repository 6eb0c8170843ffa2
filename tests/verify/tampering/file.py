"""A saved network as header and arrays: where things are in it, and how they are changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from safetensors.numpy import load, save

import anchorhead as ah
from tests.networks import network as of_table

Random = np.random.Generator
Row = dict[str, Any]
"""What the header says of a layer."""
LARGE = (1.0, 2.0, 100.0, 799.0, 800.0, 1000.0, 2000.0, 2.0**20, 2.0**40, 2.0**60, 2.0**100)


@dataclass(frozen=True)
class Counts:
    """Tokens of each kind, and features, of what enters a layer; inputs None: any number."""

    inputs: int | None
    registers: int
    states: int
    width: int


@dataclass(eq=False)
class File:
    """A file, to be changed in place; arrays are replaced, never written to."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def layers(self) -> list[Row]:
        return self.header["network"]["layers"]

    @property
    def embed(self) -> Row:
        return self.layers[0]

    @property
    def dtype(self) -> np.dtype:
        return self.get(self.embed, "weight").dtype

    def rows(self, *kinds: str) -> list[Row]:
        """All layers of these kinds, those in a Repeat and skips included."""
        return [row for row in _inside(self.layers) if row["layer"] in kinds]

    def get(self, row: Row, field: str) -> Any:
        """The array of a field, None if the layer has none."""
        return self.arrays[row[field]["tensor"]] if row.get(field) is not None else None

    def put(self, row: Row, field: str, array: np.ndarray | None) -> None:
        """Another array in a field, in the dtype of all weights."""
        if array is None:
            row.pop(field, None)
            return
        name = row[field]["tensor"] if row.get(field) is not None else f"layers.new.{len(self.arrays)}"
        row[field] = {"tensor": name}
        kind = array.dtype if array.dtype.kind == "i" else self.dtype
        with np.errstate(all="ignore"):
            self.arrays[name] = np.ascontiguousarray(array.astype(kind))

    def insert(self, place: int, *rows: Row) -> None:
        """Layers put in; what derivations name moves along."""
        self.layers[place:place] = rows
        self._claims_moved(place, len(rows))

    def drop(self, place: int) -> None:
        """A layer taken out."""
        self.layers.pop(place)
        self._claims_moved(place, -1)

    def _claims_moved(self, place: int, by: int) -> None:
        units = self.arrays.get("claims.units", np.zeros((0, 5), int))
        moved = np.where(units[:, :1] >= place - 1, by, 0) * (np.arange(5) == 0)
        self.arrays["claims.units"] = np.maximum(units + moved, np.minimum(units, 0))

    def linear(self, weight: np.ndarray, bias: np.ndarray | None = None) -> Row:
        """A new Linear, not yet in the file."""
        row: Row = {"layer": "Linear"}
        self.put(row, "weight", weight)
        self.put(row, "bias", bias)
        return row

    def weights(self) -> list[str]:
        """The names of all arrays of weights."""
        return [name for name, array in self.arrays.items() if name.startswith("layers.") and array.dtype.kind == "f"]

    def counts(self) -> list[Counts]:
        """What enters each layer after the Embed, and what leaves the last."""
        embed = self.embed
        rows = [self.get(embed, name) for name in ("registers", "states")]
        source = self.get(embed, "source")
        inputs = embed.get("tokens") if source is None else len(source)
        registers, states = (0 if one is None else len(one) for one in rows)
        found = [Counts(inputs, registers, states, self.get(embed, "weight").shape[-2])]
        for row in self.layers[1:]:
            found.append(self._after(row, found[-1]))
        return found

    def _after(self, row: Row, now: Counts) -> Counts:
        match row["layer"]:
            case "Repeat":
                for one in row["layers"]:
                    now = self._after(one, now)
                return now
            case "Attention":
                return Counts(now.inputs, now.registers, now.states, self.get(row, "output").shape[1])
            case "Linear":
                weight, mix = self.get(row, "weight"), self.get(row, "mix")
                width = weight.shape[1] if weight.ndim == 4 else int(np.prod(weight.shape[:-1]))
                if mix is None and weight.ndim < 4:
                    return Counts(now.inputs, now.registers, now.states, width)
                return Counts(len(weight if mix is None else mix), 0, 0, width)
        return now

    def content(self) -> bytes:
        return save(self.arrays, {"anchorhead": json.dumps(self.header)})


def _inside(layers: list[Row]) -> Iterator[Row]:
    for row in layers:
        yield row
        yield from _inside(row["layers"]) if row["layer"] == "Repeat" else ()
        yield from (row["skip"],) if row.get("skip") else ()


@cache
def _saved(name: str) -> tuple[str, dict[str, np.ndarray]]:
    return saved(of_table(name))


def saved(network: ah.Network) -> tuple[str, dict[str, np.ndarray]]:
    """Header and arrays of the file of a network."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.safetensors"
        network.save(path)
        return header_of(path.read_bytes())


def header_of(content: bytes) -> tuple[str, dict[str, np.ndarray]]:
    """The header, as text, and the arrays of a file in the order of their names: that in the file is another one every
    time, and what is drawn at random must not depend on it."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length])["__metadata__"]["anchorhead"], dict(sorted(load(content).items()))


def file_of(name: str) -> File:
    """The file of a network of the table; each call gives one of its own."""
    text, arrays = _saved(name)
    return File(json.loads(text), dict(arrays))


def loaded(content: bytes) -> ah.Network | None:
    """The network as the library reads it; None where it refuses to."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.safetensors"
        path.write_bytes(content)
        try:
            return ah.load(path)
        except ah.AnchorheadError:
            return None


def pick(rng: Random, choices: list[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))] if choices else None


def entry(array: np.ndarray, rng: Random, filled: bool) -> tuple[int, ...]:
    places = np.argwhere(array != 0) if filled else np.empty((0, array.ndim), int)
    if len(places):
        return tuple(places[rng.integers(len(places))])
    return tuple(int(rng.integers(side)) for side in array.shape)


def large(rng: Random) -> float:
    return float(rng.choice([-1, 1]) * rng.choice(LARGE))
