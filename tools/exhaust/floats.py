"""The floats of a dtype in their order, each once, by whole numbers.

The place of a float is 0 for 0.0, 1 for the smallest number above it, and so on; -1 for -0.0, -2 for the largest number
below it. Unlike the ordinals of a hunt (proof.search.hunt_points), places tell the two zeros apart: both are inputs.
With b bits, the bits of the float at place p are p where p >= 0, and p with all bits but the sign flipped elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anchorhead.errors import AnchorheadError

DTYPES: dict[str, tuple[torch.dtype, torch.dtype]] = {
    "float32": (torch.float32, torch.int32),
    "float16": (torch.float16, torch.int16),
    "bfloat16": (torch.bfloat16, torch.int16),
}
"""Each with the whole numbers that have its bits."""
RUNS = 64
"""Stretches of neighbours that a slice is made of, and one more around 0."""


def floats(first: int, count: int, dtype: str, device: torch.device | str = "cpu") -> Tensor:
    """The floats at places first, first + 1, …, first + count - 1."""
    return floats_at(torch.arange(first, first + count, dtype=torch.int32, device=device), dtype)


def floats_at(places: Tensor, dtype: str) -> Tensor:
    """The floats at these places."""
    kind, whole = DTYPES[dtype]
    places = places.to(torch.int32)
    return (places ^ ((places >> 31) & (2 ** (torch.iinfo(whole).bits - 1) - 1))).to(whole).view(kind)


def place(x: float, dtype: str) -> int:
    """The place of the float that is nearest to x."""
    kind, whole = DTYPES[dtype]
    bits = int(torch.tensor(x, dtype=torch.float64).to(kind).view(whole))
    return bits if bits >= 0 else bits ^ (2 ** (torch.iinfo(whole).bits - 1) - 1)


def drawn(x: Tensor) -> Tensor:
    """A number in [1, 2] for each float32, of the same dtype: its last bits are scrambled bits of x."""
    bits = x.float().view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    bits = (bits * 0x9E3779B1) & 0xFFFFFFFF
    bits = ((bits ^ (bits >> 15)) * 0x85EBCA77) & 0xFFFFFFFF
    return ((bits >> 9) | 0x3F800000).to(torch.int32).view(torch.float32).to(x.dtype)


@dataclass(frozen=True)
class Inputs:
    """Stretches of neighbouring floats, (place of the first, how many), of all `of` floats in an interval."""

    dtype: str
    stretches: tuple[tuple[int, int], ...]
    of: int

    @classmethod
    def between(cls, low: float, high: float, dtype: str, most: int | None = None) -> Inputs:
        """Every finite float in [low, high], zeros of both signs included; or about `most` of them: runs of neighbours
        at both ends, evenly between them, and around 0."""
        largest = torch.finfo(DTYPES[dtype][0]).max
        ends = max(low, -largest) or -0.0, min(high, largest) or 0.0
        first, last = (place(end, dtype) for end in ends)
        first += float(floats(first, 1, dtype)) < low
        last -= float(floats(last, 1, dtype)) > high
        of = last - first + 1
        if of < 1:
            raise AnchorheadError(f"there is no {dtype} in [{low!r}, {high!r}]: nothing to exhaust")
        if most is None or most >= of:
            return cls(dtype, ((first, of),), of)
        length = max(1, most // (RUNS + 1))
        starts = [first + k * (of - length) // (RUNS - 1) for k in range(RUNS)]
        starts.append(min(max(-length // 2, first), last - length + 1))
        found: list[tuple[int, int]] = []
        for start in sorted(starts):  # runs that overlap are joined, so that no float comes twice
            end = found[-1][0] + found[-1][1] if found else start
            if start > end or not found:
                found.append((start, length))
            else:
                found[-1] = found[-1][0], max(end, start + length) - found[-1][0]
        return cls(dtype, tuple(found), of)

    @property
    def count(self) -> int:
        return sum(count for _, count in self.stretches)

    def chunks(self, size: int, done: int = 0) -> Iterator[list[tuple[int, int]]]:
        """What comes after the first `done` floats, `size` at a time (the last time fewer): stretches again."""
        chunk: list[tuple[int, int]] = []
        room = size
        for first, count in self.stretches:
            skipped = min(done, count)
            done -= skipped
            start, end = first + skipped, first + count
            while start < end:
                taken = min(room, end - start)
                chunk.append((start, taken))
                start, room = start + taken, room - taken
                if not room:
                    yield chunk
                    chunk, room = [], size
        if chunk:
            yield chunk

    def floats(self, chunk: Sequence[tuple[int, int]], device: torch.device | str = "cpu") -> Tensor:
        """The floats of a chunk."""
        parts = [floats(first, count, self.dtype, device) for first, count in chunk]
        return parts[0] if len(parts) == 1 else torch.cat(parts)
