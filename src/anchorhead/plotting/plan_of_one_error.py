"""A plan for a single error: a line of words for each way to build it, with its sizes as marks and as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchorhead.constructions.planning.plan import Plan, Row
from anchorhead.plotting import style
from anchorhead.plotting.page import Page
from anchorhead.plotting.plan_rows import COLOURS, LATTICE, heading_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_one_error(plan: Plan, page: Page) -> Figure:
    """Parameters, then anchors of one softmax: what is known is a mark with its number, the rest is said in words."""
    rows = sorted(plan.rows, key=lambda row: row.placement == LATTICE)
    figure, panels = page.side_by_side(13.6, 2.4 + (0.6 if page.narrow else 0.42) * len(rows), (1, 1))
    for number, (axes, size) in enumerate(zip(panels, ("parameters", "anchors"), strict=True)):
        _panel(axes, rows, size, "\n" if page.narrow else " " if number == 0 else "")
        style.heading(axes, size.capitalize())
    title, note = heading_of(plan)
    within = plan.rows[0].within
    hollow = any(row.parameters is not None and not row.reachable for row in rows)
    more = "; solved, even: how anchors are placed" if rows[0].form not in ("head", "learner") else ""
    more += "; hollow: not built, for their number or their rounding" if hollow else ""
    style.title(figure, title if within is None else f"{title}, within {within:g}", note + more)
    return figure


def _panel(axes: Axes, rows: list[Row], size: str, gap: str) -> None:
    """gap: between the words of a name; none: no names."""
    known = [getattr(row, size) for row in rows if getattr(row, size)]
    low, high = (min(known), max(known)) if known else (1, 10)
    pt = style.points
    axes.set_xscale("log")
    axes.set_xlim(low / 3, high * max(high / low, 1000) ** 0.6)
    for place, row in enumerate(rows):
        number = getattr(row, size)
        colour = COLOURS[row.form]
        if number is None:
            axes.annotate(
                "out of reach", (0, place), (pt(6), 0), xycoords=("axes fraction", "data"),
                textcoords="offset points", va="center", fontsize=pt(12), color=style.grey(),
            )  # fmt: skip
            continue
        axes.hlines(place, low / 3, max(number, 1), color=style.pale(), linewidth=pt(1.5), zorder=1)
        face = colour if row.reachable else style.paper()
        axes.plot(
            max(number, 1), place, "o", color=colour, markerfacecolor=face, markersize=pt(9), markeredgewidth=pt(1.6)
        )
        axes.annotate(
            f"{number:,}" if number < 1e7 else f"{number:.1e}", (max(number, 1), place), (pt(9), 0),
            textcoords="offset points", va="center", fontsize=pt(12),
        )  # fmt: skip
    names = [_name(row, gap) for row in rows] if gap else [""] * len(rows)
    axes.set_yticks(range(len(rows)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.minorticks_off()
    axes.grid(True, axis="x")


def _name(row: Row, gap: str) -> str:
    placement = "even" if row.placement == LATTICE else row.placement
    return f"head,{gap}{placement} anchors" if row.form == "head" else f"{row.form},{gap}{row.layout}, {placement}"
