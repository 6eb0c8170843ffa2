"""From a good fit to the sup norm: a sequence of linear programmes.

The objective is max_i |f(x_i) - r(x_i)| + rho_i, with the rounding bounds rho_i held. In the columns

    [ J - Q Q^T J | Q ],   W = Q R,   J = (dW/dtheta) v

a move of the keys is already compensated by the values, so the trust region holds the keys alone. Without
the first block, one programme gives the best values for stored keys.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog

from anchorhead.heads.solver.keys import Keys
from anchorhead.heads.solver.projection import Fit, Samples, peaks

_RADIUS = 0.01  # of the first trust region
_FAR = -0.5  # sides of the error below this, in units of the largest, are left out of a programme


def sharpen(fit: Fit, samples: Samples, rho: Float[np.ndarray, "n m"], steps: int) -> Fit:
    """Programmes until the trust region closes or the gain stalls."""
    best, stalled, radius = _size(fit, rho), 0, _RADIUS
    for _ in range(steps):
        moved = step(fit, samples, rho, radius)
        new = _size(moved, rho)
        if new < best:
            stalled = stalled + 1 if new > best * (1 - 3e-3) else 0
            radius *= 2.0 if new < best * 0.98 else 1.0
            fit, best = moved, new
        else:
            radius /= 4
        if radius < 1e-7 or stalled >= 3:
            break
    return fit


def step(fit: Fit, samples: Samples, rho: Float[np.ndarray, "n m"], radius: float) -> Fit:
    """One programme for keys and values."""
    keys = fit.keys
    w = keys.softmax(samples.x)
    jac = keys.jacobian(samples.x, w, fit.values)
    move, values = _solved(w, jac, fit.residual, fit.values, rho, radius)
    moved = Keys.of_vector(keys.vector + move)
    return Fit(moved, values, samples.f - moved.softmax(samples.x) @ values)


def best_values(
    w: Float[np.ndarray, "n p"],
    f: Float[np.ndarray, "n m"],
    values: Float[np.ndarray, "p m"],
    rho: np.ndarray,
) -> Float[np.ndarray, "p m"]:
    """The values for given softmax weights, near the given ones, with the smallest max_i |f - W v| + rho."""
    for _ in range(2):
        residual = f - w @ values
        _, found = _solved(w, np.zeros((*f.shape, 0)), residual, values, rho, 0.0)
        if (np.abs(f - w @ found) + rho).max() >= (np.abs(residual) + rho).max():
            break
        values = found
    return values


def _solved(
    w: np.ndarray, jac: np.ndarray, residual: np.ndarray, values: np.ndarray, rho: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """(move of the keys, new values) from one linear programme."""
    (n, m, count), p = jac.shape, w.shape[1]
    basis, triangle = np.linalg.qr(w)
    inverse = np.linalg.pinv(triangle, rcond=1e-15)
    along = np.einsum("np,nmk->pmk", basis, jac)
    free = jac - np.einsum("np,pmk->nmk", basis, along)
    size = (np.abs(residual) + rho).max(axis=1)
    best = max(float(size.max()), 1e-300)
    if not np.isfinite(best):  # nothing to gain where the rounding has no bound
        return np.zeros(count), values
    unit = best * np.sqrt(n)  # a coefficient of Q of this size moves the residual by about `best`

    pick = np.flatnonzero((size > 0.5 * best) | peaks(size))
    columns = np.zeros((len(pick), m, count + m * p + 1))
    columns[:, :, :count] = free[pick]
    for output in range(m):
        columns[:, output, count + output * p : count + (output + 1) * p] = basis[pick] * unit
    columns = columns.reshape(-1, count + m * p + 1) / best
    error, bound = residual[pick].reshape(-1) / best, rho[pick].reshape(-1) / best
    near = np.concatenate([error + bound, bound - error]) > _FAR  # a peak does not turn into its opposite
    matrix = np.concatenate([-columns, columns])[near]
    matrix[:, -1] = -1.0
    cost = np.zeros(matrix.shape[1])
    cost[-1] = 1.0
    box = [(-radius, radius)] * count + [(-10.0, 10.0)] * (m * p) + [(0.0, None)]
    goal = np.concatenate([-error - bound, error - bound])[near]
    if not (np.isfinite(matrix).all() and np.isfinite(goal).all()):  # where float64 ends
        return np.zeros(count), values
    found = linprog(cost, A_ub=matrix, b_ub=goal, bounds=box, method="highs-ds")
    if found.x is None:
        return np.zeros(count), values
    move, shift = found.x[:count], found.x[count:-1].reshape(m, p).T * unit
    return move, values + inverse @ (shift - along @ move)


def _size(fit: Fit, rho: np.ndarray) -> float:
    return float((np.abs(fit.residual) + rho).max())
