"""Coefficients on their way through the layers of an estimator, and how far they are from where they settle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.incontext.estimators_path import CoefficientPath
from anchorhead.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NAMED = 6


def draw_coefficients(path: CoefficientPath) -> Figure:
    """Left each coefficient by step, the largest with their names; right the distance, on a logarithmic scale."""
    figure = style.figure(14.0, 5.4)
    left, right = figure.subplots(1, 2)
    order = np.argsort(-np.abs(path.settled), kind="stable")
    for j in order[MOST_NAMED:]:
        left.plot(path.steps, path.coefficients[:, j], color=style.PALE, linewidth=1.2)
    for colour, j in zip(style.SERIES, order[:MOST_NAMED], strict=False):
        left.plot(path.steps, path.coefficients[:, j], color=colour, linewidth=1.8, label=path.names[j])
        left.plot(path.steps[-1], path.settled[j], color=colour, marker="o", markersize=6)
    left.set_xscale("symlog", linthresh=10)
    left.set_xlabel("step")
    left.set_ylabel("coefficient times the column's scale")
    left.grid(True)
    left.legend(loc="best", ncols=2)
    style.title(left, f"{path.model} in context", f"dots: {path.compared_with}")
    distance = path.distance
    shown = np.maximum(distance, 1e-16)
    right.plot(path.steps, shown, color=style.BLUE)
    right.set_yscale("log")
    right.set_xlabel("step")
    right.set_ylabel("largest difference, relative")
    right.grid(True)
    style.title(right, f"Distance from {path.compared_with}", f"{distance[-1]:.1e} after {path.steps[-1]:,.0f} steps")
    return figure
