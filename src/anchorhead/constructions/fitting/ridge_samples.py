"""The samples that a network is fitted to, and the judgement of how good it is: fresh points, then a search."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.fitting.ridge_model import Model
from anchorhead.constructions.fitting.ridge_step import values
from anchorhead.progress import Progress, Status
from anchorhead.proof.search.callable_search import Sampled, largest_error

LEAST, MAX_SAMPLES, FRESH = 4000, 40_000, 4000
WORST, APART = 60, 0.02
"""How many of the worst places join the samples at a time, and how far apart they are."""
NEAR = 1.4
"""Errors of fresh points below so many times the aim are searched for."""


class Samples:
    """x (n, d) in [-1, 1]^d and y (n, m), y in units of half the function's range, and the aim in the same."""

    def __init__(self, function: Sampled, aim: float, rng: np.random.Generator, progress: Progress | None) -> None:
        self.function, self.rng, self.progress = function, rng, progress
        self.d = len(function.low)
        self.x = self.spread(LEAST)
        y = function.values(self.x)
        self.scale = max(float(np.ptp(y, axis=0).max()) / 2, aim, 1e-300)
        self.y, self.aim = y / self.scale, aim / self.scale

    def spread(self, count: int) -> Float[np.ndarray, "n d"]:
        """Half of the points inside, half on faces of every dimension, down to corners."""
        x = self.rng.uniform(-1, 1, (count, self.d))
        half = x[: count // 2]
        drawn, share = self.rng.random(half.shape), self.rng.uniform(0, 0.5, (len(half), 1))
        half[drawn < share], half[drawn > 1 - share] = -1, 1
        return x

    def left(self, model: Model) -> Float[np.ndarray, "n m"]:
        """What the network leaves over."""
        return self.y - values(model, self.x)

    def largest(self, model: Model) -> float:
        return float(np.abs(self.left(model)).max())

    def judged(self, model: Model) -> tuple[float, bool]:
        """The largest error on fresh points and, where that is near the aim, of a search; and whether there was one.

        The worst places join the samples. Others do too where these say too little: where errors elsewhere are larger,
        and where the network has many weights.
        """
        asked = _Asked(self.function, self.scale)
        trained = self.largest(model)
        fresh = self.spread(FRESH)
        error = float(np.abs(values(model, fresh) - asked.values(fresh)).max())
        searched = error <= NEAR * self.aim
        if searched:
            error = max(error, self.searched(model, asked))
            if error <= self.aim:
                error = max(error, self.searched(model, asked))
        if self.progress is not None:
            self.progress(Status(f"fitting {model.neurons} neurons", error=error * self.scale))
        if error > self.aim:
            self._join(*asked.worst(model))
            wanted = max((1.4 if error > 1.5 * trained else 1.0) * len(self.x), 3 * model.neurons * (self.d + 1))
            more = int(min(wanted, MAX_SAMPLES)) - len(self.x)
            if more > 0:
                x = self.spread(more)
                self._join(x, self.function.values(x) / self.scale)
        return error, searched

    def searched(self, model: Model, asked: _Asked | None = None) -> float:
        """The largest error that a search finds."""
        asked = asked or _Asked(self.function, self.scale)
        return largest_error(lambda x: values(model, x), asked, int(self.rng.integers(1 << 31)))[0]

    def _join(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x, self.y = np.concatenate([self.x, x]), np.concatenate([self.y, y])


class _Asked:
    """The function in the scale of the samples, which keeps all places where it was asked."""

    def __init__(self, function: Sampled, scale: float) -> None:
        self.function, self.scale, self.low, self.high = function, scale, function.low, function.high
        self._x: list[np.ndarray] = []
        self._y: list[np.ndarray] = []

    def values(self, x: np.ndarray, /) -> np.ndarray:
        y = self.function.values(x) / self.scale
        self._x.append(np.array(x))
        self._y.append(y)
        return y

    def worst(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """The places with the largest errors that keep a distance from worse ones."""
        x, y = np.concatenate(self._x), np.concatenate(self._y)
        error = np.abs(y - values(model, x)).max(axis=1)
        most = np.argsort(-error, kind="stable")[: len(x) // 4]
        x, y, error = x[most], y[most], error[most]
        kept: list[int] = []
        for _ in range(WORST):
            place = int(error.argmax())
            if error[place] < 0:
                break
            kept.append(place)
            error[np.abs(x - x[place]).max(axis=1) <= APART] = -1.0
        return x[kept], y[kept]
