"""Variable projection: Gauss-Newton on the keys, with the values eliminated (Kaufman's variant).

For weights q_i >= 0 with sum 1 and a ridge mu that stands for round-off,

    min over theta, v of   sum_i q_i |f(x_i) - W(theta)_i v|^2 + mu^2 |v|^2.

Given theta, v solves a linear least-squares problem; its residual moves, to first order, by the part of
(dW/dtheta) v that is orthogonal to the columns of W. The valleys of this loss are long and curved: every
Levenberg-Marquardt step is bent by half its geodesic acceleration (Transtrum and Sethna), a second
derivative along the step, which takes ten times fewer steps. Lawson's iteration multiplies q_i by |error_i|
and drives the fit towards the sup norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg.lapack import get_lapack_funcs

from anchorhead.heads.keys import Keys

FLATTEST, STEEPEST = -18.0, 32.0  # log steps stay within these
_FARTHEST = 40.0  # crossings stay within this
_DAMPING = 1e-3  # of the first step, in units of the largest column of J, squared
_PATIENCE = 12  # steps that gain less than a thousandth before the search gives up
_WORKSPACE = 4096  # numbers that LAPACK may use
_PROBE = 0.1  # the part of a step at which its curvature is measured

# numpy's wrappers take longer than the work on matrices of this size
_geqrf, _orgqr, _ormqr, _trtrs = get_lapack_funcs(("geqrf", "orgqr", "ormqr", "trtrs"), dtype=np.float64)


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
    damping: float = _DAMPING

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

    def matrix(self, w: Float[np.ndarray, "n p"]) -> Float[np.ndarray, "rows p"]:
        rows = self.weighted(w)
        np.fill_diagonal(rows[len(w) :], self.ridge)
        return rows

    def weighted(self, columns: Float[np.ndarray, "n columns"]) -> Float[np.ndarray, "rows columns"]:
        """The rows of the samples weighted, those of the ridge 0, in the order that LAPACK takes."""
        n, count = columns.shape
        rows = np.empty((n + self.anchors, count), order="F")
        np.multiply(columns, self._root, out=rows[:n])
        rows[n:] = 0.0
        return rows

    @cached_property
    def _root(self) -> Float[np.ndarray, "n 1"]:
        return np.sqrt(self.q)[:, None]


@dataclass(frozen=True, eq=False)
class _Projected:
    """The linear problem solved at one theta."""

    keys: Keys
    w: Float[np.ndarray, "n p"]
    factored: _QR  # of the matrix
    values: Float[np.ndarray, "p m"]
    goal: Float[np.ndarray, " goals"]  # target - matrix v, output after output
    loss: float


def project(keys: Keys, loss: Loss) -> _Projected:
    """The best values for these keys."""
    w = keys.softmax(loss.samples.x)
    matrix = loss.matrix(w)
    factored = _QR(matrix)
    values = factored.solve(loss.target)
    goal = (loss.target - matrix @ values).T.reshape(-1)
    return _Projected(keys, w, factored, values + loss.centre, goal, float(goal @ goal))


def fitted(keys: Keys, loss: Loss) -> Fit:
    """These keys with their best values."""
    return _fit(project(keys, loss), loss)


def _fit(found: _Projected, loss: Loss, damping: float = _DAMPING) -> Fit:
    return Fit(found.keys, found.values, loss.samples.f - found.w @ found.values, damping)


def gauss_newton(start: Keys | Fit, loss: Loss, steps: int, steepest: float = STEEPEST) -> Fit:
    """Levenberg-Marquardt with geodesic acceleration, until it stalls."""
    keys, damping = (start.keys, start.damping) if isinstance(start, Fit) else (start, _DAMPING)
    now, stalled = project(keys, loss), 0
    for step in range(steps):
        found, damping = _accepted(now, loss, damping, steepest)
        if found is None and step == 0 and damping < _DAMPING:  # it was right for another loss
            found, damping = _accepted(now, loss, _DAMPING, steepest)
        if found is None:
            damping = _DAMPING
            break
        stalled = stalled + 1 if found.loss > now.loss * (1 - 1e-3) else 0
        now = found
        if stalled >= _PATIENCE:
            break
    return _fit(now, loss, damping)


def _accepted(now: _Projected, loss: Loss, damping: float, steepest: float) -> tuple[_Projected | None, float]:
    """The first step that lowers the loss, damped more and more, and the damping for the next one."""

    def at(move: np.ndarray) -> _Projected:
        return project(Keys.of_vector(_kept(now.keys.vector + move, steepest)), loss)

    model = _Model(_projected_jacobian(now, loss))
    for attempt in range(12):
        damped = model.damped(damping)
        move = model.solve(damped, now.goal)
        size = np.abs(move).max()
        if not 0 < size < np.inf:
            return None, damping
        curvature = 2 / _PROBE * ((at(_PROBE * move).goal - now.goal) / _PROBE + model.jac @ move)
        bend = model.solve(damped, curvature)
        if 2 * _length(bend / size) < 0.75 * _length(move / size):
            move = move + bend / 2
        move = move / max(1.0, np.abs(move).max())
        found = at(move)
        if found.loss < now.loss:
            return found, max(damping / (5 if attempt == 0 else 1.5), 1e-18)
        damping *= 3
    return None, damping


class _QR:
    """Least squares with one matrix: the x with the smallest |matrix x - goal|."""

    def __init__(self, matrix: Float[np.ndarray, "rows p"]) -> None:
        self._factors, self._tau, _, _ = _geqrf(matrix)
        self.triangle = self._factors[: matrix.shape[1]]  # what is below its diagonal does not count

    def rotated(self, goal: Float[np.ndarray, "rows m"]) -> Float[np.ndarray, "p m"]:
        """Q^T goal"""
        turned, _, _ = _ormqr("L", "T", self._factors, self._tau, goal, _WORKSPACE)
        return turned[: len(self.triangle)]

    def solve(self, goal: Float[np.ndarray, "rows m"]) -> Float[np.ndarray, "p m"]:
        """0 if the matrix is singular to the last bit."""
        x, info = _trtrs(self.triangle, self.rotated(goal))
        return x if info == 0 else np.zeros_like(x)

    @property
    def basis(self) -> Float[np.ndarray, "rows p"]:
        return _orgqr(self._factors, self._tau)[0]


class _Model:
    """Steps in a linear model, min |goal - J move|^2 + damping scale^2 |move|^2, for one J and many dampings."""

    def __init__(self, jac: Float[np.ndarray, "goals keys"]) -> None:
        self.jac = jac
        self.scale = float(np.sqrt((jac * jac).sum(axis=0).max())) + 1e-300
        self.factored = _QR(jac / self.scale)

    def damped(self, damping: float) -> _QR:
        """J over the damping, with J = Q R made short: R."""
        count = self.jac.shape[1]
        rows = np.zeros((2 * count, count), order="F")
        np.multiply(self.factored.triangle, _upper(count), out=rows[:count])
        np.fill_diagonal(rows[count:], np.sqrt(damping))
        return _QR(rows)

    def solve(self, damped: _QR, goal: Float[np.ndarray, " goals"]) -> Float[np.ndarray, " keys"]:
        count = self.jac.shape[1]
        short = np.zeros((2 * count, 1), order="F")
        short[:count] = self.factored.rotated(goal[:, None])
        return damped.solve(short)[:, 0] / self.scale


@cache
def _upper(count: int) -> Float[np.ndarray, "count count"]:
    """1 on the diagonal and above, 0 below."""
    return np.triu(np.ones((count, count)))


def _length(vector: Float[np.ndarray, " n"]) -> float:
    return float(np.sqrt(vector @ vector))


def lawson(fit: Fit, samples: Samples, ridge: float, rounds: int, steps: int, steepest: float = STEEPEST) -> Fit:
    """The best fit in the sup norm seen while reweighting, with `steps` Gauss-Newton steps a round."""
    q, best = even(samples), fit
    for _ in range(rounds):
        size = np.abs(fit.residual).max(axis=1)
        q = q * (size / max(size.max(), 1e-300) + 1e-3)
        q /= q.sum()
        fit = gauss_newton(fit, Loss(samples, q, ridge, fit.keys.anchors), steps, steepest)
        best = fit if fit.error < best.error else best
    return best


def even(samples: Samples) -> Float[np.ndarray, " n"]:
    """The same weight for every sample."""
    return np.full(len(samples), 1 / len(samples))


def peaks(size: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Where the size is no less than on either side."""
    padded = np.concatenate([[-1.0], size, [-1.0]])
    return (size >= padded[:-2]) & (size >= padded[2:])


def _projected_jacobian(now: _Projected, loss: Loss) -> Float[np.ndarray, "goals keys"]:
    """-d goal / d theta to first order: the weighted (dW/dtheta) v less what the columns of W can make up for."""
    jac = now.keys.jacobian(loss.samples.x, now.w, now.values)
    basis = now.factored.basis
    rows, (_, outputs, count) = len(basis), jac.shape
    projected = np.empty((outputs * rows, count), order="F")
    for output in range(outputs):
        own = loss.weighted(jac[:, output])
        np.subtract(own, basis @ (basis.T @ own), out=projected[output * rows : (output + 1) * rows])
    return projected


def _kept(theta: Float[np.ndarray, " keys"], steepest: float) -> Float[np.ndarray, " keys"]:
    """Keys within the limits; slopes that are too steep in all are made gentler together."""
    half = len(theta) // 2
    logs = np.minimum(np.maximum(theta[:half], FLATTEST), STEEPEST)
    excess = np.log(np.exp(logs).sum()) - steepest
    crossings = np.minimum(np.maximum(theta[half:], -_FARTHEST), _FARTHEST)
    return np.concatenate([logs - max(excess, 0.0), crossings])
