"""Variable projection: a least-squares problem in keys and values, with the values eliminated.

For weights q_i >= 0 with sum 1 and a ridge mu that stands for round-off,

    min over theta, v of   sum_i q_i |f(x_i) - W(theta)_i v|^2 + mu^2 |v|^2.

Given theta, v solves a linear least-squares problem. `descent` looks for theta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg.lapack import get_lapack_funcs

from anchorhead.heads.solver.keys import Keys

DAMPING = 1e-3  # of the first step, in units of the largest column of J, squared

# on matrices of this size numpy's wrappers take longer than the work
_geqrf, _orgqr, _trtrs = get_lapack_funcs(("geqrf", "orgqr", "trtrs"), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Samples:
    """The normalised target at points of [-1, 1]."""

    x: Float[np.ndarray, " n"]
    f: Float[np.ndarray, "n m"]

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Fit:
    """Keys with their values, the residual f - W v at the samples, and the damping that the search had come
    to.
    """

    keys: Keys
    values: Float[np.ndarray, "p m"]
    residual: Float[np.ndarray, "n m"]
    damping: float = DAMPING

    @property
    def error(self) -> float:
        return float(np.abs(self.residual).max())


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss above at these samples; the ridge pulls the values to the mean of the target.

    As one least-squares problem, min |target - matrix v|: a row for every sample, then one for every anchor.
    """

    samples: Samples
    q: Float[np.ndarray, " n"]
    ridge: float
    anchors: int

    @cached_property
    def centre(self) -> Float[np.ndarray, " m"]:
        return self.q @ self.samples.f

    @cached_property
    def target(self) -> Float[np.ndarray, "rows m"]:
        return self.weighted(self.samples.f - self.centre)

    def matrix(self, w: Float[np.ndarray, "starts n p"]) -> Float[np.ndarray, "starts rows p"]:
        return self.weighted(w, self._ridge)

    def weighted(
        self, columns: Float[np.ndarray, "*starts n columns"], below: float | np.ndarray = 0.0
    ) -> Float[np.ndarray, "*starts rows columns"]:
        """The rows of the samples weighted, over those of the ridge; a column's rows next to each other in memory."""
        *starts, n, count = columns.shape
        rows = np.empty((*starts, count, n + self.anchors))
        np.multiply(columns.swapaxes(-1, -2), self._root, out=rows[..., :n])
        rows[..., n:] = below
        return rows.swapaxes(-1, -2)

    @cached_property
    def _ridge(self) -> Float[np.ndarray, "p p"]:
        return self.ridge * np.eye(self.anchors)

    @cached_property
    def _root(self) -> Float[np.ndarray, " n"]:
        return np.sqrt(self.q)


@dataclass(frozen=True, eq=False)
class Projected:
    """The linear problem, matrix = basis triangle, solved at every theta."""

    theta: Float[np.ndarray, "starts keys"]
    w: Float[np.ndarray, "starts n p"]
    basis: Float[np.ndarray, "starts rows p"]
    triangle: Float[np.ndarray, "starts p p"]
    goal: Float[np.ndarray, "starts goals"]  # target - matrix v, output after output
    loss: Float[np.ndarray, " starts"]

    def values(self, loss: Loss) -> Float[np.ndarray, "starts p m"]:
        """v; the ridge keeps the triangle regular."""
        return solved(self.triangle, self.basis.swapaxes(-1, -2) @ loss.target) + loss.centre


def project(theta: Float[np.ndarray, "starts keys"], loss: Loss) -> Projected:
    """The best values for these keys."""
    w = Keys.of_vector(theta).softmax(loss.samples.x)
    basis, triangle = qr(loss.matrix(w))
    left = loss.target - basis @ (basis.swapaxes(-1, -2) @ loss.target)
    goal = left.swapaxes(-1, -2).reshape(*theta.shape[:-1], -1)
    return Projected(theta, w, basis, triangle, goal, np.einsum("sg,sg->s", goal, goal))


def fitted(keys: Sequence[Keys], loss: Loss) -> list[Fit]:
    """These keys with their best values."""
    return fits_of(project(np.stack([one.vector for one in keys]), loss), loss, np.full(len(keys), DAMPING))


def fits_of(found: Projected, loss: Loss, dampings: Float[np.ndarray, " starts"]) -> list[Fit]:
    values = found.values(loss)
    residuals = loss.samples.f - found.w @ values
    rows = zip(found.theta, values, residuals, dampings.tolist(), strict=True)
    return [Fit(Keys.of_vector(theta), *rest) for theta, *rest in rows]


def qr(
    matrices: Float[np.ndarray, "starts rows p"],
) -> tuple[Float[np.ndarray, "starts rows p"], Float[np.ndarray, "starts p p"]]:
    """Q and R of each matrix; what is below the diagonal of R does not count."""
    starts, rows, p = matrices.shape
    basis, triangle = np.empty((starts, p, rows)).swapaxes(1, 2), np.empty((starts, p, p)).swapaxes(1, 2)
    for row in range(starts):
        factors, tau, _, _ = _geqrf(matrices[row])
        triangle[row] = factors[:p]
        basis[row] = _orgqr(factors, tau, overwrite_a=True)[0]
    return basis, triangle


def solved(
    triangle: Float[np.ndarray, "starts p p"], goal: Float[np.ndarray, "starts p m"]
) -> Float[np.ndarray, "starts p m"]:
    """The x with R x = goal."""
    return np.stack([_trtrs(one, wanted)[0] for one, wanted in zip(triangle, goal, strict=True)])


def even(samples: Samples) -> Float[np.ndarray, " n"]:
    """The same weight for every sample."""
    return np.full(len(samples), 1 / len(samples))


def peaks(size: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Where the size is no less than on either side."""
    padded = np.concatenate([[-1.0], size, [-1.0]])
    return (size >= padded[:-2]) & (size >= padded[2:])
