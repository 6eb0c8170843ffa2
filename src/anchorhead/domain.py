"""The domain of a network: a box of inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.errors import AnchorheadError
from anchorhead.given import numbers, pair, shown
from anchorhead.read_only import ReadOnly, read_only


@dataclass(frozen=True, eq=False)
class Box(ReadOnly):
    """All arrays `x` with `low <= x <= high`, entry by entry.

    `low` and `high` are numbers, or arrays that broadcast against an input: (features,) or (tokens, features).

        >>> box = ah.head("gelu", on=(-10, 10), within=1e-6).certificate.on
        >>> float(box.low), float(box.high)
        (-10.0, 10.0)
    """

    low: Float[np.ndarray, "..."]
    high: Float[np.ndarray, "..."]

    @classmethod
    def of(cls, on: Any) -> Box:
        """A box from what a user writes: `(-10, 10)`, or a pair of arrays with the ends of each feature."""
        if isinstance(on, Box):
            return on
        low, high = (numbers(end) for end in pair(on) or (None, None))
        try:
            low, high = np.broadcast_arrays(low, high) if low is not None and high is not None else (None, None)
        except ValueError:
            low, high = None, None
        if low is None or high is None:
            raise AnchorheadError(
                f"on={shown(on)} is not a box: give the lower and the upper end, as in on=(-10, 10), "
                "or a pair of arrays with the ends of each feature"
            )
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise AnchorheadError(
                f"on={shown(on)} has an end that is not finite in float64: a certificate needs a bounded box"
            )
        if (low > high).any():
            raise AnchorheadError(f"on={shown(on)} has a lower end above its upper end: give (lower, upper)")
        return cls(read_only(low), read_only(high))

    def broadcast_to(self, shape: tuple[int, ...]) -> Box:
        """The same box with ends of the given shape."""
        try:
            return Box(np.broadcast_to(self.low, shape), np.broadcast_to(self.high, shape))
        except ValueError as error:
            raise AnchorheadError(
                f"the box has ends of shape {self.low.shape}, which do not fit inputs of shape {shape}: "
                "give two numbers, or an end for each feature"
            ) from error

    @property
    def magnitude(self) -> Float[np.ndarray, "..."]:
        """The largest |x| in the box, entry by entry."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))

    def contains(self, x: np.ndarray) -> Bool[np.ndarray, "..."]:
        """Which entries of x lie inside, ends included."""
        return np.asarray((x >= self.low) & (x <= self.high))

    def to_json(self) -> dict[str, Any]:
        return {"low": self.low.tolist(), "high": self.high.tolist()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Box:
        return cls.of((data["low"], data["high"]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and np.array_equal(self.low, other.low) and np.array_equal(self.high, other.high)

    def __hash__(self) -> int:
        return hash((self.low.tobytes(), self.high.tobytes()))

    def __str__(self) -> str:
        lows, highs = np.unique(self.low), np.unique(self.high)
        if len(lows) == 1 and len(highs) == 1:
            return interval_text(lows[0], highs[0])
        return f"a box of shape {self.low.shape} within {interval_text(lows[0], highs[-1])}"


def interval_text(low: float, high: float) -> str:
    """An interval with as few digits as tell its ends apart, where six do not."""
    digits = next((digits for digits in range(6, 17) if low == high or f"{low:.{digits}g}" != f"{high:.{digits}g}"), 17)
    return f"[{low:.{digits}g}, {high:.{digits}g}]"
