"""Networks that are fitted: what their inner weights do, and how the best inner weights are approached.

    one hidden layer   y(x) = sum_r c_r phi(w_r . x + t_r) + L x + b
    two of relu        y(x) = sum_s c_s relu(v_s . u + q_s) + L u + b,      u = (relu(w_r . x + t_r), x)

Given the inner weights, the others solve a linear problem. So they are no unknowns: steps move the inner weights alone,
with the outer ones always at their best (variable projection, Kaufman's variant). With F the features that the outer
weights C read, D_o the derivatives of output o in the inner weights, and P the projection off F, the Jacobian is P D_o:

    J'J = sum_o D_o'D_o - D_o'F (F'F)^-1 F'D_o,      J'R = sum_o D_o'(y_o - F c_o)

For one hidden layer D_o = D diag(c_o), D the derivatives of phi alone: then J'J is (D'D - D'F (F'F)^-1 F'D) times
(C C'), neuron by neuron, and costs the same for any number of outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Int

REACH = 80.0
"""The largest |w|_1 + |t|: heads for tanh and silu are at hand up to 100."""
MAX_UNKNOWNS = 1600
"""Inner weights that one step moves; of larger networks a part of the neurons, by turns."""

Solve = Callable[[np.ndarray], np.ndarray]
SolverOf = Callable[[np.ndarray], Solve]
"""From a Gram matrix to the solution of systems with it."""


def _tanh(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a = np.tanh(z)
    return a, 1 - a * a


def _silu(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s = 0.5 + 0.5 * np.tanh(0.5 * z)
    return z * s, s * (1 + z * (1 - s))


def _relu(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.maximum(z, 0), (z > 0).astype(z.dtype)


ACTIVATIONS: dict[str, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "tanh": _tanh,
    "silu": _silu,
    "relu": _relu,
}
"""phi and its derivative."""


def with_one(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d+1"]:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def chunks(count: int, columns: int) -> list[slice]:
    """Rows by turns, so that a matrix of them stays small."""
    size = max(256, 6_000_000 // max(columns, 1))
    return [slice(start, start + size) for start in range(0, count, size)]


def work_of(rows: int, columns: int) -> float:
    """The multiplications that a Gram matrix of so many columns takes, and the solution of a system with it."""
    return float(rows) * columns**2 + columns**3 / 3


@dataclass(frozen=True, eq=False)
class Ridges:
    """One hidden layer on [-1, 1]^d; `outer` holds c, L and b, one below the other."""

    activation: str
    weight: Float[np.ndarray, "neurons d"]
    bias: Float[np.ndarray, " neurons"]
    outer: Float[np.ndarray, "features m"]

    @property
    def neurons(self) -> int:
        return len(self.bias)

    def features(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n features"]:
        return np.concatenate([ACTIVATIONS[self.activation](x @ self.weight.T + self.bias)[0], with_one(x)], axis=1)

    def with_neurons(self, weight: np.ndarray, bias: np.ndarray) -> Ridges:
        """More neurons, which nothing reads yet."""
        c, rest = self.outer[: self.neurons], self.outer[self.neurons :]
        outer = np.concatenate([c, np.zeros((len(bias), c.shape[1])), rest])
        return Ridges(self.activation, np.vstack([self.weight, weight]), np.append(self.bias, bias), outer).bounded()

    def without(self, neurons: Int[np.ndarray, " k"]) -> Ridges:
        weight, bias = np.delete(self.weight, neurons, axis=0), np.delete(self.bias, neurons)
        return Ridges(self.activation, weight, bias, np.delete(self.outer, neurons, axis=0))

    def chosen(self, rng: np.random.Generator) -> Int[np.ndarray, " k"]:
        """The neurons that the next step moves."""
        count = max(1, MAX_UNKNOWNS // (self.weight.shape[1] + 1))
        return np.sort(rng.permutation(self.neurons)[:count])

    def moved(self, chosen: np.ndarray, step: Float[np.ndarray, " unknowns"]) -> Ridges:
        weight, bias, step = self.weight.copy(), self.bias.copy(), step.reshape(len(chosen), -1)
        weight[chosen] += step[:, :-1]
        bias[chosen] += step[:, -1]
        return replace(self, weight=weight, bias=bias).bounded()

    def bounded(self) -> Ridges:
        """Pre-activations within REACH; relu's at 1, for only the direction of its weights matters."""
        size = np.abs(self.weight).sum(axis=1) + np.abs(self.bias)
        relu = self.activation == "relu"
        scale = np.where((size > REACH) | (relu & (size > 0)), (1 if relu else REACH) / np.maximum(size, 1e-300), 1)
        return replace(self, weight=self.weight * scale[:, None], bias=self.bias * scale)

    def work(self, samples: int, chosen: int) -> float:
        """How many multiplications `normal` takes."""
        return work_of(samples, chosen * (self.weight.shape[1] + 1) + sum(self.outer.shape))

    def normal(
        self, chosen: np.ndarray, x: np.ndarray, y: np.ndarray, root: np.ndarray, solver: SolverOf
    ) -> tuple[np.ndarray, np.ndarray]:
        """J'J and J'R for the inner weights of the chosen neurons, rows times root."""
        d, m = x.shape[1], y.shape[1]
        inner, features = len(chosen) * (d + 1), len(self.outer)
        total = np.zeros((inner + features + m,) * 2)
        for rows in chunks(len(x), len(total)):
            one, r = with_one(x[rows]), root[rows]
            a, slope = ACTIVATIONS[self.activation](x[rows] @ self.weight.T + self.bias)
            derivatives = ((slope[:, chosen] * r)[:, :, None] * one[:, None, :]).reshape(len(r), inner)
            columns = np.concatenate([derivatives, a * r, one * r, y[rows] * r], axis=1)
            total += columns.T @ columns
        of_inner, of_features = slice(0, inner), slice(inner, inner + features)
        both = total[of_features, of_inner]
        projected = total[of_inner, of_inner] - both.T @ solver(total[of_features, of_features])(both)
        residual = total[of_inner, inner + features :] - both.T @ self.outer
        c = self.outer[chosen]
        shape = (len(chosen), d + 1, len(chosen), d + 1)
        curvature = (projected.reshape(shape) * (c @ c.T)[:, None, :, None]).reshape(inner, inner)
        gradient = (residual.reshape(len(chosen), d + 1, m) * c[:, None, :]).sum(axis=2)
        return curvature, gradient.reshape(inner)


