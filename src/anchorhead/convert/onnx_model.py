"""ONNX files as plain objects: the graph's nodes, constants, inputs and outputs, read without running anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from anchorhead.convert.onnx_wire import Field, Wire, as_bytes, as_floats, as_number, as_numbers, as_text
from anchorhead.disk import read_whole
from anchorhead.errors import AnchorheadError

MAX_BYTES = 512 * 2**20
MAX_NUMBERS = 50_000_000
"""How many numbers one constant may hold."""
MAX_NODES = 50_000
"""How many nodes a file may have; of those, the output may depend on fewer."""
DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip
EXTERNAL = 1
MAX_AXES = 32
STANDARD = ("", "ai.onnx")


@dataclass(frozen=True, eq=False)
class Tensor:
    """A constant as the file has it; `array` makes the numbers, after a check of the size that it claims."""

    name: str
    dims: tuple[int, ...]
    kind: int
    raw: memoryview | None
    floats: tuple[np.ndarray, ...]
    whole: tuple[int, ...]
    external: bool

    @property
    def dtype(self) -> str:
        return DTYPES.get(self.kind, f"number {self.kind}")

    def array(self) -> np.ndarray:
        """The numbers, of shape `dims`; those of 16 bits in float32, which holds them exactly."""
        if self.external:
            raise AnchorheadError(
                f"the constant {self.name!r} lies in a file of its own, which is not read: save the model as one file, "
                "onnx.save(onnx.load('model.onnx'), 'whole.onnx', save_as_external_data=False)"
            )
        if self.kind not in DTYPES:
            raise AnchorheadError(f"the constant {self.name!r} has a type that is not supported: {self.dtype}")
        if len(self.dims) > MAX_AXES:
            raise AnchorheadError(f"the constant {self.name!r} has {len(self.dims):,} axes: at most {MAX_AXES}")
        if any(not 0 <= side <= MAX_NUMBERS for side in self.dims):  # [0, 2**60] holds nothing, and is no array
            raise AnchorheadError(f"the constant {self.name!r} says that it has shape {self.dims}")
        count = math.prod(self.dims)
        if count > MAX_NUMBERS:
            raise AnchorheadError(
                f"the constant {self.name!r} says that it has {count:,} numbers: at most {MAX_NUMBERS:,} can be read"
            )
        found = self._numbers()
        if len(found) != count:
            raise AnchorheadError(
                f"the constant {self.name!r} says that it has shape {self.dims}, but the file holds {len(found):,} of "
                f"its {count:,} numbers"
            )
        return found.reshape(self.dims)

    def _numbers(self) -> np.ndarray:
        stored = {"bfloat16": "uint16", "float16": "uint16"}.get(self.dtype, self.dtype)
        if self.raw is not None:
            kind = np.dtype(stored).newbyteorder("<")
            if len(self.raw) % kind.itemsize:
                raise AnchorheadError(
                    f"the constant {self.name!r} has {len(self.raw)} bytes, which are no {self.dtype}"
                )
            found = np.frombuffer(self.raw, kind).astype(stored)
        elif self.dtype in ("float32", "float64"):
            found = np.concatenate([np.zeros(0), *self.floats]).astype(self.dtype)
        else:
            found = np.array(self.whole, dtype=object) if self.whole else np.zeros(0)
            limits = (0, 1) if stored == "bool" else (np.iinfo(stored).min, np.iinfo(stored).max)
            if stored != "uint64" and any(not limits[0] <= one <= limits[1] for one in self.whole):
                raise AnchorheadError(f"the constant {self.name!r} has a number that is no {self.dtype}")
            found = np.array([one % 2**64 for one in self.whole] if stored == "uint64" else self.whole, dtype=stored)
        if self.dtype == "float16":
            return found.view(np.float16).astype(np.float32)
        if self.dtype == "bfloat16":
            return (found.astype(np.uint32) << 16).view(np.float32)
        return found


@dataclass(frozen=True, eq=False)
class Node:
    """An operation: names of what it reads (empty: left out) and makes, and its attributes."""

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]

    def __str__(self) -> str:
        shown = repr(self.name) if self.name else f"that makes {self.outputs[0] if self.outputs else 'nothing'!r}"
        op = self.op if self.domain in STANDARD else f"{self.domain}.{self.op}"
        return f"the node {shown} ({op})"


@dataclass(frozen=True, eq=False)
class Info:
    """An input or output: its type, and its axes, None where one is free; no axes where the file does not say."""

    name: str
    kind: int
    shape: tuple[int | None, ...] | None

    @property
    def dtype(self) -> str:
        return DTYPES.get(self.kind, "no tensor" if not self.kind else f"type {self.kind}")


@dataclass(eq=False)
class Model:
    """What of an ONNX file says what it computes."""

    opsets: dict[str, int] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Tensor] = field(default_factory=dict)
    inputs: dict[str, Info] = field(default_factory=dict)
    outputs: dict[str, Info] = field(default_factory=dict)
    graphs: int = 0


def read_model(path: str | Path) -> Model:
    """The model in a file of at most 512 MiB."""
    content = read_whole(path, "an ONNX file", MAX_BYTES)
    try:
        return model_of(content)
    except AnchorheadError as error:
        raise AnchorheadError(f"{path} cannot be read as an ONNX file: {error}") from error


def model_of(content: bytes) -> Model:
    wire, model = Wire(), Model()
    for one in wire.fields(memoryview(content)):
        match one.number:
            case 7:
                model.graphs += 1
                _graph(wire, as_bytes(one), model)
            case 8:
                domain, version = _opset(wire, as_bytes(one))
                model.opsets[domain] = version
            case _:
                pass
    if model.graphs != 1:
        raise AnchorheadError(f"it holds {model.graphs or 'no'} graphs, not one: it is no ONNX file, or is damaged")
    return model


def _graph(wire: Wire, data: memoryview, model: Model) -> None:
    for one in wire.fields(data):
        match one.number:
            case 1:
                model.nodes.append(_node(wire, as_bytes(one)))
                if len(model.nodes) > MAX_NODES:
                    raise AnchorheadError(f"it has more than {MAX_NODES:,} nodes")
            case 5:
                tensor = _tensor(wire, as_bytes(one))
                _keep(model.constants, tensor.name, tensor, "constants")
            case 11 | 12:
                info = _info(wire, as_bytes(one))
                _keep(model.inputs if one.number == 11 else model.outputs, info.name, info, "inputs or outputs")
            case _:
                pass


def _keep(known: dict[str, Any], name: str, value: Any, what: str) -> None:
    if name in known:
        raise AnchorheadError(f"two {what} have the name {name!r}")
    known[name] = value


def _opset(wire: Wire, data: memoryview) -> tuple[str, int]:
    domain, version = "", 0
    for one in wire.fields(data):
        if one.number == 1:
            domain = as_text(one)
        elif one.number == 2:
            version = as_number(one)
    return ("" if domain in STANDARD else domain), version


def _node(wire: Wire, data: memoryview) -> Node:
    texts: dict[int, list[str]] = {1: [], 2: [], 3: [], 4: [], 7: []}
    attributes: dict[str, Any] = {}
    for one in wire.fields(data):
        if one.number in texts:
            texts[one.number].append(as_text(one))
        elif one.number == 5:
            name, value = _attribute(wire, as_bytes(one))
            _keep(attributes, name, value, "attributes of a node")
    name, op, domain = ((texts[number] or [""])[-1] for number in (3, 4, 7))
    return Node(name, op, domain, tuple(texts[1]), tuple(texts[2]), attributes)


class Graph:
    """Stands for an attribute that is a graph, or another thing that no supported operation has: it is not read."""


def _attribute(wire: Wire, data: memoryview) -> tuple[str, Any]:
    """A name and a number, a text, a Tensor, or a list of the first two; texts as str."""
    name, value, several = "", None, []
    singles: dict[int, Callable[[Field], Any]] = {
        2: _float,
        3: as_number,
        4: as_text,
        5: lambda one: _tensor(wire, as_bytes(one)),
    }
    for one in wire.fields(data):
        if one.number == 1:
            name = as_text(one)
        elif one.number in singles:
            value = singles[one.number](one)
        elif one.number == 7:
            several += as_floats(one, "float32").tolist()
        elif one.number == 8:
            several += as_numbers(wire, one)
        elif one.number == 9:
            several.append(as_text(one))
        elif one.number in (6, 10, 11, 21, 22, 23):
            value = Graph()
    return name, value if value is not None else tuple(several)


def _float(one: Field) -> float:
    found = as_floats(one, "float32")
    if len(found) != 1:
        raise AnchorheadError(f"field {one.number} holds {len(found)} floats, not one")
    return float(found[0])


def _tensor(wire: Wire, data: memoryview) -> Tensor:
    dims: list[int] = []
    floats: list[np.ndarray] = []
    whole: list[int] = []
    name, kind, raw, external = "", 0, None, False
    for one in wire.fields(data):
        match one.number:
            case 1:
                dims += as_numbers(wire, one)
            case 2:
                kind = as_number(one)
            case 4:
                floats.append(as_floats(one, "float32"))
            case 5 | 7 | 11:
                whole += as_numbers(wire, one)
            case 8:
                name = as_text(one)
            case 9:
                raw = as_bytes(one)
            case 10:
                floats.append(as_floats(one, "float64"))
            case 13:
                external = True
            case 14:
                external = external or as_number(one) == EXTERNAL
            case _:
                pass
    return Tensor(name, tuple(dims), kind, raw, tuple(floats), tuple(whole), external)


def _info(wire: Wire, data: memoryview) -> Info:
    name, kind, shape = "", 0, None
    for one in wire.fields(data):
        if one.number == 1:
            name = as_text(one)
        elif one.number == 2:
            for part in wire.fields(as_bytes(one)):
                if part.number == 1:
                    kind, shape = _tensor_type(wire, as_bytes(part))
    return Info(name, kind, shape)


def _tensor_type(wire: Wire, data: memoryview) -> tuple[int, tuple[int | None, ...] | None]:
    kind, shape = 0, None
    for one in wire.fields(data):
        if one.number == 1:
            kind = as_number(one)
        elif one.number == 2:
            shape = tuple(_axis(wire, as_bytes(part)) for part in wire.fields(as_bytes(one)) if part.number == 1)
    return kind, shape


def _axis(wire: Wire, data: memoryview) -> int | None:
    sizes = [as_number(one) for one in wire.fields(data) if one.number == 1]
    return sizes[-1] if sizes and sizes[-1] > 0 else None
