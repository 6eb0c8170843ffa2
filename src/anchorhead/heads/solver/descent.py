"""The search for keys: Gauss-Newton with the values eliminated (Kaufman's variant of variable projection).

The residual of a projection moves, to first order, by the part of (dW/dtheta) v that is orthogonal to the columns of W.
The valleys of this loss are long and curved: every Levenberg-Marquardt step is bent by half its geodesic acceleration
(Transtrum and Sethna), a second derivative along the step, which takes ten times fewer steps. Lawson's iteration
multiplies q_i by |error_i| and drives the fit towards the sup norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.heads.solver.keys import Keys
from anchorhead.heads.solver.projection import (
    DAMPING,
    Fit,
    Loss,
    Projected,
    Samples,
    even,
    fits_of,
    project,
    qr,
    solved,
)

FLATTEST, STEEPEST = -18.0, 32.0  # log steps stay within these
_FARTHEST = 40.0  # crossings stay within this
_PATIENCE = 12  # steps that gain less than a thousandth before the search gives up
_ATTEMPTS = 12  # at one step, each damped three times as much as the one before
_PROBE = 0.1  # the part of a step at which its curvature is measured
_TOGETHER = 1 << 15  # softmax weights of the starts that go side by side: what a core's cache holds


def gauss_newton(starts: Sequence[Keys | Fit], loss: Loss, steps: int, steepest: float = STEEPEST) -> list[Fit]:
    """Levenberg-Marquardt with geodesic acceleration, from every start until it stalls.

    Many starts go side by side: on matrices of this size, calls take longer than the work.
    """
    most = max(1, _TOGETHER // (len(loss.samples) * loss.anchors))
    return [
        fit
        for first in range(0, len(starts), most)
        for fit in _Descents(starts[first : first + most], loss, steepest).run(steps)
    ]


class _Descents:
    """A descent from every start; each has a damping of its own, and ends by itself."""

    def __init__(self, starts: Sequence[Keys | Fit], loss: Loss, steepest: float) -> None:
        keys = [start.keys if isinstance(start, Fit) else start for start in starts]
        self._loss, self._steepest = loss, steepest
        self._now = project(np.stack([one.vector for one in keys]), loss)
        self._model: _Model | None = None
        self._damping = np.array([start.damping if isinstance(start, Fit) else DAMPING for start in starts])
        self._place = np.arange(len(starts))
        self._attempt, self._taken, self._stalled = (np.zeros(len(starts), dtype=int) for _ in range(3))

    def run(self, steps: int) -> list[Fit]:
        found: dict[int, Fit] = {}
        while len(self._place):
            over = self._tried() | (self._taken >= steps) | (self._stalled >= _PATIENCE)
            if over.any():
                ended = fits_of(_those(self._now, over), self._loss, self._damping[over])
                found.update(zip(self._place[over].tolist(), ended, strict=True))
                self._keep(~over)
        return [found[place] for place in sorted(found)]

    def _tried(self) -> Bool[np.ndarray, " starts"]:
        """One attempt at a step, damped more after every failure; where no attempt is left."""
        now, found, able = self._now, *self._attempted(self._linearised())
        better = able & (found.loss < now.loss)
        little = found.loss > now.loss * (1 - 1e-3)
        self._stalled = np.where(better, (self._stalled + 1) * little, self._stalled)
        eased = np.maximum(self._damping / np.where(self._attempt == 0, 5, 1.5), 1e-18)
        self._damping = np.where(better, eased, 3 * self._damping)
        self._attempt = np.where(better, 0, self._attempt + 1)
        self._taken += better
        if better.any():
            self._now = _updated(now, better, _those(found, better))

        failed = ~better & (~able | (self._attempt >= _ATTEMPTS))
        if failed.any():
            wrong = failed & (self._taken == 0) & (self._damping < DAMPING)  # it was right for another loss
            self._damping[failed], self._attempt[wrong] = DAMPING, 0
            failed &= ~wrong
        return failed

    def _linearised(self) -> _Model:
        """The models at the present keys: new ones where a step was taken."""
        moved = self._attempt == 0
        if self._model is None:
            self._model = _Model.of(self._now, self._loss)
        elif moved.any():
            self._model = _updated(self._model, moved, _Model.of(_those(self._now, moved), self._loss))
        return self._model

    def _attempted(self, model: _Model) -> tuple[Projected, Bool[np.ndarray, " starts"]]:
        """Where steps of the present damping lead, and which of them are steps at all."""
        now, steps = self._now, model.damped(self._damping)
        move = steps.solve(now.goal)
        size = np.abs(move).max(axis=-1)
        able = (size > 0) & (size < np.inf)
        if not able.all():
            move[~able], size[~able] = 0.0, 1.0
        probed = self._at(_PROBE * move)
        bend = steps.solve(2 / _PROBE * ((probed.goal - now.goal) / _PROBE + _times(model.jac, move)))
        gentle = 2 * _length(bend / size[:, None]) < 0.75 * _length(move / size[:, None])
        move = move + gentle[:, None] * bend / 2
        return self._at(move / np.maximum(1.0, np.abs(move).max(axis=-1))[:, None]), able

    def _at(self, move: Float[np.ndarray, "starts keys"]) -> Projected:
        return project(_kept(self._now.theta + move, self._steepest), self._loss)

    def _keep(self, which: Bool[np.ndarray, " starts"]) -> None:
        self._now, self._model = _those(self._now, which), self._model and _those(self._model, which)
        self._damping, self._place = self._damping[which], self._place[which]
        self._attempt, self._taken, self._stalled = (
            counts[which] for counts in (self._attempt, self._taken, self._stalled)
        )


@dataclass(frozen=True, eq=False)
class _Model:
    """Steps in linear models, min |goal - J move|^2 + damping scale^2 |move|^2, with J = scale basis triangle."""

    jac: Float[np.ndarray, "starts goals keys"]
    scale: Float[np.ndarray, " starts"]
    basis: Float[np.ndarray, "starts goals keys"]
    triangle: Float[np.ndarray, "starts keys keys"]

    @classmethod
    def of(cls, now: Projected, loss: Loss) -> _Model:
        jac = _projected_jacobian(now, loss)
        scale = np.sqrt(np.einsum("sgk,sgk->sk", jac, jac).max(axis=-1)) + 1e-300
        return cls(jac, scale, *qr(jac / scale[:, None, None]))

    def damped(self, damping: Float[np.ndarray, " starts"]) -> _Steps:
        """J over the damping, with J made short: its triangle."""
        starts, count, _ = self.triangle.shape
        rows = np.empty((starts, count, 2 * count)).swapaxes(1, 2)
        np.multiply(self.triangle, _upper(count), out=rows[:, :count])
        rows[:, count:] = np.sqrt(damping)[:, None, None] * np.eye(count)
        basis, triangle = qr(rows)
        return _Steps(self, basis[:, :count], triangle)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The steps of models with one damping each."""

    model: _Model
    basis: Float[np.ndarray, "starts keys keys"]
    triangle: Float[np.ndarray, "starts keys keys"]

    def solve(self, goal: Float[np.ndarray, "starts goals"]) -> Float[np.ndarray, "starts keys"]:
        short = self.basis.swapaxes(-1, -2) @ (self.model.basis.swapaxes(-1, -2) @ goal[:, :, None])
        return solved(self.triangle, short)[:, :, 0] / self.model.scale[:, None]


