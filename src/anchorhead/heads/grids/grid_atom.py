"""The atom of several variables: one softmax over a tensor grid of anchors, with the weights that a dtype stores.

r(x) = bias + sum over k = (k_1 … k_d) of values_k prod_j w^j_{k_j}(x_j)
w^j(x_j) = softmax_k(slopes^j_k (x_j - origins_j) + offsets^j_k)

A softmax over logits that are sums over axes, sum_j z^j_{k_j}, is the product of the softmaxes of the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype, softmax
from anchorhead.network.dtypes import stored
from anchorhead.read_only import ReadOnly, read_only

Axis = tuple[np.ndarray, np.ndarray]
"""Slopes (p,) and offsets (p,) of the anchors along one axis."""
MAX_VARIABLES = 4
_CHUNK = 1 << 21  # weights held at once while evaluating


@dataclass(frozen=True, eq=False)
class GridAtom(ReadOnly):
    """Anchors along each of d axes, a value of m entries at each of the p_1 x … x p_d points, and an output bias.

    axes      for each axis (slopes (p_j,), offsets (p_j,))
    origins   (d,): taken from the inputs first
    values    (p_1, …, p_d, m)
    bias      (m,)
    """

    axes: tuple[Axis, ...]
    origins: Float[np.ndarray, " d"]
    values: Float[np.ndarray, "..."]
    bias: Float[np.ndarray, " m"]
    dtype: Dtype

    @classmethod
    def of(cls, axes: Sequence[tuple[Any, Any]], origins: Any, values: Any, bias: Any, dtype: Dtype) -> GridAtom:
        """A grid with its weights rounded once to the dtype."""
        pairs = tuple((_stored(slopes, dtype), _stored(offsets, dtype)) for slopes, offsets in axes)
        start, table, shift = (_stored(array, dtype) for array in (origins, values, bias))
        sides = tuple(len(slopes) for slopes, _ in pairs)
        fits = (
            1 <= len(pairs) <= MAX_VARIABLES
            and all(slopes.ndim == 1 and slopes.shape == offsets.shape and slopes.size for slopes, offsets in pairs)
            and start.shape == (len(pairs),)
            and shift.ndim == 1
            and shift.size > 0
            and table.shape == (*sides, len(shift))
        )
        if not fits:
            raise AnchorheadError(
                f"a grid of axes {[(s.shape, o.shape) for s, o in pairs]}, origins {start.shape}, values "
                f"{table.shape}, bias {shift.shape}: give slopes and offsets (p_j,) for 1 to {MAX_VARIABLES} axes, "
                "origins (d,), values (p_1, ..., p_d, m) and a bias (m,)"
            )
        if not all(np.isfinite(array).all() for array in (*(a for pair in pairs for a in pair), start, table, shift)):
            raise AnchorheadError(f"a grid with a weight that is not finite in {dtype}: scale the function down")
        return cls(pairs, start, table, shift, dtype)

    @property
    def sides(self) -> tuple[int, ...]:
        """How many anchors each axis has."""
        return tuple(len(slopes) for slopes, _ in self.axes)

    @property
    def anchors(self) -> int:
        return prod(self.sides)

    @property
    def variables(self) -> int:
        return len(self.axes)

    @property
    def outputs(self) -> int:
        return len(self.bias)

    @property
    def max_value(self) -> float:
        return float(np.abs(self.values).max())

    def __call__(self, x: Any) -> Float[np.ndarray, "... m"]:
        """r(x) for x (..., d), as the dtype computes it: logits added over axes, one softmax over all anchors."""
        kind = np.dtype(self.dtype).type

        def rows(t: np.ndarray) -> np.ndarray:
            logits = np.zeros((len(t), 1), kind)
            for j, (slopes, offsets) in enumerate(self.axes):
                part = t[:, j, None] * slopes + offsets
                logits = (logits[:, :, None] + part[:, None, :]).reshape(len(t), -1)
            return softmax(logits) @ self.values.reshape(-1, self.outputs)

        return self._in_chunks(x, kind, rows)

    def exact(self, x: Any) -> np.ndarray:
        """r(x) for the stored weights in the widest type of the machine, for analysis."""
        wide = np.longdouble

        def rows(t: np.ndarray) -> np.ndarray:
            read = np.broadcast_to(self.values.astype(wide), (len(t), *self.values.shape))
            for j, (slopes, offsets) in enumerate(self.axes):
                weights = softmax(t[:, j, None] * slopes.astype(wide) + offsets.astype(wide))
                read = np.einsum("nk,nk...->n...", weights, read)
            return read

        return self._in_chunks(x, wide, rows)

    def weights(self, axis: int, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n p"]:
        """The weights of the anchors along an axis at points of it, in float64."""
        slopes, offsets = (array.astype(np.float64) for array in self.axes[axis])
        return softmax((x - float(self.origins[axis]))[:, None] * slopes + offsets)

    def _in_chunks(self, x: Any, kind: Any, rows: Any) -> np.ndarray:
        x = np.asarray(x)
        if x.ndim < 1 or x.shape[-1] != self.variables:
            raise AnchorheadError(f"an input of shape {x.shape}: needed is (..., {self.variables})")
        flat = x.reshape(-1, self.variables).astype(kind)
        out = np.empty((len(flat), self.outputs), kind)
        step = max(1, _CHUNK // (self.anchors * self.outputs))
        for start in range(0, len(flat), step):
            t = flat[start : start + step] - self.origins.astype(kind)
            out[start : start + step] = rows(t) + self.bias.astype(kind)
        return out.reshape(*x.shape[:-1], self.outputs)


def contract(values: np.ndarray, matrices: Sequence[np.ndarray]) -> np.ndarray:
    """sum_k values_{k_1 … k_d …} prod_j matrices^j_{i_j k_j}: one matrix (n_j, p_j) for each of the first axes."""
    for j, matrix in enumerate(matrices):
        values = np.moveaxis(np.tensordot(matrix, values, axes=(1, j)), 0, j)
    return values


def _stored(array: Any, dtype: Dtype) -> np.ndarray:
    return read_only(stored(np.asarray(array, dtype=np.float64), dtype))
