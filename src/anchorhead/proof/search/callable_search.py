"""A search for the largest error of a network against a function: from points that are given, or from all over a box.

Of a function of which nothing is known but its values, points at random in the box, on its faces and at its corners.
From the worst of them, climbs that never go down. A climber tries steps of three kinds: in all directions, along one
axis, and along the difference of two climbers, which follows the ridges that kinks leave. Its steps grow when one is
better and shrink when none is, so that each finds its own scale; those that are far behind start again around the best.

What comes out is a lower bound on the largest error, and no more: a certificate from it is "measured".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError

SAMPLES = 1 << 14
CLIMBERS, ROUNDS, EACH = 48, 40, 12
"""How many places are climbed from, how often, and with how many steps at a time."""
_MAX_CORNERS = 1024
_CHUNK = 1 << 15
_FINEST = 1e-9  # steps, as a part of the box


@runtime_checkable
class Sampled(Protocol):
    """A function on a box: values (n, inputs) -> (n, outputs)."""

    @property
    def low(self) -> tuple[float, ...]: ...
    @property
    def high(self) -> tuple[float, ...]: ...
    def values(self, x: np.ndarray, /) -> np.ndarray: ...


def largest_error(
    network_values: Callable[[np.ndarray], np.ndarray], target: Sampled, seed: int = 0
) -> tuple[float, Float[np.ndarray, " inputs"]]:
    """The largest |network - f| found in any output, and the input (inputs,) where it is.

    network_values  the network as its dtype computes it, (n, inputs) float64 -> (n, outputs); rounding an input to the
                    dtype is its own affair, and counts as its error
    """

    def errors(x: np.ndarray) -> np.ndarray:
        given, truth = np.asarray(network_values(x), np.float64), target.values(x)
        if given.shape != truth.shape:
            raise AnchorheadError(f"the network gives {given.shape} where the function gives {truth.shape}")
        return np.abs(given - truth).max(axis=1)

    search = Search.of(errors, target.low, target.high, seed)
    return search.climbed(search.anywhere(), ROUNDS)


@dataclass(eq=False)
class Search:
    """Climbs in a box. errors: of inputs (n, d), -inf where nothing is claimed; evaluations: how many were asked."""

    errors: Callable[[np.ndarray], np.ndarray]
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    rng: np.random.Generator
    chunk: int = _CHUNK
    evaluations: int = 0

    @classmethod
    def of(
        cls,
        errors: Callable[[np.ndarray], np.ndarray],
        low: Sequence[float] | np.ndarray,
        high: Sequence[float] | np.ndarray,
        seed: int,
        chunk: int = _CHUNK,
    ) -> Search:
        """chunk: how many inputs are looked at together."""
        return cls(errors, np.array(low, np.float64), np.array(high, np.float64), np.random.default_rng(seed), chunk)

    def look(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """The error of each input; infinite where the network gives no number."""
        self.evaluations += len(x)
        found = [self.errors(x[start : start + self.chunk]) for start in range(0, len(x), self.chunk)]
        return np.nan_to_num(np.concatenate(found).astype(np.float64), nan=np.inf, posinf=np.inf, neginf=-np.inf)

    def anywhere(self) -> Float[np.ndarray, "n d"]:
        """Points inside, points on faces of every dimension, corners, and the middle."""
        d, low, high = len(self.low), self.low, self.high
        inside = low + (high - low) * self.rng.random((SAMPLES, d))
        moved = self.rng.random((SAMPLES // 4, d))
        share = self.rng.uniform(0, 0.5, (len(moved), 1))  # how many coordinates are at an end, from few to all
        faces = np.where(moved < share, low, np.where(moved > 1 - share, high, inside[: len(moved)]))
        if 2**d <= _MAX_CORNERS:
            corners = np.array(list(product(*zip(low, high, strict=True))))
        else:
            corners = np.where(self.rng.random((_MAX_CORNERS, d)) < 0.5, low, high)
        return np.concatenate([inside, faces, corners, (low / 2 + high / 2)[None]]).clip(low, high)

    def climbed(
        self, starts: Float[np.ndarray, "n d"], rounds: int, first: float = 0.1, climbers: int = CLIMBERS
    ) -> tuple[float, Float[np.ndarray, " d"]]:
        """The largest error found from some inputs on, and where it is; first: the size of steps at first, in boxes."""
        error = self.look(starts)
        worst = np.argsort(-error, kind="stable")[:climbers]
        x, error = starts[worst], error[worst]
        size, finest = np.full(len(x), first), min(_FINEST, 1e-6 * first)
        for turn in range(rounds):
            tried = self._steps(x, size)
            found = self.look(tried.reshape(-1, x.shape[1])).reshape(tried.shape[:2])
            place, best = found.argmax(axis=1), found.max(axis=1)
            better = best > error
            x = np.where(better[:, None], tried[np.arange(len(x)), place], x)
            error = np.where(better, best, error)
            size = np.clip(np.where(better, 1.5 * size, 0.5 * size), finest, 0.5)
            if turn % 10 == 9:
                behind = np.argsort(error)[: len(x) // 3]
                behind = behind[error[behind] < 0.9 * error.max()]
                leader = int(error.argmax())
                x[behind], error[behind] = x[leader], error[leader]
                size[behind] = 10.0 ** self.rng.uniform(-4, -1, len(behind))
        leader = int(error.argmax())
        return float(error[leader]), x[leader]

    def _steps(self, x: Float[np.ndarray, "climbers d"], size: np.ndarray) -> Float[np.ndarray, "climbers each d"]:
        count, d = x.shape
        step = self.rng.standard_normal((count, EACH, d))
        axis = self.rng.integers(d, size=(count, EACH // 3))
        step[:, : EACH // 3] *= np.eye(d)[axis] * np.sqrt(d)
        step *= size[:, None, None] * (self.high - self.low) / np.sqrt(d)
        pairs = self.rng.integers(count, size=(2, count, EACH // 3))
        stretch = self.rng.standard_normal((count, EACH // 3, 1)) * np.minimum(4 * size, 1)[:, None, None]
        step[:, -(EACH // 3) :] += stretch * (x[pairs[0]] - x[pairs[1]])
        return (x[:, None] + step).clip(self.low, self.high)
