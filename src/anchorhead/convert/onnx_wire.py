"""The wire format of protobuf, read with care: nothing is taken on trust, and no more work is done than is allowed.

A message is a sequence of fields, each a key (field number * 8 + type) and a payload: a varint (type 0), 8 bytes (1), a
length and so many bytes (2), or 4 bytes (5). Payloads are views of the file, so that reading copies nothing; what is
read is counted, so that a small file cannot make many objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from anchorhead.errors import AnchorheadError

MAX_FIELDS = 1_000_000
"""How many fields may be read of one file: a million take about a second and 100 MB."""
VARINT, EIGHT, LENGTH, FOUR = 0, 1, 2, 5


@dataclass(frozen=True)
class Field:
    """A field's number, the type on the wire, and its payload: a number for a varint, else a view of bytes."""

    number: int
    wire: int
    payload: int | memoryview


@dataclass(eq=False)
class Wire:
    """Reads messages of one file and counts what it reads."""

    left: int = MAX_FIELDS

    def fields(self, message: memoryview) -> Iterator[Field]:
        place = 0
        while place < len(message):
            key, place = self._varint(message, place)
            number, wire = key >> 3, key & 7
            if not number:
                raise AnchorheadError("a field has the number 0")
            if wire == VARINT:
                value, place = self._varint(message, place)
                yield Field(number, wire, value)
                continue
            if wire == LENGTH:
                size, place = self._varint(message, place)
            elif wire in (EIGHT, FOUR):
                size = 8 if wire == EIGHT else 4
            else:
                raise AnchorheadError(f"a field has the unknown type {wire}")
            if size > len(message) - place:
                raise AnchorheadError(f"a field says that it has {size:,} bytes, but {len(message) - place:,} are left")
            yield Field(number, wire, message[place : place + size])
            place += size

    def varints(self, packed: memoryview) -> Iterator[int]:
        """The whole numbers, written one after the other, of a packed field."""
        place = 0
        while place < len(packed):
            value, place = self._varint(packed, place)
            yield value

    def _varint(self, data: memoryview, place: int) -> tuple[int, int]:
        """A number of 7 bits a byte, the lowest first, at most 64 bits; and where it ends."""
        self.left -= 1
        if self.left < 0:
            raise AnchorheadError(f"it has more than {MAX_FIELDS:,} fields: too many for a network to convert")
        value = shift = 0
        while True:
            if place >= len(data) or shift > 63:
                raise AnchorheadError("a number is cut short or too long")
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value & (2**64 - 1), place


def signed(value: int) -> int:
    """A varint of 64 bits as int64."""
    return value - 2**64 if value >= 2**63 else value


def as_bytes(field: Field) -> memoryview:
    if not isinstance(field.payload, memoryview) or field.wire != LENGTH:
        raise AnchorheadError(f"field {field.number} has type {field.wire} where bytes are needed")
    return field.payload


def as_text(field: Field) -> str:
    return bytes(as_bytes(field)).decode("utf-8", errors="replace")


def as_number(field: Field) -> int:
    if not isinstance(field.payload, int):
        raise AnchorheadError(f"field {field.number} has type {field.wire} where a whole number is needed")
    return signed(field.payload)


def as_numbers(wire: Wire, field: Field) -> list[int]:
    """A repeated field of whole numbers: packed, or one of them."""
    if isinstance(field.payload, int):
        return [signed(field.payload)]
    return [signed(value) for value in wire.varints(as_bytes(field))]


def as_floats(field: Field, dtype: str) -> np.ndarray:
    """A field of floats, one or packed: a view of the file."""
    kind = np.dtype(dtype).newbyteorder("<")
    sizes = {FOUR: 4, EIGHT: 8}
    if isinstance(field.payload, int) or sizes.get(field.wire, kind.itemsize) != kind.itemsize:
        raise AnchorheadError(f"field {field.number} has type {field.wire} where {dtype} is needed")
    if len(field.payload) % kind.itemsize:
        raise AnchorheadError(f"field {field.number} has {len(field.payload)} bytes, which are no {dtype}")
    return np.frombuffer(field.payload, kind)
