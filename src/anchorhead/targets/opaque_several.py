"""A callable of several variables as a target: nothing is known of it but its values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.network import TargetRecord

KIND = "opaque several"
_PROBES = 64


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
        self.evaluations = 0
        self.outputs = self._outputs()

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

    def record(self) -> TargetRecord:
        """A digest of values at fixed points: a check needs the function again."""
        digest = hashlib.sha256(self.values(self._probes()).astype("<f8").tobytes()).hexdigest()
        data = {"opaque": digest, "variables": list(self.variables), "low": list(self.low), "high": list(self.high)}
        return TargetRecord(KIND, data)

    def __str__(self) -> str:
        return f"{self.name} of {len(self.variables)} inputs"

    def _outputs(self) -> int:
        probes = self._probes()
        y = self._called(probes)
        return y.shape[1]

    def _called(self, x: Float[np.ndarray, "n inputs"]) -> Float[np.ndarray, "n m"]:
        given = x if self.tokens is None else x.reshape(len(x), self.tokens, -1)
        self.evaluations += len(x)
        try:
            y = _as_array(self.f, given)
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


def _as_array(f: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    """f(x), for a function of arrays, or of tensors."""
    import torch

    try:
        y = f(x.copy())
    except (TypeError, AttributeError):
        y = f(torch.from_numpy(x.copy()))
    y = y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else y
    return np.asarray(y, dtype=np.float64)