_Rows = TypeVar("_Rows", Projected, _Model)


def _those(rows: _Rows, which: Bool[np.ndarray, " starts"]) -> _Rows:
    """These starts only."""
    return rows if which.all() else type(rows)(*(array[which] for array in vars(rows).values()))


def _updated(rows: _Rows, which: Bool[np.ndarray, " starts"], new: _Rows) -> _Rows:
    """The rows with these starts replaced, in place where some are kept."""
    if which.all():
        return new
    for array, better in zip(vars(rows).values(), vars(new).values(), strict=True):
        array[which] = better
    return rows


@cache
def _upper(count: int) -> Float[np.ndarray, "count count"]:
    """1 on the diagonal and above, 0 below."""
    return np.triu(np.ones((count, count)))


def _times(matrix: Float[np.ndarray, "starts goals keys"], move: Float[np.ndarray, "starts keys"]) -> np.ndarray:
    return (matrix @ move[:, :, None])[:, :, 0]


def _length(vector: Float[np.ndarray, "starts n"]) -> Float[np.ndarray, " starts"]:
    return np.sqrt(np.einsum("sn,sn->s", vector, vector))


def lawson(fit: Fit, samples: Samples, ridge: float, rounds: int, steps: int, steepest: float = STEEPEST) -> Fit:
    """The best fit in the sup norm seen while reweighting, with `steps` Gauss-Newton steps a round."""
    q, best = even(samples), fit
    for _ in range(rounds):
        size = np.abs(fit.residual).max(axis=1)
        q = q * (size / max(size.max(), 1e-300) + 1e-3)
        q /= q.sum()
        (fit,) = gauss_newton([fit], Loss(samples, q, ridge, fit.keys.anchors), steps, steepest)
        best = fit if fit.error < best.error else best
    return best


def _projected_jacobian(now: Projected, loss: Loss) -> Float[np.ndarray, "starts goals keys"]:
    """-d goal / d theta to first order: the weighted (dW/dtheta) v less what the columns of W can make up for."""
    jac = Keys.of_vector(now.theta).jacobian(loss.samples.x, now.w, now.values(loss))
    own = loss.weighted(jac.swapaxes(-3, -2))
    basis = now.basis[:, None]
    projected = own - basis @ (basis.swapaxes(-1, -2) @ own)
    return projected.reshape(len(projected), -1, projected.shape[-1])


def _kept(theta: Float[np.ndarray, "starts keys"], steepest: float) -> Float[np.ndarray, "starts keys"]:
    """Keys within the limits; slopes that are too steep in all are made gentler together."""
    half = theta.shape[-1] // 2
    lowest, highest = _limits(half)
    theta = np.minimum(np.maximum(theta, lowest), highest)
    logs = theta[:, :half]
    if logs.max() + np.log(half) > steepest:
        logs -= np.maximum(np.log(np.exp(logs).sum(axis=-1, keepdims=True)) - steepest, 0.0)
    return theta


@cache
def _limits(half: int) -> tuple[Float[np.ndarray, " keys"], Float[np.ndarray, " keys"]]:
    return np.repeat([FLATTEST, -_FARTHEST], half), np.repeat([STEEPEST, _FARTHEST], half)
