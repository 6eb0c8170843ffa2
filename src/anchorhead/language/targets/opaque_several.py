"""A callable of several variables as a target: nothing is known of it but its values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.decimals import counted
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.calling import called, require_float64, require_one_argument
from anchorhead.language.targets.lipschitz import Lipschitz

_PROBES, _PAIRS, _CORNERS = 64, 4096, 13
MAX_OUTPUTS = 1_000
"""Weights of a network grow with their square."""


class CallableSeveral:
    """f from (batch, inputs) to (batch, outputs), or from (batch, tokens, features) to (batch, tokens, outputs).

    f may work in numpy or in torch. low and high are the ends of its inputs, flattened.
    """

    def __init__(
        self, f: Callable[..., Any], low: np.ndarray, high: np.ndarray, tokens: int | None, names: tuple[str, ...]
    ) -> None:
        if not callable(f):
            raise AnchorheadError(f"{f!r} cannot be called: give an expression, or a function of an array")
        self.f, self.tokens, self.variables = f, tokens, names
        self.low, self.high = tuple(map(float, low)), tuple(map(float, high))
        self.name = getattr(f, "__name__", type(f).__name__).replace("<lambda>", "a callable")
        require_one_argument(f, self.name, names)
        self.evaluations = 0
        self.outputs = self._outputs()
        self.values(self._telling())

    @property
    def on(self) -> Box:
        """The box, in the shape of an input."""
        shape = (-1,) if self.tokens is None else (self.tokens, -1)
        return Box.of(tuple(np.reshape(end, shape) for end in (self.low, self.high)))

    def values(self, x: Any) -> Float[np.ndarray, "n m"]:
        """f at n points (n, inputs), in float64; raises where it is not finite, naming the point."""
        x = np.asarray(x, dtype=np.float64).reshape(-1, len(self.variables))
        y = self._called(x)
        if y.shape != (len(x), self.outputs):
            raise AnchorheadError(
                f"{self.name} returned {y.size} numbers for {len(x)} inputs: {self.outputs} each, as before"
            )
        bad = ~np.isfinite(y).all(axis=1)
        if bad.any():
            at = int(bad.argmax())
            raise AnchorheadError(
                f"{self.name} is {y[at][~np.isfinite(y[at])][0]} at {x[at].tolist()}: it must be finite on the box"
            )
        return y

    def check_lipschitz(self, lipschitz: Lipschitz) -> None:
        """Refuses a constant that pairs of points contradict: random ones, and those along the steepest way up."""
        require_float64(self.f)
        rng = np.random.default_rng(0)
        low, high = np.array(self.low), np.array(self.high)
        x = rng.uniform(low, high, (_PAIRS, len(low)))
        step = (high - low) * 10.0 ** rng.uniform(-3, -0.5, (_PAIRS, 1))
        slopes = np.zeros((_PAIRS, len(low), self.outputs))
        at = self.values(x)
        for j in range(len(low)):
            y = np.where(np.arange(len(low)) == j, x + np.where(x + step <= high, 1e-3, -1e-3) * (high - low), x)
            self._compare(x, y, at, lipschitz)
            slopes[:, j] = (self.values(y) - at) / (y - x)[:, j, None]
        output = np.linalg.norm(slopes, axis=1).argmax(axis=1)
        uphill = slopes[np.arange(_PAIRS), :, output]
        uphill /= np.maximum(np.linalg.norm(uphill, axis=1, keepdims=True), 1e-300)
        for way in (uphill, -uphill, rng.standard_normal(x.shape)):
            self._compare(x, (x + step * way).clip(low, high), at, lipschitz)

    def _compare(
        self, x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n d"], at: np.ndarray, lipschitz: Lipschitz
    ) -> None:
        there = self.values(y)
        gaps = np.abs(there - at).max(axis=1)
        noise = 2.0**-48 * max(float(np.abs(there).max()), float(np.abs(at).max()))
        excess = gaps - lipschitz.apart(y - x) * (1 + 1e-9) - noise
        if (excess > 0).any():
            worst = int(excess.argmax())
            raise lipschitz.contradicted(x[worst], y[worst], float(gaps[worst]))

    @cached_property
    def digest(self) -> str:
        """Of values at fixed points: a check needs the function again."""
        return hashlib.sha256(self.values(self._probes()).astype("<f8").tobytes()).hexdigest()

    def __str__(self) -> str:
        return f"{self.name} of {counted(len(self.variables), 'input')}"

    def _outputs(self) -> int:
        y = self._called(self._probes())
        if not y.shape[1]:
            raise AnchorheadError(
                f"{self.name} returned no outputs: an array with at least one for each input is needed"
            )
        if y.shape[1] > MAX_OUTPUTS:
            raise AnchorheadError(
                f"{self.name} has {y.shape[1]:,} outputs: at most {MAX_OUTPUTS:,} go into one network; make several"
            )
        return y.shape[1]

    def _called(self, x: Float[np.ndarray, "n inputs"]) -> Float[np.ndarray, "n m"]:
        given = x if self.tokens is None else x.reshape(len(x), self.tokens, -1)
        self.evaluations += len(x)
        try:
            y = called(self.f, given)
        except Exception as error:
            raise AnchorheadError(
                f"{self.name} failed with {type(error).__name__} for an array of shape {given.shape}: {error}"
            ) from error
        fits = y.ndim == given.ndim and y.shape[:-1] == given.shape[:-1]
        if not fits and not (self.tokens is None and y.shape == (len(x),)):
            wanted = "(batch, outputs)" if self.tokens is None else f"(batch, {self.tokens}, outputs)"
            raise AnchorheadError(
                f"{self.name} returned an array of shape {y.shape} for one of shape {given.shape}: {wanted} is needed"
            )
        return y.reshape(len(x), -1)

    def _probes(self) -> Float[np.ndarray, "n inputs"]:
        rng = np.random.default_rng(0)
        return rng.uniform(self.low, self.high, (_PROBES, len(self.variables)))

    def _telling(self) -> Float[np.ndarray, "n inputs"]:
        """The middle of the box and some of its corners: where functions are most often not defined."""
        low, high = np.array(self.low), np.array(self.high)
        which = np.random.default_rng(0).random((_CORNERS, len(low))) < 0.5
        return np.concatenate([[low / 2 + high / 2, low, high], np.where(which, low, high)])
