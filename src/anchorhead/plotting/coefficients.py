"""Coefficients on their way through the layers of an estimator, and how far they are from where they settle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.decimals import counted
from anchorhead.incontext.estimators.path import CoefficientPath
from anchorhead.plotting import style
from anchorhead.plotting.page import Page
from anchorhead.plotting.style import Heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_NAMED, WIDEST_NAME = 6, 24
FEW_STEPS = 20
"""More are drawn on a scale that is logarithmic from the tenth on."""
MIN_SHOWN, MAX_SHOWN = 1e-16, 1e16
"""Distances beyond are drawn as these: of coefficients that are all 0, any is infinitely far, relative to them."""


def draw_coefficients(path: CoefficientPath, page: Page) -> Figure:
    """Left each coefficient by step, the largest with their names; right the distance, on a logarithmic scale."""
    from matplotlib.ticker import StrMethodFormatter

    figure, (left, right) = page.side_by_side(14.0, 6.4, (1, 1))
    coefficients, settled = path.coefficients * path.scale, path.settled * path.scale
    order = np.argsort(-np.abs(settled), kind="stable")
    for j in order[MAX_NAMED:]:
        left.plot(path.steps, coefficients[:, j], color=style.pale(), linewidth=style.points(1.2))
    for colour, j in zip(style.series(), order[:MAX_NAMED], strict=False):
        drawn = {"color": colour, "linewidth": style.points(1.8), "label": style.label(path.names[j], WIDEST_NAME)}
        left.plot(path.steps, coefficients[:, j], **drawn)
        left.plot(path.steps[-1], settled[j], color=colour, marker="o", markersize=style.points(6))
    if path.steps[-1] > FEW_STEPS:
        left.set_xscale("symlog", linthresh=10)
        left.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    else:
        style.whole_numbers(left.xaxis, 6)
    left.set_xlabel("step")
    left.set_ylabel("coefficient times the column's scale")
    left.grid(True)
    grey = f"; grey: the other {len(order) - MAX_NAMED:,}" if len(order) > MAX_NAMED else ""
    dots = f"dots: {path.compared_with} coefficients{grey}"
    distance = path.distance
    right.plot(path.steps, np.clip(distance, MIN_SHOWN, MAX_SHOWN), color=style.BLUE)
    right.set_yscale("log")
    style.whole_numbers(right.xaxis, 6)
    right.set_xlabel("step")
    right.set_ylabel("largest difference over the largest coefficient")
    right.grid(True)
    left_over = f"{distance[-1]:.1e} after {counted(int(path.steps[-1]), 'step')}"
    where = f"Distance from {path.compared_with} coefficients"
    page.write([Heading(left, f"{path.model} in context", dots, True), Heading(right, where, left_over)])
    return figure
