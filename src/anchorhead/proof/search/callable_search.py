"""A search for the largest error of a network against a function of which nothing is known but its values.

Points spread evenly over the box, on its faces and at its corners; from the worst of them, kept apart from one
another, climbs that never go down. A climber tries steps of three kinds: in all directions, along one axis, and along
the difference of two climbers, which follows the ridges that kinks leave. Its steps grow when one is better and shrink
when none is, so that each finds its own scale; those that are far behind start again around the best.

What comes out is a lower bound on the largest error, and no more: a certificate from it is "measured".
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError

SAMPLES = 1 << 14
CLIMBERS, ROUNDS, EACH = 48, 40, 12
"""How many places are climbed from, how often, and with how many steps at a time."""
_MOST_CORNERS = 1024
_CHUNK = 1 << 15
_MANY = 12  # dimensions in which points spread no better than by chance
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
    low, high = np.array(target.low, np.float64), np.array(target.high, np.float64)
    search = _Search(network_values, target, low, high, np.random.default_rng(seed))
    x = search.start()
    return search.climbed(*search.apart(x, search.errors(x)))


class _Search:
    def __init__(
        self,
        network_values: Callable[[np.ndarray], np.ndarray],
        target: Sampled,
        low: Float[np.ndarray, " d"],
        high: Float[np.ndarray, " d"],
        rng: np.random.Generator,
    ) -> None:
        self.network_values, self.target, self.low, self.high, self.rng = network_values, target, low, high, rng

    def errors(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """max |network - f| over outputs; infinite where the network gives no number."""
        found = []
        for start in range(0, len(x), _CHUNK):
            part = x[start : start + _CHUNK]
            given, truth = np.asarray(self.network_values(part), np.float64), self.target.values(part)
            if given.shape != truth.shape:
                raise AnchorheadError(f"the network gives {given.shape} where the function gives {truth.shape}")
            found.append(np.abs(given - truth).max(axis=1))
        return np.nan_to_num(np.concatenate(found), nan=np.inf)

    def start(self) -> Float[np.ndarray, "n d"]:
        """Points inside, points on faces of every dimension, corners, and the middle."""
        d, low, high = len(self.low), self.low, self.high
        inside = low + (high - low) * self._spread(SAMPLES)
        moved = self.rng.random((SAMPLES // 4, d))
        share = self.rng.uniform(0, 0.5, (len(moved), 1))  # how many coordinates are at an end, from few to all
        faces = np.where(moved < share, low, np.where(moved > 1 - share, high, inside[: len(moved)]))
        if 2**d <= _MOST_CORNERS:
            corners = np.array(list(product(*zip(low, high, strict=True))))
        else:
            corners = np.where(self.rng.random((_MOST_CORNERS, d)) < 0.5, low, high)
        return np.concatenate([inside, faces, corners, (low / 2 + high / 2)[None]]).clip(low, high)

    def _spread(self, count: int) -> Float[np.ndarray, "n d"]:
        """k times the powers of 1/g modulo 1, g^(d+1) = g + 1: points that keep apart in few dimensions."""
        d, g = len(self.low), 2.0
        for _ in range(60):
            g = (1 + g) ** (1 / (d + 1))
        if d > _MANY:
            return self.rng.random((count, d))
        return (self.rng.random(d) + np.arange(1, count + 1)[:, None] * g ** -np.arange(1.0, d + 1)) % 1

    def apart(
        self, x: Float[np.ndarray, "n d"], error: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, "climbers d"], Float[np.ndarray, " climbers"]]:
        """Half of the climbers: the worst points; the others: the worst that keep a distance from worse ones."""
        order = np.argsort(-error, kind="stable")
        scaled = (x - self.low) / (self.high - self.low)
        kept = list(order[: CLIMBERS // 2])
        free = np.ones(len(x), bool)
        free[kept] = False
        radius = 0.5 * CLIMBERS ** (-1 / len(self.low))
        for place in kept[:1]:
            free &= np.abs(scaled - scaled[place]).max(axis=1) > radius
        while len(kept) < CLIMBERS:
            left = order[free[order]]
            if not len(left):
                free[:], radius = True, radius / 2
                free[kept] = False
                continue
            kept.append(left[0])
            free &= np.abs(scaled - scaled[left[0]]).max(axis=1) > radius
            free[left[0]] = False
        return x[kept], error[kept]

    def climbed(
        self, x: Float[np.ndarray, "climbers d"], error: Float[np.ndarray, " climbers"]
    ) -> tuple[float, Float[np.ndarray, " d"]]:
        size = np.full(len(x), 0.1)
        for turn in range(ROUNDS):
            tried = self._steps(x, size)
            found = self.errors(tried.reshape(-1, x.shape[1])).reshape(tried.shape[:2])
            place, best = found.argmax(axis=1), found.max(axis=1)
            better = best > error
            x = np.where(better[:, None], tried[np.arange(len(x)), place], x)
            error = np.where(better, best, error)
            size = np.clip(np.where(better, 1.5 * size, 0.5 * size), _FINEST, 0.5)
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
