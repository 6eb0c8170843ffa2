"""Rates: how the error falls as a construction grows, beside the theorem's bound and the proven one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from anchorhead.as_html import block, table
from anchorhead.plotting import style
from anchorhead.plotting.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Theorem = Literal["single-head", "multi-head"]


@dataclass(frozen=True)
class Row:
    """One size of a sweep.

    size       what the sweep varies: p, n, H or (n - 2) H
    intervals  into how many the range is cut: p - 1, or (n - 2) H
    theorem    the theorem's bound, without its softmax term
    proven     the bound of the network's certificate
    measured   the largest error that the search found
    c          the sharpness, for anchors one apart
    """

    size: int
    tokens: int
    heads: int
    intervals: int
    theorem: float
    proven: float
    measured: float
    c: float


@dataclass(frozen=True)
class Sweep:
    """Networks of one construction, one a row; `rate` is the slope of log(measured) on log(intervals)."""

    theorem: Theorem
    varied: str
    rows: tuple[Row, ...]
    low: float
    high: float
    dtype: str
    rate: float | None

    def _repr_html_(self) -> str:
        heads = ("size", self.intervals_formula, "theorem", "proven", "largest error found", "c")
        rows = [
            (row.size, row.intervals, *(f"{one:.3g}" for one in (row.theorem, row.proven, row.measured, row.c)))
            for row in self.rows
        ]
        slope = "" if self.rate is None else f"slope of the errors found: {self.rate:.3f}"
        title = f"{self.theorem} theorem on [{self.low:g}, {self.high:g}], varying the {self.varied}, in {self.dtype}"
        return block(title, table(heads, rows), slope)

    @property
    def intervals_formula(self) -> str:
        return "p − 1" if self.theorem == "single-head" else "(n − 2) H"

    @property
    def theorem_formula(self) -> str:
        return "(b − a) / p" if self.theorem == "single-head" else "(b − a) / ((n − 2) H)"


def draw_sweep(sweep: Sweep, page: Page) -> Figure:
    """Error against the number of intervals, both on logarithmic scales."""
    figure = page.figure(8.4, 6.2)
    draw_sweep_on(figure.add_subplot(), sweep)
    return figure


def draw_sweep_on(axes: Axes, sweep: Sweep) -> None:
    rows = sorted(sweep.rows, key=lambda row: row.intervals)
    intervals = [row.intervals for row in rows]
    axes.loglog(
        intervals,
        [row.theorem for row in rows],
        color=style.grey(),
        linestyle=(0, (5, 2.5)),
        label=f"the theorem's bound, {sweep.theorem_formula}",
    )
    axes.loglog(
        intervals,
        [row.proven for row in rows],
        color=style.ORANGE,
        linewidth=style.points(6),
        marker="D",
        markersize=style.points(12),
        label=f"our proven bound, {sweep.dtype} rounding included",
    )
    slope = "" if sweep.rate is None else f", slope {sweep.rate:.3f}"
    axes.loglog(
        intervals,
        [row.measured for row in rows],
        color=style.BLUE,
        linewidth=style.points(1.8),
        marker="o",
        markersize=style.points(6),
        label=style.minus(f"largest error found{slope}"),
    )
    axes.set_xscale("log", base=2)
    ticks = _apart(intervals)
    axes.set_xticks(ticks, [f"{count:,}" for count in ticks])
    axes.minorticks_off()
    axes.grid(True)
    axes.set_xlabel(f"intervals that the range is cut into, {sweep.intervals_formula}")
    axes.set_ylabel("sup error, in units of s = w·x + t")
    style.heading(
        axes,
        f"{sweep.theorem.capitalize()} theorem: error against size",
        f"truncated linear functions on [a, b] = [{sweep.low:g}, {sweep.high:g}], varying the {sweep.varied}",
        legend=True,
    )


def _apart(numbers: list[int], factor: float = 1.35) -> list[int]:
    """Those of the ascending numbers that leave room for each other's labels on a logarithmic scale."""
    kept = numbers[:1]
    for number in numbers:
        if number >= factor * kept[-1]:
            kept.append(number)
    return kept
