"""The way that an estimator's coefficients took, layer after layer, for pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.as_html import block, table
from anchorhead.decimals import counted
from anchorhead.incontext.settled import states

MAX_POINTS = 2_000


@dataclass(frozen=True, eq=False)
class CoefficientPath:
    """What ah.plot draws of a fit.

    steps          the steps that are kept, the first and the last among them
    coefficients   after those steps
    settled        those that they are compared with: scikit-learn's, or those after the last step
    scale          the scales of the columns: times these, large and small columns can be drawn together
    """

    model: str
    names: tuple[str, ...]
    steps: Float[np.ndarray, " points"]
    coefficients: Float[np.ndarray, "points d"]
    settled: Float[np.ndarray, " d"]
    compared_with: str
    scale: Float[np.ndarray, " d"]

    @property
    def distance(self) -> Float[np.ndarray, " points"]:
        """The largest difference of any coefficient, as `relative_difference` has it, for each step."""
        return np.array([relative_difference(one, self.settled) for one in self.coefficients])

    def _repr_html_(self) -> str:
        rows = [
            (name, f"{ours:.8g}", f"{theirs:.8g}")
            for name, ours, theirs in zip(self.names, self.coefficients[-1], self.settled, strict=True)
        ]
        title = f"{self.model} in context after {counted(int(self.steps[-1]), 'step')}"
        apart = f"largest difference: {self.distance[-1]:.1e} of the largest coefficient"
        return block(title, table(("column", "coefficient", self.compared_with), rows), apart)


def relative_difference(ours: Float[np.ndarray, " d"], theirs: Float[np.ndarray, " d"]) -> float:
    """The largest difference of any two coefficients, relative to the largest of theirs; as it is where all are 0."""
    largest = float(np.abs(theirs).max(initial=0.0))
    return float(np.abs(ours - theirs).max(initial=0.0)) / (largest or 1.0)


def coefficient_path(
    model: Any, X: Any, y: Any, names: tuple[str, ...], settled: Any, with_what: str
) -> CoefficientPath:
    """Runs the network of a fitted model once more, and keeps what its coefficients are on the way."""
    every = max(1, -(-model.n_iter_ // MAX_POINTS))
    columns, labels = model.columns_, model.labels_
    kept, found = [0], [np.zeros(len(columns.scale))]
    for number, w, _ in states(model.network_, model.prompt(X, y)):
        if number % every == 0 or number == model.n_iter_:
            kept.append(number)
            found.append(labels.gain * w[: len(columns.scale)] / columns.scale)
    found[-1] = np.ravel(model.coef_)  # as they are printed
    return CoefficientPath(
        type(model).__name__,
        names,
        np.array(kept, dtype=np.float64),
        np.array(found),
        np.ravel(settled).astype(np.float64),
        with_what,
        np.asarray(columns.scale, dtype=np.float64),
    )
