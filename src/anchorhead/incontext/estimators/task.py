"""What an estimator asks of a learner: a loss with penalties on scaled columns, and the way back to one's own columns.

A model minimises, over w and, where it has one, an intercept b,

    mean over the examples of loss(w . x_i + b, y_i)  +  decay |w|^2 / 2  +  threshold |w|_1.

Outside the network each column is standardised by itself, that is moved and scaled: x'_j = (x_j - middle_j) / scale_j,
and labels likewise, y' = (y - centre) / unit. All else, the intercept b' for such columns included, is found by
attention layers. The same minimum is at w'_j = w_j scale_j / gain, where penalties act on w'_j gain / scale_j.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.networks import balanced_sharpness, linked_network, squared_network
from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import Loss

ALIKE = 2.0
"""Columns whose scales differ by no more than this get one scale, so that a penalty is the same for all entries."""
CONSTANT = 1e-12
"""A column whose deviation is no more than this, relative to its largest entry, is constant."""
SAFE = 1.9
"""With momentum mu a rate of 2 (1 + mu) over the largest curvature is the limit."""


@dataclass(frozen=True, eq=False)
class Columns:
    """How columns were moved and scaled. constant: which of them are; their entries are 0 afterwards."""

    middle: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    constant: Bool[np.ndarray, " d"]

    @classmethod
    def of(cls, X: Float[np.ndarray, "n d"], centred: bool, penalised: bool, extra: float) -> Columns:
        """Scales so that each column has, with the `extra` that a decay adds to its curvature, mean square 1.

        One scale for all of a penalised model's columns, if theirs are alike.
        """
        middle = X.mean(axis=0) if centred else np.zeros(X.shape[1])
        moved = X - middle
        size = np.sqrt(np.mean(moved**2, axis=0))
        constant = size <= CONSTANT * np.abs(X).max(axis=0, initial=0.0)
        scale = np.sqrt(np.where(constant, 0.0, size**2) + extra)
        some = scale[~constant]
        if not some.size:
            return cls(middle, np.ones(len(scale)), constant)
        if penalised and some.max() <= ALIKE * some.min():
            scale = np.full(len(scale), np.sqrt(np.mean(some**2)))
        return cls(middle, np.where(constant, np.sqrt(np.mean(some**2)), scale), constant)

    def __call__(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        return np.where(self.constant, 0.0, (X - self.middle) / self.scale)


@dataclass(frozen=True)
class Labels:
    """y' = (y - centre) / unit, and what the scores of scaled labels are in those of one's own: gain s' + shift."""

    centre: float = 0.0
    unit: float = 1.0
    gain: float = 1.0
    shift: float = 0.0

    @classmethod
    def measured(cls, centre: float, unit: float) -> Labels:
        """For losses of s - y: scores are scaled as labels are."""
        return cls(centre, unit, unit, centre)

    def __call__(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return (y - self.centre) / self.unit


@dataclass(frozen=True, eq=False)
class Task:
    """A model on scaled labels and one's own columns: decay and threshold are those of w / gain.

    intercept   whether there is one: an entry of the network's w, and columns that are moved to their means
    slope       the largest slope of the link, or where it has none the slope at 0
    scores      ranges of the link's argument to try one after the other; none where a head serves everywhere
    """

    loss: Loss
    intercept: bool
    decay: float = 0.0
    threshold: float = 0.0
    labels: Labels = Labels()
    slope: float = 1.0
    scores: tuple[tuple[float, float], ...] = ()

    def columns(self, X: Float[np.ndarray, "n d"]) -> Columns:
        penalised = self.decay > 0 or self.threshold > 0
        return Columns.of(X, self.intercept, penalised, self.decay / self.slope)

    def descent(self, columns: Columns, momentum: float, ease: float, steps: int, examples: int) -> Descent:
        """The descent in the scaled columns, with `ease` times a rate that is safe whatever the columns are."""
        first = columns.scale[0]
        alike = bool((columns.scale == first).all()) or not (self.decay or self.threshold)
        scale = first if self.decay or self.threshold else 1.0
        scales = None if alike else tuple(scale / columns.scale)
        curvature = self.slope * (max(1, int((~columns.constant).sum())) + self.intercept)
        decay = self.decay / scale**2
        steepest = decay * float(np.max(scales, initial=1.0)) ** 2 if scales else decay
        rate = ease * SAFE * (1 + momentum) / curvature
        return Descent(
            self.loss,
            steps=steps,
            rate=min(rate, SAFE / steepest) if decay else rate,
            features=len(columns.scale),
            intercept=self.intercept,
            decay=decay,
            threshold=self.threshold / scale,
            momentum=momentum,
            examples=examples,
            layout="direct" if self.loss.name == "squared" else "transformer",
            scales=scales,
        )


def coefficients_of(
    w: Float[np.ndarray, " weights"], columns: Columns, labels: Labels
) -> tuple[Float[np.ndarray, " d"], float]:
    """Coefficients and intercept for one's own columns and labels, from the weights for scaled ones."""
    count = len(columns.scale)
    coefficients = np.where(columns.constant, 0.0, labels.gain * w[:count] / columns.scale)
    own = labels.gain * float(w[count:].sum())
    return coefficients, labels.shift + own - float(columns.middle @ coefficients)


def learner_for(target: Descent, y: Float[np.ndarray, " n"], dtype: str, scores: tuple[float, float] | None) -> Learner:
    """The network of a descent, its sharpness as the scaled labels y ask for.

    For curved links with outside="ignore": that a rate is safe takes an exact descent to know.
    """
    largest = max(1.0, float(np.abs(y).max()))
    if target.layout == "direct":
        return Learner.of(squared_network(target, balanced_sharpness(largest, dtype), dtype))
    links = max(1.0, float(np.abs(target.loss.derivative(np.zeros_like(y), y)).max()))
    reach = max(4.0, largest if target.loss.form == "phi(s - y)" else 0.0)
    network = linked_network(
        replace(target, scores=scores), dtype, balanced_sharpness(reach, dtype), balanced_sharpness(links, dtype)
    )
    return Learner.of(network).with_(outside="ignore")


def require_finite(X: np.ndarray, y: np.ndarray) -> None:
    """Refuses columns or labels so large that their squares overflow."""
    largest = max(float(np.abs(X).max(initial=0.0)), float(np.abs(y).max(initial=0.0)))
    if not largest < 1e150:
        raise AnchorheadError(f"X or y has an entry of size {largest:g}: its square overflows; scale it down")
