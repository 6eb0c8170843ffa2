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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.heads.keys import Keys

FLATTEST, STEEPEST = -18.0, 32.0  # log steps stay within these
_PATIENCE = 12  # steps that gain less than a thousandth before the search gives up
_PROBE = 0.1  # the part of a step at which its curvature is measured


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
    damping: float = 1e-3

    @property
    def error(self) -> float:
        return float(np.abs(self.residual).max())


@dataclass(frozen=True, eq=False)
class _Projected:
    """The linear problem solved at one theta."""

    keys: Keys
    w: Float[np.ndarray, "n p"]
    values: Float[np.ndarray, "p m"]
    residual: Float[np.ndarray, "n m"]
    basis: Float[np.ndarray, "rows p"]
    goal: Float[np.ndarray, " goals"]  # the weighted residual with the ridge rows, output after output
    loss: float


def project(keys: Keys, samples: Samples, q: Float[np.ndarray, " n"], ridge: float) -> _Projected:
    """The best values for these keys; the ridge pulls them to the mean of the target."""
    w = keys.softmax(samples.x)
    root, eye = np.sqrt(q)[:, None], np.eye(keys.anchors)
    basis, triangle = np.linalg.qr(np.concatenate([root * w, ridge * eye]))
    centre = q @ samples.f
    centred = np.concatenate([root * (samples.f - centre), np.zeros((keys.anchors, samples.f.shape[1]))])
    values = np.linalg.solve(triangle, basis.T @ centred)
    residual = samples.f - centre - w @ values
    goal = np.concatenate([root * residual, -ridge * values]).T.reshape(-1)
    return _Projected(keys, w, values + centre, residual, basis, goal, float(goal @ goal))


def gauss_newton(
    start: Keys | Fit,
    samples: Samples,
    q: Float[np.ndarray, " n"],
    ridge: float,
    steps: int,
    steepest: float = STEEPEST,
) -> Fit:
    """Levenberg-Marquardt with geodesic acceleration, until it stalls."""
    keys, damping = (start.keys, start.damping) if isinstance(start, Fit) else (start, 1e-3)
    now, stalled = project(keys, samples, q, ridge), 0
    for _ in range(steps):
        jac = _projected_jacobian(now, samples, q)
        scale = np.sqrt((jac**2).sum(axis=0)).max() + 1e-300
        rotation, triangle = np.linalg.qr(jac / scale)
        left, sizes, right = np.linalg.svd(triangle)
        turn = rotation @ left

        def solve(goal: np.ndarray, damping: float) -> np.ndarray:
            return right.T @ (sizes / (sizes**2 + damping) * (turn.T @ goal)) / scale  # noqa: B023

        def at(move: np.ndarray) -> _Projected:
            return project(Keys.of_vector(_kept(now.keys.vector + move, steepest)), samples, q, ridge)  # noqa: B023

        found, damping = _accepted(now, jac, solve, at, damping)
        if found is None:
            damping = 1e-3
            break
        stalled = stalled + 1 if found.loss > now.loss * (1 - 1e-3) else 0
        now = found
        if stalled >= _PATIENCE:
            break
    return Fit(now.keys, now.values, now.residual, damping)


def _accepted(
    now: _Projected,
    jac: np.ndarray,
    solve: Callable[[np.ndarray, float], np.ndarray],
    at: Callable[[np.ndarray], _Projected],
    damping: float,
) -> tuple[_Projected | None, float]:
    """The first step that lowers the loss, damped more and more, and the damping for the next one."""
    for attempt in range(12):
        move = solve(now.goal, damping)
        curvature = 2 / _PROBE * ((at(_PROBE * move).goal - now.goal) / _PROBE + jac @ move)
        bend = solve(curvature, damping)
        size = np.abs(move).max()
        if not 0 < size < np.inf:
            return None, damping
        if 2 * np.linalg.norm(bend / size) < 0.75 * np.linalg.norm(move / size):
            move = move + bend / 2
        move = move / max(1.0, np.abs(move).max())
        found = at(move)
        if found.loss < now.loss:
            return found, max(damping / (5 if attempt == 0 else 1.5), 1e-18)
        damping *= 3
    return None, damping


def lawson(fit: Fit, samples: Samples, ridge: float, rounds: int, steps: int, steepest: float = STEEPEST) -> Fit:
    """The best fit in the sup norm seen while reweighting, with `steps` Gauss-Newton steps a round."""
    q, best = np.full(len(samples), 1 / len(samples)), fit
    for _ in range(rounds):
        size = np.abs(fit.residual).max(axis=1)
        q = q * (size / max(size.max(), 1e-300) + 1e-3)
        q /= q.sum()
        fit = gauss_newton(fit, samples, q, ridge, steps, steepest)
        best = fit if fit.error < best.error else best
    return best


def _projected_jacobian(now: _Projected, samples: Samples, q: np.ndarray) -> np.ndarray:
    jac = now.keys.jacobian(samples.x, now.w, now.values) * np.sqrt(q)[:, None, None]
    n, m, count = jac.shape
    columns = np.zeros((m, len(now.basis), count))
    columns[:, :n] = jac.transpose(1, 0, 2)
    return (columns - now.basis @ (now.basis.T @ columns)).reshape(-1, count)


def _kept(theta: np.ndarray, steepest: float) -> np.ndarray:
    half = len(theta) // 2
    logs = np.clip(theta[:half], FLATTEST, STEEPEST)
    excess = np.log(np.exp(logs).sum()) - steepest
    return np.concatenate([logs - max(excess, 0.0), np.clip(theta[half:], -40, 40)])
