"""A target on an interval, normalised: x in [-1, 1] for s in [low, high], and values of size 1.

f_n(x) = (f(mid + half x) - centre) / scale
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.solver.projection import Samples

Function = Callable[[np.ndarray], np.ndarray]

_DECADES = 14  # how far samples close in on a kink


@dataclass(frozen=True, eq=False)
class Problem:
    """A vectorised float64 function f: (n,) -> (n,) or (n, m), its kinks inside the interval, and the
    interval.
    """

    f: Function
    kinks: tuple[float, ...]
    low: float
    high: float

    @classmethod
    def of(cls, f: Function, kinks: Sequence[float], low: float, high: float) -> Problem:
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise AnchorheadError(f"an interval from {low!r} to {high!r}: give two finite ends, the lower one first")
        inside = tuple(sorted({float(k) for k in kinks if low < k < high}))
        return cls(f, inside, float(low), float(high))

    @property
    def mid(self) -> float:
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2

    def at(self, s: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n m"]:
        """f(s) with one column an output; a value that is not finite is refused with its place."""
        y = np.asarray(self.f(np.asarray(s, dtype=np.float64)), dtype=np.float64)
        y = y[:, None] if y.ndim == 1 else y
        if not np.isfinite(y).all():
            place = float(s[np.flatnonzero(~np.isfinite(y).all(axis=1))[0]])
            raise AnchorheadError(
                f"the target is not finite at {place:.6g}: "
                f"choose a domain within [{self.low:g}, {self.high:g}] on which it is"
            )
        return y

    @cached_property
    def _range(self) -> tuple[np.ndarray, float]:
        y = self.at(self.points(400))
        top, bottom = y.max(axis=0), y.min(axis=0)
        scale = float((top - bottom).max()) / 2
        smallest = 1e-15 * max(float(np.abs(y).max()), 1e-300)
        return (top + bottom) / 2, scale if scale > smallest else 0.0

    @property
    def centre(self) -> Float[np.ndarray, " m"]:
        return self._range[0]

    @property
    def scale(self) -> float:
        """Half the largest range of an output, 0 for a constant."""
        return self._range[1]

    @cached_property
    def turns(self) -> int:
        """How often the target turns round by more than a quarter of its range, the most of any output."""
        y = self.at(self.points(2000))
        return max(_turns(column, self.scale / 2) for column in y.T)

    def normal(self, s: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return (s - self.mid) / self.half

    def points(self, count: int, decades: int = _DECADES) -> Float[np.ndarray, " n"]:
        """Chebyshev and even points of [low, high], and geometric ones towards every kink, 5 a decade."""
        x = np.concatenate(
            [[-1.0, 1.0], -np.cos(np.pi * (np.arange(count) + 0.5) / count), np.linspace(-1, 1, count // 2)]
        )
        s = [self.mid + self.half * x]
        steps = self.half * np.geomspace(1.0, 10.0**-decades, 5 * decades)
        for kink in self.kinks:
            s += [kink + steps, kink - steps, np.array([kink])]
        joined = np.concatenate(s)
        return np.unique(joined[(joined >= self.low) & (joined <= self.high)])

    def samples(self, count: int) -> Samples:
        """The normalised target at `points`, and wherever it bends between them, until it is resolved."""
        s = self.points(count, _DECADES if len(self.kinks) <= 3 else max(3, 3 * _DECADES // len(self.kinks)))
        for _ in range(40):
            y = self.at(s)
            gap = np.diff(s)
            turn = np.abs(np.diff(np.diff(y, axis=0) / gap[:, None], axis=0)).max(axis=1)
            bend = turn * np.maximum(gap[1:], gap[:-1])
            rough = np.flatnonzero((bend > 0.02 * self.scale) | (turn > 0.1 * turn.sum()))
            gaps = np.unique(np.concatenate([rough, rough + 1]))
            middle = (s[gaps] + s[gaps + 1]) / 2
            wide = (s[gaps + 1] - s[gaps] > 1e-13 * self.half) & (middle > s[gaps]) & (middle < s[gaps + 1])
            if self.scale == 0 or not wide.any() or len(s) > 4 * count + 400:
                break
            s = np.unique(np.concatenate([s, middle[wide]]))
        x = self.normal(s)
        apart = np.append(True, np.diff(x) > 0)  # neighbouring floats may become one
        return Samples(x[apart], (self.at(s[apart]) - self.centre) / max(self.scale, 1e-300))


def _turns(y: Float[np.ndarray, " n"], least: float) -> int:
    """Changes of direction, ignoring those smaller than `least`."""
    count, direction, low, high = 0, 0, y[0], y[0]
    for value in y:
        low, high = min(low, value), max(high, value)
        if direction >= 0 and value < high - least:
            count, direction, low, high = count + (direction > 0), -1, value, value
        elif direction <= 0 and value > low + least:
            count, direction, low, high = count + (direction < 0), 1, value, value
    return count
