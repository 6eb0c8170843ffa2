"""The frontier: how the error falls with the number of anchors, for three ways to spend them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from anchorhead.as_html import block, table
from anchorhead.decimals import shortened
from anchorhead.plotting import style
from anchorhead.plotting.head import LONGEST_NAME
from anchorhead.plotting.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FrontierRow:
    """One number of anchors p.

    solved      the bound of the best head with at most p anchors, rounding included
    used        how many anchors that head has, and in how many parts
    max_value   the largest |value| of that head, and its largest |slope|
    uniform     the bound of the head with p uniform anchors
    polynomial  the error of the best polynomial with p coefficients, in exact arithmetic, not proven
    """

    anchors: int
    solved: float
    used: int
    parts: int
    max_value: float
    max_slope: float
    uniform: float
    polynomial: float


@dataclass(frozen=True)
class Frontier:
    """Rows of ascending anchors for one target on [low, high]; `kind` says how the bounds of heads are known.

    resolution  the dtype's unit round-off times the largest |target|
    """

    name: str
    low: float
    high: float
    dtype: str
    kind: Literal["proven", "measured"]
    resolution: float
    rows: tuple[FrontierRow, ...]

    def _repr_html_(self) -> str:
        heads = (
            "anchors p",
            f"solved, {self.kind}",
            f"uniform, {self.kind}",
            "best polynomial",
            "largest |value|",
            "|slope|",
        )
        rows = [
            (
                row.anchors,
                *(f"{one:.3g}" for one in (row.solved, row.uniform, row.polynomial, row.max_value, row.max_slope)),
            )
            for row in self.rows
        ]
        return block(f"{self.name} on [{self.low:g}, {self.high:g}], in {self.dtype}", table(heads, rows))


def draw_frontier(frontier: Frontier, page: Page) -> Figure:
    """Errors on a logarithmic scale above; the largest value and slope of the solved heads below."""
    figure = page.figure(8.4, 8.2)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1.3])
    anchors = [row.anchors for row in frontier.rows]
    columns = {
        f"uniform anchors, {frontier.kind}": ([row.uniform for row in frontier.rows], style.VERMILLION, "s"),
        "best polynomial, p coefficients": ([row.polynomial for row in frontier.rows], style.grey(), "^"),
        f"solved anchors, {frontier.kind}": ([row.solved for row in frontier.rows], style.BLUE, "o"),
    }
    for label, (errors, colour, marker) in columns.items():
        upper.semilogy(anchors, errors, color=colour, marker=marker, label=label)
    upper.set_ylabel("sup error")
    _limits(upper, [error for errors, *_ in columns.values() for error in errors])
    if frontier.resolution > upper.get_ylim()[0]:
        label = f"{frontier.dtype}'s resolution"
        upper.axhline(frontier.resolution, color=style.ink(), linestyle=":", linewidth=style.points(1.6), label=label)
    sizes = {
        "largest |slope|": ([row.max_slope for row in frontier.rows], style.PURPLE, "D"),
        "largest |value|": ([row.max_value for row in frontier.rows], style.GREEN, "v"),
    }
    for label, (numbers, colour, marker) in sizes.items():
        lower.semilogy(anchors, numbers, color=colour, marker=marker, label=label)
    lower.set_ylabel("solved\nweights")
    lower.set_xlabel("anchors p")
    style.whole_numbers(lower.xaxis, 16)
    _limits(lower, [number for numbers, *_ in sizes.values() for number in numbers])
    for axes in (upper, lower):
        axes.grid(True)
        axes.minorticks_off()
    title = f"{shortened(frontier.name, LONGEST_NAME)} on [{frontier.low:g}, {frontier.high:g}]"
    style.heading(upper, title, f"error against anchors, rounding in {frontier.dtype} included", legend=True)
    style.heading(lower, "", legend=True)
    return figure


def _limits(axes: Axes, numbers: Sequence[float]) -> None:
    """Some air below and above."""
    shown = [number for number in numbers if 0 < number < float("inf")] or [1.0]
    axes.set_ylim(min(shown) / 3, max(shown) * 3)
