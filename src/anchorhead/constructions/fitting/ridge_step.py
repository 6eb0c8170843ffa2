"""Steps of Levenberg and Marquardt for the networks of constructions.fitting.ridge_model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from anchorhead.constructions.fitting.ridge_model import M, Model, Solve, chunks, work_of
from anchorhead.effort import Effort

TRIES = 6


@dataclass(eq=False)
class Steps:
    """Steps towards the smallest sum_i root_i^2 |y_i - network(x_i)|^2.

    effort     what is left of the multiplications that may be done
    stiffness  of the outer weights: |outer|^2 is added, times this part of the mean of F'F's diagonal
    """

    x: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, "n m"]
    root: Float[np.ndarray, "n 1"]
    stiffness: float
    effort: Effort
    rng: np.random.Generator
    damping: float = 1e-2

    def solved(self, model: M) -> tuple[M, float]:
        """The same inner weights with the best outer ones, and the sum of squares."""
        features = model.features(self.x) * self.root
        self.effort.spend(work_of(*features.shape))
        wanted = self.y * self.root
        outer = self._solver(features.T @ features)(features.T @ wanted)
        left = wanted - features @ outer
        return replace(model, outer=outer), float((left * left).sum())

    def worth(self, model: Model) -> Float[np.ndarray, " features"]:
        """By how much the sum of squares grows without a feature, the others at their best: c^2 / (F'F)^-1."""
        features = model.features(self.x) * self.root
        self.effort.spend(work_of(*features.shape))
        inverse = self._solver(features.T @ features)(np.eye(features.shape[1]))
        return np.square(model.outer).sum(axis=1) / np.maximum(np.diag(inverse), 1e-300)

    def run(self, model: M, most: int, least_gain: float = 0.01) -> M:
        """At most so many steps; ends when five of them have gained less than this part each."""
        model, now = self.solved(model)
        history = [now]
        for _ in range(most):
            if self.effort.over or not model.neurons:
                break
            found = self._step(model, now)
            if found is None:
                break
            model, now = found
            history.append(now)
            if len(history) > 5 and history[-6] < now * (1 + least_gain) ** 5:
                break
        return model

    def _step(self, model: M, now: float) -> tuple[M, float] | None:
        chosen = model.chosen(self.rng)
        curvature, gradient = model.normal(chosen, self.x, self.y, self.root, self._solver)
        self.effort.spend(model.work(len(self.x), len(chosen)))
        diagonal = np.diag(curvature)
        diagonal = diagonal + 1e-8 * max(float(diagonal.max()), 1e-300)
        for _ in range(TRIES):
            try:
                step = cho_solve(cho_factor(curvature + np.diag(self.damping * diagonal)), gradient)
            except LinAlgError:
                self.damping *= 10
                continue
            self.effort.spend(work_of(0, len(gradient)))
            tried, then = self.solved(model.moved(chosen, step))
            if then < now:
                self.damping = max(self.damping / 4, 1e-9)
                return tried, then
            self.damping *= 6
        self.damping = 1e-2
        return None

    def _solver(self, gram: np.ndarray) -> Solve:
        """Solves with a Gram matrix, a little stiffer than it is; more so where rounding asks for it."""
        size, stiffness = max(float(np.trace(gram)) / len(gram), 1e-300), self.stiffness
        while True:
            try:
                factor = cho_factor(gram + stiffness * size * np.eye(len(gram)))
            except LinAlgError:
                stiffness = max(10 * stiffness, 1e-14)
                continue
            return lambda b: cho_solve(factor, b)


def values(model: Model, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n m"]:
    """The network's values, row by row."""
    parts = [model.features(x[rows]) @ model.outer for rows in chunks(len(x), len(model.outer))]
    return np.concatenate([np.empty((0, model.outer.shape[1])), *parts])
