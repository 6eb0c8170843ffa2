"""A function of several variables, sampled: at tensor Chebyshev nodes to solve with, elsewhere to measure with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.arithmetic import arithmetic_of
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES, GridAtom, contract
from anchorhead.heads.grids.grid_rounding import asked_error, axis_log_errors, grid_read_error

SeveralFunction = Callable[[np.ndarray], np.ndarray]
_NODES = (12, 18, 27, 40, 60, 90, 135, 200, 300)
_MAX_SAMPLES = 1_000_000
_FINE_SAMPLES = 300_000
_MAX_COLUMNS = 300


@dataclass(frozen=True, eq=False)
class BoxedFunction:
    """A vectorised function f: (n, d) -> (n, m) on the box from low (d,) to high (d,)."""

    f: SeveralFunction
    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]

    @classmethod
    def of(cls, f: SeveralFunction, low: object, high: object) -> BoxedFunction:
        ends = [np.atleast_1d(np.asarray(end, np.float64)) for end in (low, high)]
        fits = all(end.ndim == 1 and np.isfinite(end).all() for end in ends) and ends[0].shape == ends[1].shape
        if not fits or not (ends[0] < ends[1]).all() or not 1 <= len(ends[0]) <= MAX_VARIABLES:
            raise AnchorheadError(
                f"a box from {low!r} to {high!r}: give the two ends of each of 1 to {MAX_VARIABLES} variables, "
                "finite, the lower one first"
            )
        return cls(f, *ends)

    @property
    def variables(self) -> int:
        return len(self.low)

    @property
    def mid(self) -> Float[np.ndarray, " d"]:
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> Float[np.ndarray, " d"]:
        return self.high / 2 - self.low / 2

    def at(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n m"]:
        """f(x); a value that is not finite is refused with its place."""
        y = np.asarray(self.f(x), np.float64)
        y = y[:, None] if y.ndim == 1 else y
        if not np.isfinite(y).all():
            place = x[np.flatnonzero(~np.isfinite(y).all(axis=1))[0]]
            raise AnchorheadError(f"the function is not finite at {place.tolist()}: choose a box on which it is")
        return y

    def on_grid(self, points: list[np.ndarray]) -> Float[np.ndarray, "..."]:
        """f at all points of a tensor grid, given along each axis in [-1, 1]: (n_1, …, n_d, m)."""
        scaled = [m + h * x for m, h, x in zip(self.mid, self.half, points, strict=True)]
        scaled = [np.clip(x, lo, hi) for x, lo, hi in zip(scaled, self.low, self.high, strict=True)]
        x = np.stack(np.meshgrid(*scaled, indexing="ij"), axis=-1)
        return self.at(x.reshape(-1, self.variables)).reshape(*x.shape[:-1], -1)


def chebyshev(n: int) -> Float[np.ndarray, " n"]:
    """The zeros of T_n."""
    return -np.cos(np.pi * (np.arange(n) + 0.5) / n)


@dataclass(frozen=True, eq=False)
class Samples:
    """f at tensor Chebyshev nodes, centred: values (n_1, …, n_d, m) are those of f less `centre` (m,)."""

    box: BoxedFunction
    nodes: tuple[np.ndarray, ...]
    values: Float[np.ndarray, "..."]
    centre: Float[np.ndarray, " m"]
    resolved: bool

    @classmethod
    def of(cls, box: BoxedFunction, accuracy: float) -> Samples:
        """As many nodes along each axis as it takes until the Chebyshev coefficients fall below the accuracy, and half
        as many more, so that no choice of values can be right at the nodes alone."""
        level = [0] * box.variables
        while True:
            nodes = [chebyshev(_NODES[i]) for i in level]
            values = box.on_grid(nodes)
            rough = [j for j in range(box.variables) if _tail(values, j) > accuracy]
            more = [i + (j in rough) for j, i in enumerate(level)]
            if not rough or not _affordable(more):
                break
            level = more
        more = [i + 1 for i in level]
        if _affordable(more):
            nodes = [chebyshev(_NODES[i]) for i in more]
            values = box.on_grid(nodes)
        flat = values.reshape(-1, values.shape[-1])
        centre = flat.max(axis=0) / 2 + flat.min(axis=0) / 2
        return cls(box, tuple(nodes), values - centre, centre, not rough)

    @property
    def scale(self) -> float:
        return float(np.abs(self.values).max())

    @property
    def looked_at(self) -> int:
        """How many values a grid is fitted to and held against."""
        return self.values.size + self._fine[1].size

    def columns(self, axis: int) -> Float[np.ndarray, "n columns"]:
        """Samples along one axis, at some places of the others, spread out."""
        outputs = self.values.shape[-1]
        table = np.moveaxis(self.values, axis, 0).reshape(self.values.shape[axis], -1, outputs)
        # at random: even steps may meet the same index of an axis always; every output at each place
        places = np.random.default_rng(0).permutation(table.shape[1])[: max(20, _MAX_COLUMNS // outputs)]
        return table[:, places].reshape(len(table), -1)

    @cached_property
    def _fine(self) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
        few = int(_FINE_SAMPLES ** (1 / self.box.variables))
        points = [np.cos(np.linspace(0, np.pi, min(3 * len(x) + 2, few))) for x in self.nodes]
        x = np.random.default_rng(0).uniform(self.box.low, self.box.high, (500, self.box.variables))
        return points, self.box.on_grid(points), x, self.box.at(x)

    def error(self, atom: GridAtom) -> tuple[float, float]:
        """The largest error found in exact arithmetic, and the largest rounding bound at a few points."""
        points, truth, x, at = self._fine
        box, model = self.box, arithmetic_of(atom.dtype)
        weights = [atom.weights(j, along) for j, along in enumerate(self._scaled(points))]
        worst = np.abs(contract(atom.values.astype(np.float64), weights) + atom.bias - truth).max()
        worst = max(float(worst), float(np.abs(atom.exact(x) - at).max()))
        few = self._scaled([np.linspace(-1, 1, 9 if box.variables < 4 else 5)] * box.variables)
        logs = [
            axis_log_errors(*axis, origin, s, s, asked_error(s, s, origin, model), box.variables, model)
            for axis, origin, s in zip(atom.axes, atom.origins.astype(np.float64).tolist(), few, strict=True)
        ]
        added = model.unit * float(np.abs(truth).max()) if atom.bias.any() else 0.0
        read = grid_read_error(atom, [atom.weights(j, s) for j, s in enumerate(few)], logs, model)
        return worst, float(read.max()) + added

    def _scaled(self, points: list[np.ndarray]) -> list[np.ndarray]:
        """The points of the box that are given along each axis in [-1, 1]."""
        return [mid + half * x for mid, half, x in zip(self.box.mid, self.box.half, points, strict=True)]


def _affordable(level: list[int]) -> bool:
    return max(level) < len(_NODES) and prod(_NODES[i] for i in level) <= _MAX_SAMPLES


def _tail(values: np.ndarray, axis: int) -> float:
    """The largest of the last Chebyshev coefficients along an axis, anywhere on the others."""
    n = values.shape[axis]
    k = np.arange(max(n - 3, 1), n)
    cosines = np.cos(np.pi * k[:, None] * (np.arange(n) + 0.5) / n) * 2 / n
    return float(np.abs(np.tensordot(cosines, values, axes=(1, axis))).max())
