"""The way that an estimator's coefficients took, layer after layer, for pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.incontext.settled import states

MOST_POINTS = 2_000


@dataclass(frozen=True, eq=False)
class CoefficientPath:
    """What ah.plot draws of a fit.

    steps          the steps that are kept, the first and the last among them
    coefficients   after those steps, times the scales of their columns
    settled        the coefficients that it is compared with: scikit-learn's, or those after the last step
    """

    model: str
    names: tuple[str, ...]
    steps: Float[np.ndarray, " points"]
    coefficients: Float[np.ndarray, "points d"]
    settled: Float[np.ndarray, " d"]
    compared_with: str

    @property
    def distance(self) -> Float[np.ndarray, " points"]:
        """The largest distance of any, relative to the largest; as it is where all settle at 0."""
        scale = float(np.abs(self.settled).max(initial=0.0)) or 1.0
        return np.abs(self.coefficients - self.settled).max(axis=1) / scale


def coefficient_path(
    model: Any, X: Any, y: Any, names: tuple[str, ...], settled: Any, with_what: str
) -> CoefficientPath:
    """Runs the network of a fitted model once more, and keeps what its coefficients are on the way.

    All are multiplied by the scales of their columns, so that large and small columns can be drawn together.
    """
    every = max(1, -(-model.n_iter_ // MOST_POINTS))
    columns, labels = model.columns_, model.labels_
    kept, found = [0], [np.zeros(len(columns.scale))]
    for number, w, _ in states(model.network_, model.prompt(X, y)):
        if number % every == 0 or number == model.n_iter_:
            kept.append(number)
            found.append(labels.gain * w[: len(columns.scale)])
    return CoefficientPath(
        type(model).__name__,
        names,
        np.array(kept, dtype=np.float64),
        np.array(found),
        np.ravel(settled) * columns.scale,
        with_what,
    )
