"""Where a hunt looks: the floats of an interval, crowded where heads go wrong.

Floats are counted: the ordinal of a float is its place among all floats of its dtype, 0 at zero, so that neighbours
differ by 1 and a step of any size is an addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from jaxtyping import Float, Int

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.language.targets import ScalarTarget
from anchorhead.proof.enclosures.balls import crossings

LONGEST_RUN = 4096
"""Neighbours on each side of a place that are tried without a gap."""
LONGEST_STEP = 60
"""Steps of more than 2**60 floats would leave the integers."""


def to_ordinals(x: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The ordinal of each float32 or float64; both zeros have 0."""
    whole = np.int32 if x.dtype == np.float32 else np.int64
    bits = x.view(whole).astype(np.int64)
    return np.where(bits >= 0, bits, np.iinfo(whole).min - bits)


def from_ordinals(ordinals: Int[np.ndarray, " n"], dtype: str) -> Float[np.ndarray, " n"]:
    """The floats with these ordinals."""
    whole = np.int32 if dtype == "float32" else np.int64
    bits = np.where(ordinals >= 0, ordinals, np.iinfo(whole).min - ordinals)
    return bits.astype(whole).view(dtype)


@dataclass(frozen=True, eq=False)
class FloatRange:
    """The floats of a dtype in [low, high], ordinals first to last, and the ordinals of the places to crowd at."""

    dtype: str
    low: float
    high: float
    first: int
    last: int
    places: Int[np.ndarray, " places"]

    @classmethod
    def of(cls, target: ScalarTarget, parts: Sequence[Part], origin: float, dtype: str) -> FloatRange:
        """Places: kinks, crossings of anchors that are at most two apart, the origin, 0, and both ends."""
        kinks = [float(kink.at.mid()) for kink in target.pieces.kinks]
        crossed = [origin + crossings(part, apart) for part in parts for apart in (1, 2)]
        return cls.between(target.low, target.high, np.concatenate([[0.0, origin], kinks, *crossed]), dtype)

    @classmethod
    def between(cls, low: float, high: float, places: np.ndarray, dtype: str) -> FloatRange:
        """Around such of these places as there are in [low, high], and around both ends."""
        first, last = (int(to_ordinals(np.array([end], dtype))[0]) for end in (low, high))
        lowest, highest = (float(from_ordinals(np.array([end]), dtype)[0]) for end in (first, last))
        first, last = first + int(lowest < low), last - int(highest > high)
        if first > last:
            raise AnchorheadError(f"there is no {dtype} in [{low!r}, {high!r}]: nothing to hunt")
        at = np.concatenate([[low, high], places])
        at = np.unique(to_ordinals(at[(at >= low) & (at <= high)].astype(dtype)))
        return cls(dtype, low, high, first, last, np.clip(at, first, last))

    def explore(self, number: int, count: int, inputs: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
        """The ordinals that chunk `number` explores: of a hunt of so many inputs, up to half of each chunk are the
        neighbours of the places, run by run; the others are drawn anew."""
        reach = int(np.clip(inputs // (8 * len(self.places)), 8, LONGEST_RUN))
        side, half = 2 * reach + 1, count // 2
        index = np.arange(number * half, min((number + 1) * half, side * len(self.places)))
        runs = self.places[index // side] + index % side - reach
        drawn = count - len(runs)
        geometric, uniform = drawn // 2, drawn // 4
        found = [runs, self._geometric(geometric, rng), self._uniform(uniform, rng)]
        found.append(rng.integers(self.first, self.last, drawn - geometric - uniform, endpoint=True))
        return np.clip(np.concatenate(found), self.first, self.last)

    def near(self, ordinals: Int[np.ndarray, " n"], rng: np.random.Generator) -> Int[np.ndarray, " n"]:
        """A float near each of these, on either side, at a distance whose logarithm is uniform."""
        most = min(LONGEST_STEP, log2(max(self.last - self.first, 1)))
        step = np.exp2(rng.uniform(0, most, len(ordinals))).astype(np.int64)
        up = np.minimum(ordinals, self.last - step) + step
        down = np.maximum(ordinals, self.first + step) - step
        return np.where(rng.random(len(ordinals)) < 0.5, up, down)

    def _geometric(self, count: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
        """Distances from a place between the whole interval and the gap to the next float."""
        place = from_ordinals(rng.choice(self.places, count), self.dtype)
        width = self.high - self.low
        gap = np.maximum(np.spacing(np.abs(place)), np.finfo(self.dtype).tiny).astype(np.float64)
        octaves = np.log2(np.maximum(width, gap)) - np.log2(gap)
        distance = width * np.exp2(-octaves * rng.random(count) ** 2)
        return self._rounded(place.astype(np.float64) + np.where(rng.random(count) < 0.5, distance, -distance))

    def _uniform(self, count: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
        return self._rounded(rng.uniform(self.low, self.high, count))

    def _rounded(self, x: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        return to_ordinals(np.clip(x, self.low, self.high).astype(self.dtype))