@dataclass(frozen=True, eq=False)
class TwoLayers:
    """Two hidden layers of relu; the second, and the outer weights, read u = (first layer, x)."""

    weight: Float[np.ndarray, "first d"]
    bias: Float[np.ndarray, " first"]
    second: Float[np.ndarray, "second first+d"]
    shift: Float[np.ndarray, " second"]
    outer: Float[np.ndarray, "features m"]

    @property
    def neurons(self) -> int:
        return len(self.bias) + len(self.shift)

    def _inner(self, x: Float[np.ndarray, "n d"]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The first layer's derivatives, u, the second layer and its derivatives."""
        a, slope = _relu(x @ self.weight.T + self.bias)
        u = np.concatenate([a, x], axis=1)
        return slope, u, *_relu(u @ self.second.T + self.shift)

    def features(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n features"]:
        _, u, a, _ = self._inner(x)
        return np.concatenate([a, with_one(u)], axis=1)

    def chosen(self, rng: np.random.Generator) -> Int[np.ndarray, " k"]:
        """All neurons of the first layer, with as many of the second as one step may move."""
        count = max(1, (MAX_UNKNOWNS - self.weight.size) // (self.second.shape[1] + 1))
        return np.sort(rng.permutation(len(self.shift))[:count])

    def moved(self, chosen: np.ndarray, step: Float[np.ndarray, " unknowns"]) -> TwoLayers:
        second, shift = self.second.copy(), self.shift.copy()
        first = len(self.bias) * (self.weight.shape[1] + 1)
        one, two = step[:first].reshape(len(self.bias), -1), step[first:].reshape(len(chosen), -1)
        second[chosen] += two[:, :-1]
        shift[chosen] += two[:, -1]
        return replace(
            self, weight=self.weight + one[:, :-1], bias=self.bias + one[:, -1], second=second, shift=shift
        ).bounded()

    def bounded(self) -> TwoLayers:
        """The same first layer and directions of the second, all of size 1."""
        size = np.abs(self.weight).sum(axis=1) + np.abs(self.bias)
        size = np.where(size > 0, size, 1.0)
        second = self.second.copy()
        second[:, : len(size)] *= size
        sizes = np.abs(second).sum(axis=1) + np.abs(self.shift)
        sizes = np.where(sizes > 0, sizes, 1.0)
        return replace(
            self,
            weight=self.weight / size[:, None],
            bias=self.bias / size,
            second=second / sizes[:, None],
            shift=self.shift / sizes,
        )

    def work(self, samples: int, chosen: int) -> float:
        columns = self.weight.size + len(self.bias) + chosen * (self.second.shape[1] + 1)
        features, m = self.outer.shape
        return float(samples) * m * (columns + features) ** 2 + columns**3 / 3

    def normal(
        self, chosen: np.ndarray, x: np.ndarray, y: np.ndarray, root: np.ndarray, solver: SolverOf
    ) -> tuple[np.ndarray, np.ndarray]:
        first, m, features = len(self.bias), y.shape[1], len(self.outer)
        inner = self.weight.size + first + len(chosen) * (self.second.shape[1] + 1)
        gram = np.zeros((features, features))
        curvature, both = np.zeros((inner, inner)), np.zeros((m, features, inner))
        gradient = np.zeros(inner)
        for rows in chunks(len(x), inner):
            slope, u, a, slopes = self._inner(x[rows])
            read = np.concatenate([a, with_one(u)], axis=1)
            left, r = (y[rows] - read @ self.outer) * root[rows], root[rows]
            read = read * r
            gram += read.T @ read
            for o in range(m):
                back = slopes * self.outer[: len(self.shift), o] * r
                under = (back @ self.second[:, :first] + self.outer[len(self.shift) : -1, o][:first] * r) * slope
                parts = [
                    under[:, :, None] * with_one(x[rows])[:, None, :],
                    back[:, chosen, None] * with_one(u)[:, None, :],
                ]
                derivatives = np.concatenate([part.reshape(len(u), -1) for part in parts], axis=1)
                curvature += derivatives.T @ derivatives
                both[o] += read.T @ derivatives
                gradient += derivatives.T @ left[:, o]
        solve = solver(gram)
        for one in both:
            curvature -= one.T @ solve(one)
        return curvature, gradient


Model = Ridges | TwoLayers
"""A network with inner weights that steps move, and outer ones that are solved for."""
M = TypeVar("M", Ridges, TwoLayers)
