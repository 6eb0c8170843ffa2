"""The heads that ship with the package: for every named function the smallest ones found, with proven bounds.

`table.jsonl` holds a header, then one line for each function, interval and dtype: the heads from few anchors to many,
each with a smaller error than all before it. Weights are written as hexadecimal floats, so what is read is what was
proven. `tools/make_head_table.py` writes the file and proves it again. It is read when a head is first asked for.

A function with f(2^k x) = 2^(d k) f(x) is known on every interval that a power of two takes to one in the table: slopes
are divided by 2^k, origins multiplied by it, values and biases multiplied by 2^(d k). All of this is exact, and so is
the evaluation, which meets the same logits. Only where results underflow is there something to add.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from anchorhead.decimals import round_up
from anchorhead.disk import write_atomically
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Atom, Dtype, Part
from anchorhead.heads.tables.hex_floats import hex_floats, read_floats

PATH = Path(__file__).with_name("table.jsonl")
VERSION = 1

_WIDE = ((-10.0, 10.0), (-30.0, 30.0), (-100.0, 100.0))
_CIRCLE = ((-math.pi, math.pi),)

STANDARD: dict[str, tuple[tuple[float, float], ...]] = {
    **dict.fromkeys(("relu", "leaky_relu", "abs"), ((-1.0, 1.0), (-10.0, 10.0))),
    "hardtanh": ((-2.0, 2.0), (-10.0, 10.0), (-100.0, 100.0)),
    **dict.fromkeys(("relu6", "hardswish", "hardsigmoid", "gelu", "gelu_tanh", "silu", "mish", "elu"), _WIDE),
    **dict.fromkeys(("selu", "celu", "softplus", "tanh", "sigmoid", "softsign"), _WIDE),
    **dict.fromkeys(("erf", "erfc"), ((-4.0, 4.0),)),
    **dict.fromkeys(("exp", "expm1", "square", "tan"), ((-1.0, 1.0),)),
    **dict.fromkeys(("sin", "cos"), _CIRCLE),
    **dict.fromkeys(("log", "reciprocal"), ((0.5, 2.0),)),
    "sqrt": ((1.0, 4.0), (0.0, 1.0)),
    "log1p": ((0.0, 1.0),),
    "soft_threshold": ((-2.0, 2.0),),
}

DEGREE = {"relu": 1.0, "leaky_relu": 1.0, "abs": 1.0, "square": 2.0, "sqrt": 0.5, "reciprocal": -1.0}
FARTHEST = 24  # the largest |k|


@dataclass(frozen=True, eq=False)
class Entry:
    """A head, and what was proven of it.

    exact     |target - head| in exact arithmetic        found   the largest that a search found
    rounding  |computed - head|, as the dtype computes   at      where
    """

    atom: Atom
    exact: float
    rounding: float
    found: float
    at: float

    @property
    def bound(self) -> float:
        """The bound as a certificate states it."""
        return round_up((self.exact + self.rounding) * (1 + 1e-15))

    def scaled(self, k: int, shift: int) -> Entry | None:
        """The head for 2^shift f(x / 2^k); None if the dtype does not hold its weights."""
        dtype, info = self.atom.dtype, np.finfo(self.atom.dtype)
        wide = [part.astype(np.float64) for part in self.atom.parts]
        weights = [(np.ldexp(slopes, -k), offsets, np.ldexp(values, shift)) for slopes, offsets, values in wide]
        origin, bias = math.ldexp(self.atom.origin, k), np.ldexp(self.atom.bias.astype(np.float64), shift)
        moved = [array.ravel() for slopes, _, values in weights for array in (slopes, values)]
        size = np.abs(np.concatenate([*moved, bias, [origin]]))
        if not ((size == 0) | ((size >= info.tiny) & (size <= info.max))).all():
            return None
        atom = Atom.of([Part.of(*arrays, dtype) for arrays in weights], origin, bias, dtype)
        # s and products below the smallest normal number may become 0, however steep the slopes and small the values
        # are: logits err by 4 tiny (1 + |slope|), far less than 1, and weights relatively by twice that
        wrong = 4 * float(info.tiny) * (1 + atom.max_slope)
        underflow = 8 * atom.anchors * float(info.tiny) + 5 * wrong * len(atom.parts) * atom.max_value
        rounding = math.nextafter(math.ldexp(self.rounding, shift) + underflow, math.inf)
        exact, found = math.ldexp(self.exact, shift), math.ldexp(self.found, shift)
        return Entry(atom, exact, rounding, found, math.ldexp(self.at, k))


@dataclass(frozen=True, eq=False)
class Frontier:
    """What is known of one function on one interval in one dtype.

    heads     with ever more anchors and ever smaller bounds
    searched  no better head with at most so many anchors is found by the solver
    note      why the search ended
    """

    function: str
    low: float
    high: float
    dtype: Dtype
    heads: tuple[Entry, ...]
    searched: int
    note: str

    @property
    def key(self) -> tuple[str, float, float, str]:
        return self.function, self.low, self.high, self.dtype

    def within(self, error: float) -> Entry | None:
        """The smallest head that is proven within this error."""
        return next((entry for entry in self.heads if entry.bound <= error), None)

    def with_anchors(self, anchors: int) -> Entry | None:
        """The best head with at most so many anchors."""
        return next((entry for entry in reversed(self.heads) if entry.atom.anchors <= anchors), None)

    def to_json(self) -> dict[str, Any]:
        return {
            "function": self.function,
            "on": hex_floats([self.low, self.high]),
            "dtype": self.dtype,
            "searched": self.searched,
            "note": self.note,
            "heads": [_entry_to_json(entry) for entry in self.heads],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Frontier:
        low, high = read_floats(data["on"])
        heads = tuple(_entry_from_json(head, data["dtype"]) for head in data["heads"])
        return cls(data["function"], low, high, data["dtype"], heads, data["searched"], data["note"])


def lookup(function: str, low: float, high: float, dtype: Dtype, arithmetic: str) -> Frontier | None:
    """What the table holds for a named function on [low, high], if its proofs are about this model of arithmetic."""
    for data in lines_about(function, dtype, arithmetic, PATH):
        k = _steps(function, tuple(read_floats(data["on"])), (low, high))
        if k is not None:
            known, shift = Frontier.from_json(data), int(DEGREE.get(function, 0) * k)
            heads = known.heads if k == 0 else [entry.scaled(k, shift) for entry in known.heads]
            held = tuple(entry for entry in heads if entry is not None)
            if len(held) == len(heads):
                return Frontier(function, low, high, dtype, held, known.searched, known.note)
    return None


def _steps(function: str, known: tuple[float, ...], asked: tuple[float, ...]) -> int | None:
    """The k with asked = 2^k known, 0 for a function that does not scale; None if there is none."""
    if known == asked:
        return 0
    far = max(abs(end) for end in asked)
    k = math.frexp(far)[1] - math.frexp(max(abs(end) for end in known))[1]
    degree = DEGREE.get(function)
    if degree is None or abs(k) > FARTHEST or not (degree * k).is_integer():
        return None
    return k if tuple(math.ldexp(end, k) for end in known) == asked else None


@cache
def read(path: Path) -> tuple[dict[str, str], tuple[bytes, ...]]:
    """The model of arithmetic for each dtype, and a line for each frontier; nothing if there is no file."""
    if not path.exists():
        return {}, ()
    try:
        head, _, rest = path.read_bytes().partition(b"\n")
        header = json.loads(head)
        if header["version"] != VERSION or header["sha256"] != hashlib.sha256(rest).hexdigest():
            raise ValueError("its version or its digest does not fit")
        return header["arithmetic"], tuple(rest.splitlines())
    except (ValueError, KeyError, TypeError) as error:
        raise AnchorheadError(
            f"the table of heads in {path} is damaged ({error}): install anchorhead again, "
            "or make it anew with tools/make_head_table.py"
        ) from error


def lines_about(function: str, dtype: str, arithmetic: str, path: Path) -> list[dict[str, Any]]:
    """What a table says of a function in a dtype, if its proofs are about this model of arithmetic."""
    models, lines = read(path)
    if models.get(dtype) != arithmetic:
        return []
    start = f'{{"function": {json.dumps(function)},'.encode()
    found = (json.loads(line) for line in lines if line.startswith(start))
    return [one for one in found if one["dtype"] == dtype]


def frontiers(path: Path = PATH) -> list[Frontier]:
    """All that is in the table."""
    return [Frontier.from_json(json.loads(line)) for line in read(path)[1]]


@runtime_checkable
class Line(Protocol):
    """What a table holds a line of: a frontier of any kind of head."""

    @property
    def key(self) -> tuple[Any, ...]: ...
    def to_json(self) -> dict[str, Any]: ...


def write(path: Path, arithmetic: Mapping[str, str], known: Iterable[Line]) -> None:
    """Writes the whole table, in the order of their keys; the file that was there is replaced at once."""
    lines = [json.dumps(one.to_json()) + "\n" for one in sorted(known, key=lambda one: one.key)]
    rest = "".join(lines).encode()
    header = {"version": VERSION, "arithmetic": dict(arithmetic), "sha256": hashlib.sha256(rest).hexdigest()}
    write_atomically(path, json.dumps(header).encode() + b"\n" + rest)


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    atom = entry.atom
    return {
        "anchors": atom.anchors,
        **{name: getattr(entry, name) for name in ("exact", "rounding", "found", "at")},
        "origin": hex_floats([atom.origin]),
        "bias": hex_floats(atom.bias),
        "parts": [
            [hex_floats(part.slopes), hex_floats(part.offsets), hex_floats(part.values[:, 0])] for part in atom.parts
        ],
    }


def _entry_from_json(data: Mapping[str, Any], dtype: Dtype) -> Entry:
    columns = ([read_floats(text) for text in part] for part in data["parts"])
    parts = [Part.of(slopes, offsets, values, dtype) for slopes, offsets, values in columns]
    atom = Atom.of(parts, read_floats(data["origin"])[0], read_floats(data["bias"]), dtype)
    return Entry(atom, data["exact"], data["rounding"], data["found"], data["at"])
