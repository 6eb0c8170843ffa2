"""A made table to learn from: many columns that go up and down together, the same on every machine."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError

Label = Literal["number", "class", "count"]
ROWS, COLUMNS, SEED = 2_000, 80, 2_026
NEIGHBOURS = 0.9
"""The correlation of a column with the next."""


def made_table(
    label: Label = "number", rows: int = ROWS, columns: int = COLUMNS, seed: int = SEED
) -> tuple[Float[np.ndarray, "rows columns"], Float[np.ndarray, " rows"]]:
    """Columns x_j = c x_(j-1) + sqrt(1 - c^2) noise, c = 0.9, standardised; labels from a linear score of a quarter of
    them: the score with noise, a class 0 or 1, or a count."""
    if label not in ("number", "class", "count"):
        raise AnchorheadError(f'label={label!r}: one of "number", "class", "count"')
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((rows, columns))
    X = np.empty((rows, columns))
    X[:, 0] = noise[:, 0]
    for j in range(1, columns):
        X[:, j] = NEIGHBOURS * X[:, j - 1] + np.sqrt(1 - NEIGHBOURS**2) * noise[:, j]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = np.where(np.arange(columns) % 4 == 0, rng.standard_normal(columns), 0.0)
    score = X @ weights
    score = score / score.std()
    match label:
        case "number":
            return X, score + 0.5 * rng.standard_normal(rows)
        case "class":
            return X, (rng.random(rows) < 1 / (1 + np.exp(-2 * score))).astype(np.float64)
        case _:
            return X, rng.poisson(np.exp(0.5 * score + 1)).astype(np.float64)
