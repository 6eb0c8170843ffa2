"""How inputs are changed, whatever their format: bytes, words that mean something to a reader, values in JSON."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGE = [0, 1, 127, 128, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


@dataclass(frozen=True)
class Target:
    """A reader, what valid inputs look like, and how they are mutated."""

    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], Any]
    words: tuple[bytes, ...] = ()
    inside: Callable[[bytes, random.Random], bytes] | None = None
    """A change that leaves the format whole, and what it says wrong."""


def mutated(seeds: list[bytes], target: Target, rng: random.Random) -> bytes:
    """A valid input after one to eight changes; where the format allows, half of them leave it whole."""
    if target.inside is not None and rng.random() < 0.5:
        return target.inside(rng.choice(seeds), rng)
    words, data = target.words, bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(9):
            case 0 if data:
                data[place % len(data)] ^= 1 << rng.randrange(8)
            case 1 if data:
                data[place % len(data)] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            case 2:
                del data[place:]
            case 3:
                other = rng.choice(seeds)
                cut = rng.randrange(len(other) + 1)
                data[place:] = other[cut:]
            case 4:
                data[place:place] = rng.randbytes(rng.randrange(1, 9))
            case 5:
                size = rng.randrange(1, 65)
                data[place:place] = data[place : place + size] * rng.randrange(1, 4)
            case 6:
                del data[place : place + rng.randrange(1, 17)]
            case 7:
                number = rng.choice(LARGE)
                data[place : place + rng.randrange(10)] = rng.choice(
                    (varint(number), struct.pack("<Q", number % 2**64))
                )
            case _ if words:
                data[place : place + rng.randrange(4)] = rng.choice(words)
    return bytes(data)


def varint(number: int) -> bytes:
    """As protobuf writes a whole number."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def words(text: str, *more: bytes) -> tuple[bytes, ...]:
    """Words that mean something to a reader."""
    return (*(word.encode() for word in text.split()), *more)


def odd(rng: random.Random) -> Any:
    """A value of JSON that does not belong."""
    return rng.choice((*LARGE, -1, 0.5, None, True, "", "x", [], {}, [1], {"tensor": "x"}, [[]], "1e999", -(2**63)))


def changed_json(data: Any, rng: random.Random) -> Any:
    """JSON with one value in it changed, removed or doubled."""
    if not isinstance(data, dict | list) or not data or rng.random() < 0.1:
        return odd(rng)
    key = rng.choice(list(data) if isinstance(data, dict) else range(len(data)))
    copy = data.copy()
    match rng.randrange(8):
        case 0:
            del copy[key]
        case 1 if isinstance(copy, list):
            copy.insert(key, copy[key])
        case _:
            copy[key] = changed_json(data[key], rng)
    return copy
