"""How the errors of steps of a descent on any loss add up (see lemmas.learners.descent_linked)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anchorhead.conditions import Condition
from anchorhead.lemmas.learners.average import Moments, StepError, step_error
from anchorhead.lemmas.learners.descent_varying import VaryingDrift
from anchorhead.lemmas.learners.loop import DescentBound, Drift
from anchorhead.lemmas.learners.transformer import LinkedStep
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.targets.descent import Descent

NOTHING = DescentBound(np.inf, {})


@dataclass
class Paths:
    """Several bounds that grow in the same way: of all errors, of rounding alone, of a reference."""

    drifts: list[Drift] | list[VaryingDrift]

    @classmethod
    def of(cls, straight: bool, momentum: float, growth: float, count: int) -> Paths:
        if straight:
            return cls([Drift(momentum, growth) for _ in range(count)])
        return cls([VaryingDrift(momentum) for _ in range(count)])

    def step(self, errors: list[StepError], least: float, most: float) -> None:
        for drift, error in zip(self.drifts, errors, strict=True):
            if isinstance(drift, Drift):
                drift.step(error.of_weights, error.of_velocity)
            else:
                drift.step(error.of_weights, error.of_velocity, least, most)

    def summed(self, given: tuple[Condition, ...] = ()) -> DescentBound:
        total, rounding = self.drifts[0].bound, self.drifts[1].bound
        method = max(total - rounding, 0.0) if np.isfinite(total) else np.inf
        terms = {"heads in place of score, link and gradient": method, "rounding": rounding}
        return DescentBound(total, terms, given)


def rounding_alone(step: LinkedStep, target: Descent, at: Moments, model: Arithmetic) -> StepError:
    """What rounding alone adds, at a step whose links are wrong by their rounding alone."""
    found = step_error(step.collect, target, at, model)
    return replace(found, of_weights=found.rounding, of_velocity=found.of_velocity and found.rounding)
