"""One of everything that can be plotted, small; and what can be asked of a figure that was drawn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import matplotlib.text
import numpy as np
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

import anchorhead as ah
from anchorhead import incontext
from anchorhead.constructions.planning.plan import Plan, Row
from anchorhead.domain import Box
from anchorhead.incontext.estimators.path import CoefficientPath
from anchorhead.lab import heat_maps
from anchorhead.plotting import Frontier, FrontierRow, Sweep
from anchorhead.plotting import Row as SweepRow
from tests.networks import network


def ramps(**options: Any) -> ah.Network:
    rng = np.random.default_rng(0)
    return ah.truncated_linear(rng.normal(size=(4, 2)), rng.normal(size=4), -1, 1, **options)


def sweep(count: int = 3, rate: float | None = -1.0) -> Sweep:
    rows = tuple(SweepRow(2**k, 8, 1, 2**k, 2 / 2**k, 0.3 / 2**k, 0.25 / 2**k, 2.7) for k in range(3, 3 + count))
    return Sweep("single-head", "anchors p", rows, -1.0, 1.0, "float64", rate)


def frontier(count: int = 5) -> Frontier:
    rows = tuple(FrontierRow(p, 10.0**-p, p, 1, p, 2.0 * p, 1 / p, 0.5**p) for p in range(2, 2 + count))
    return Frontier("gelu", -10.0, 10.0, "float32", "proven", 6e-8, rows)


def plan_row(within: float, form: str, layout: str, placement: str, known: bool = True) -> Row:
    count = round(3 / within) if placement == "uniform" else 4
    sizes = (5, 30, count, 20 * count, 8.0, 100 * count, 1e4) if known else (None,) * 7
    return Row(within, form, layout, placement, *sizes, within, 100, known and count < 1000, "")  # type: ignore[arg-type]


def plan(withins: tuple[float, ...] = (1e-1, 1e-2, 1e-4), reached: float = 0.0) -> Plan:
    """Solved anchors reach errors down to `reached`."""
    rows = [
        plan_row(within, form, layout, placement, placement == "uniform" or within >= reached)
        for within in withins
        for form in ("two-layer", "attention-softmax", "deep")
        for layout in ("transformer", "sequence")
        for placement in ("solved", "uniform")
    ]
    return Plan("network 100 -> 10 -> 100 (relu, 20 tokens)", Box.of((0, 1)), "float64", tuple(rows))


def trace(features: int = 2, steps: int = 4, **options: Any) -> incontext.Trace:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(9, features))
    learner = incontext.gradient_descent(loss="squared", steps=steps, rate=0.1, features=features, **options)
    return incontext.trace(learner, learner.prompt(X, X[:, 0]))


def coefficients() -> CoefficientPath:
    steps = np.arange(6.0)
    path = np.array([[1.0, -2.0, 0.5]]) * (1 - 0.5 ** steps[:, None])
    settled, scale = np.array([1.0, -2.0, 0.5]), np.array([1.0, 100.0, 0.01])
    return CoefficientPath(
        "Ridge", ("first", "price in $ and $", "third"), steps, path, settled, "scikit-learn's", scale
    )


LARGEST = [["x[0,0]"], ["max(x[0,0], x[1,0])"]]
THINGS: dict[str, Callable[[], Any]] = {
    "head": lambda: ah.head("relu", (-1, 1), anchors=4),
    "head of two parts": lambda: ah.head("abs", (-1, 1), 1e-4, dtype="float32"),
    "ramps": lambda: ramps(anchors=8),
    "several outputs": lambda: ramps(anchors=8, outputs=list(range(8))),
    "surface": lambda: network("grid (float64)"),
    "maximum": lambda: ah.approximate(LARGEST, on=(0, 1), within=1e-2, tokens=2, features=1),
    "sweep": sweep,
    "sweep of one": lambda: sweep(1, None),
    "frontier": frontier,
    "plan": plan,
    "plan of one error": lambda: plan((1e-3,)),
    "plan out of reach": lambda: plan(reached=1e-3),
    "heat maps": lambda: heat_maps(widths=(1.0, 4.0), tokens=6),
    "trace": trace,
    "trace of three weights": lambda: trace(intercept=True),
    "coefficients": coefficients,
}


@cache
def thing(name: str) -> Any:
    return THINGS[name]()


def drawn(figure: Figure) -> Figure:
    """Laid out, every text and tick at its place: as when it is saved, which draws it twice."""
    figure.draw_without_rendering()
    figure.canvas.draw()
    return figure


def words(figure: Figure) -> list[tuple[str, Bbox]]:
    """Texts that are seen, and where; labels of ticks beyond the ends of an axis are there, but are not drawn."""
    beyond = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low - slack <= tick.get_loc() <= high + slack:
                    beyond |= {tick.label1, tick.label2}
    texts = [one for one in figure.findobj(matplotlib.text.Text) if one.get_visible() and one not in beyond]
    return [(one.get_text(), one.get_window_extent()) for one in texts if one.get_text().strip()]
