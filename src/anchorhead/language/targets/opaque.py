"""A callable as a target: nothing is known of it but its values, and its Lipschitz constant if given."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_number
from anchorhead.language.analysis.kink_search import find_kinks
from anchorhead.language.targets.calling import (
    require_float64,
    require_one_argument,
    tensor_for,
    with_arrays,
    with_numbers,
    with_tensors,
)
from anchorhead.language.targets.scalar import interval

_PROBES = np.array([0.0371, 0.2113, 0.4799, 0.7351, 0.9127])
_SAMPLES = 33
MAX_OUTPUTS = 200
"""All have the same keys, and values that are solved for together."""


class CallableTarget:
    """x -> f(x), or (f_1(x), ..., f_m(x)), on [low, high].

    f takes an array (N,) and returns (N,) or (N, m); or takes a torch tensor; or a number, in which case it
    is called point by point, with a warning. `lipschitz`: a number L with |f(x) - f(y)| <= L |x - y|, which
    the user vouches for.
    """

    def __init__(self, f: Callable[..., Any], low: float, high: float, lipschitz: Any = None) -> None:
        if not callable(f):
            raise AnchorheadError(f"{f!r} cannot be called: give a function of one number or array")
        if lipschitz is not None:
            lipschitz = checked_number("lipschitz", lipschitz, "give a finite number, 0 or more", least=0.0)
        self.f = f
        self.low, self.high = interval((low, high))
        self.lipschitz = lipschitz
        self.name = getattr(f, "__name__", type(f).__name__).replace("<lambda>", "a callable")
        self.eps = float(np.finfo(np.float64).eps)
        require_one_argument(f, self.name)
        self._call, self.outputs = self._choose()
        if lipschitz is not None:
            require_float64(self.f)
        x = self._points(257)
        y = self.values(x)
        if lipschitz is not None:
            self._hold_against(lipschitz, x, y)

    def values(self, x: Any) -> Float[np.ndarray, "... m"]:
        """f(x) in float64, for points of any shape; raises where f is not finite, naming the point."""
        x = np.asarray(x, dtype=np.float64)
        try:
            with np.errstate(all="ignore"):
                y = self._call(x.reshape(-1).copy())
        except Exception as error:
            raise AnchorheadError(f"{self.name} failed with {type(error).__name__}: {error}") from error
        if y.shape != (x.size, self.outputs):
            raise AnchorheadError(
                f"{self.name} returned an array of shape {y.shape} for {x.size} points: "
                f"expected ({x.size}, {self.outputs}), one row a point as for other arrays"
            )
        bad = ~np.isfinite(y).all(axis=1)
        if bad.any():
            at = int(np.argmax(bad))
            raise AnchorheadError(
                f"{self.name} is {y[at][~np.isfinite(y[at])][0]} at x = {float(x.reshape(-1)[at])!r}: "
                "it must be finite on the whole domain; choose a smaller one"
            )
        return y.reshape(*x.shape, self.outputs)

    def _hold_against(self, lipschitz: float, x: np.ndarray, y: np.ndarray) -> None:
        """Refuses a constant that two neighbouring points show wrong, beyond what values may round."""
        gaps, allowed = np.abs(np.diff(y, axis=0)).max(axis=1), lipschitz * np.diff(x)
        over = gaps - allowed * (1 + 1e-9) - 8 * self.eps * np.abs(y).max()
        worst = int(np.argmax(over))
        if over[worst] > 0:
            raise AnchorheadError(
                f"{self.name} changes by {gaps[worst]:.6g} from x = {x[worst]:.10g} to {x[worst + 1]:.10g}, and "
                f"lipschitz={lipschitz:g} allows {allowed[worst]:.6g}: give a larger constant"
            )

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """Kinks that a search finds; raises where it finds a jump."""
        return find_kinks(self.values, self.low, self.high, self.name, self.eps)

    @cached_property
    def samples(self) -> Float[np.ndarray, "n m"]:
        """Values at fixed points, by which it is known again."""
        return self.values(self._points(_SAMPLES))

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.samples.astype("<f8").tobytes()).hexdigest()

    def __str__(self) -> str:
        return self.name

    def _points(self, count: int) -> np.ndarray:
        """Both ends, and points between that crowd towards them."""
        inner = self.low + (self.high - self.low) * ((1 - np.cos(np.linspace(0, np.pi, count))) / 2)
        return np.clip(inner, self.low, self.high)

    def _choose(self) -> tuple[Callable[[np.ndarray], np.ndarray], int]:
        """How f wants to be called, and how many outputs it has."""
        x = self.low + (self.high - self.low) * _PROBES
        failure: Exception | None = None
        for way in (self._arrays, self._tensors, self._numbers):
            try:
                with np.errstate(all="ignore"):
                    y, again = way(x.copy()), way(x[3:0:-1].copy())
            except Exception as error:  # whatever f raises: it may take another kind of argument
                failure = error
                continue
            if y.shape[0] != x.size or again.shape != (3, y.shape[1]):
                continue
            if not np.allclose(y[3:0:-1], again, rtol=max(1e-9, 64 * self.eps), atol=1e-300, equal_nan=True):
                raise AnchorheadError(
                    f"{self.name} gives other values for the same points among others: "
                    "each f(x) may depend on its own x alone, and not on chance"
                )
            if y.shape[1] > MAX_OUTPUTS:
                raise AnchorheadError(
                    f"{self.name} has {y.shape[1]:,} outputs: a head has at most {MAX_OUTPUTS}; make several heads"
                )
            if way == self._numbers:
                warnings.warn(
                    f"{self.name} takes no arrays and is called point by point, which is slow: write it with numpy",
                    UserWarning,
                    stacklevel=4,
                )
            return way, y.shape[1]
        raise AnchorheadError(
            f"{self.name} gives no usable values: it takes neither arrays nor numbers, or returns something "
            f"of the wrong shape (last error: {failure}); "
            "give f with f(x) of shape (N,) or (N, m) for x of shape (N,)"
        ) from failure

    def _arrays(self, x: np.ndarray) -> np.ndarray:
        return _rows(with_arrays(self.f, x))

    def _tensors(self, x: np.ndarray) -> np.ndarray:
        y = with_tensors(self.f, x)
        self.eps = float(sys.modules["torch"].finfo(tensor_for(self.f, x[:1]).dtype).eps)
        return _rows(y)

    def _numbers(self, x: np.ndarray) -> np.ndarray:
        return with_numbers(self.f, x) if len(x) else np.zeros((0, self.outputs))


def _rows(y: np.ndarray) -> np.ndarray:
    """Values as (N, m); a shape that fits no (N,) or (N, m) is an error of the callable."""
    if y.ndim not in (1, 2):
        raise ValueError(f"returns an array of shape {y.shape}")
    return y[:, None] if y.ndim == 1 else y
