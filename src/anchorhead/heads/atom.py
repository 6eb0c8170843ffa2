"""The atom of the library: softmaxes on a scalar, with the weights that a dtype stores.

r(s) = bias + sum over parts of  sum_k values_k softmax_k(slopes_k (s - origin) + offsets_k)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.network.dtypes import stored
from anchorhead.read_only import ReadOnly, read_only

Dtype = Literal["float32", "float64"]
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]  # slopes (p,), offsets (p,), values (p, m)

_CHUNK = 1 << 20  # weights held at once while evaluating


@dataclass(frozen=True, eq=False)
class Part(ReadOnly):
    """One softmax: p anchors with slopes in ascending order, and a value of m entries each."""

    slopes: Float[np.ndarray, " p"]
    offsets: Float[np.ndarray, " p"]
    values: Float[np.ndarray, "p m"]

    @classmethod
    def of(cls, slopes: Any, offsets: Any, values: Any, dtype: Dtype) -> Part:
        """A part with its weights rounded once to the dtype, and its anchors sorted by slope."""
        slopes, offsets, values = (stored(np.asarray(a, np.float64), dtype) for a in (slopes, offsets, values))
        values = values[:, None] if values.ndim == 1 else values
        if not all(np.isfinite(array).all() for array in (slopes, offsets, values)):
            raise AnchorheadError(
                f"a head would need weights beyond what {dtype} holds: "
                f"{'use float64, or ' if dtype == 'float32' else ''}rescale the function and its interval"
            )
        if slopes.ndim != 1 or offsets.shape != slopes.shape or values.shape[:1] != slopes.shape:
            raise AnchorheadError(
                f"a part with slopes {slopes.shape}, offsets {offsets.shape}, values {values.shape}: "
                "give (p,), (p,) and (p, m)"
            )
        order = np.argsort(slopes, kind="stable")
        return cls(*(read_only(array[order]) for array in (slopes, offsets, values)))

    def __len__(self) -> int:
        return len(self.slopes)

    def astype(self, dtype: Any) -> Arrays:
        """Slopes, offsets and values as arrays of another type, for analysis."""
        return self.slopes.astype(dtype), self.offsets.astype(dtype), self.values.astype(dtype)


@dataclass(frozen=True, eq=False)
class Atom(ReadOnly):
    """Parts that add up, an output bias, and the origin that is taken from the query first."""

    parts: tuple[Part, ...]
    origin: float
    bias: Float[np.ndarray, " m"]
    dtype: Dtype

    @classmethod
    def of(cls, parts: Sequence[Part], origin: float, bias: Any, dtype: Dtype) -> Atom:
        """An atom with origin and bias rounded once to the dtype."""
        held = read_only(np.atleast_1d(stored(bias, dtype)))
        return cls(tuple(parts), float(stored(origin, dtype)), held, dtype)

    @property
    def anchors(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def max_value(self) -> float:
        return max((float(np.abs(part.values).max()) for part in self.parts), default=0.0)

    @property
    def max_slope(self) -> float:
        return max((float(np.abs(part.slopes).max()) for part in self.parts), default=0.0)

    def __call__(self, s: Any) -> Float[np.ndarray, "... m"]:
        """r(s) as the dtype computes it: one row of m outputs for every entry of s."""
        return self._evaluate(s, np.dtype(self.dtype).type)

    def exact(self, s: Any) -> np.ndarray:
        """r(s) for the stored weights in the widest type of the machine, for analysis."""
        return self._evaluate(s, np.longdouble)

    def _evaluate(self, s: Any, kind: Any) -> np.ndarray:
        s = np.asarray(s)
        flat = s.reshape(-1).astype(kind)
        out = np.empty((flat.size, self.bias.size), dtype=kind)
        rows = max(1, _CHUNK // max((len(part) for part in self.parts), default=1))
        for start in range(0, flat.size, rows):
            t = flat[start : start + rows] - kind(self.origin)
            total = np.zeros((t.size, self.bias.size), dtype=kind)
            for part in self.parts:
                slopes, offsets, values = part.astype(kind)
                with np.errstate(invalid="ignore"):  # kernels of BLAS may raise the flag for what they pad with
                    total += softmax(t[:, None] * slopes + offsets) @ values
            out[start : start + rows] = total + self.bias.astype(kind)
        return out.reshape(*s.shape, self.bias.size)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Along the last axis, the largest logit subtracted first, in the type of the logits."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
