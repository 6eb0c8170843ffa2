"""A plan: how parameters and anchors grow as the error asked for shrinks, for the paper's placement and for ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anchorhead.constructions.planning.plan import Plan, Row
from anchorhead.plotting import style
from anchorhead.plotting.page import Page
from anchorhead.plotting.plan_of_one_error import draw_one_error
from anchorhead.plotting.plan_rows import COLOURS, DASHED, LATTICE, heading_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTHS = {"two-layer": 3.6, "attention-softmax": 2.2, "deep": 1.3, "head": 2.2, "learner": 2.2, "all": 2.2}
"""Lines that coincide can all be seen: the later the narrower."""
MARKERS = {"two-layer": "o", "attention-softmax": "s", "deep": "^", "head": "o", "learner": "o", "all": "D"}
STRIP = 0.14
"""Share of a panel's height, at its top, for errors that are out of reach."""
APART = 0.06
"""Neighbouring forms are drawn so far to the left and right of their error, in units of the distance between errors."""

Key = tuple[str, str]
"""Form, or "all" of them, and placement."""


def draw_plan(plan: Plan, page: Page) -> Figure:
    """Parameters, a panel a layout, then anchors, against the error; dashed: the paper's anchors."""
    if len({row.within for row in plan.rows}) < 2:
        return draw_one_error(plan, page)
    layouts = list(dict.fromkeys(row.layout for row in plan.rows))
    figure, (*panels, last) = page.side_by_side(4.8 * (1 + len(layouts)), 6.2, [1.15] * len(layouts) + [1])
    for axes, layout in zip(panels, layouts, strict=True):
        _panel(axes, _series([row for row in plan.rows if row.layout == layout]), "parameters")
        only = len(layouts) == 1 and next(iter(plan.rows)).form == "head"
        style.heading(axes, "Parameters" if only else f"Parameters, {layout} layout")
    _panel(last, _anchors(plan), "anchors")
    limits = [axes.get_ylim() for axes in panels]
    for axes in panels:  # one scale: layouts can be compared
        axes.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
    for axes, label in (*((axes, "parameters") for axes in panels), (last, "anchors of one softmax, p")):
        axes.set_ylabel(label)
        axes.set_xlabel("error asked for")
    style.heading(last, "Anchors")
    title, note = heading_of(plan)
    style.title(figure, title)
    _legend(figure, plan, note)
    return figure


def _series(rows: Sequence[Row]) -> dict[Key, list[Row]]:
    """The rows of each form and placement."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault((row.form, row.placement), []).append(row)
    return found


def _anchors(plan: Plan) -> dict[Key, list[Row]]:
    """As many lines as differ: where all forms and layouts need the same, one stands for all of them."""
    found: dict[Key, list[Row]] = {}
    for placement in dict.fromkeys(row.placement for row in plan.rows):
        lines: dict[tuple, tuple[str, list[Row]]] = {}
        for layout in dict.fromkeys(row.layout for row in plan.rows):
            chosen = [row for row in plan.rows if row.placement == placement and row.layout == layout]
            for (form, _), rows in _series(chosen).items():
                numbers = tuple((row.within, row.anchors, row.reachable) for row in rows)
                lines.setdefault(numbers, (form, rows))
        alike = len(lines) == 1 and len({row.form for row in plan.rows}) > 1
        for form, rows in lines.values():
            found.setdefault(("all" if alike else form, placement), rows)
    return found


def _panel(axes: Axes, series: dict[Key, list[Row]], size: str) -> None:
    errors = sorted({row.within or 0.0 for rows in series.values() for row in rows}, reverse=True)
    forms = list(dict.fromkeys(form for form, _ in series))
    axes.set_xscale("log")
    axes.set_yscale("log")
    known = [getattr(row, size) for rows in series.values() for row in rows if getattr(row, size)]
    low, high = (min(known), max(known)) if known else (1, 10)
    lost = any(getattr(row, size) is None for rows in series.values() for row in rows)
    room = max(high / low, 10.0) ** (1.15 * STRIP / (1 - STRIP)) if lost else 1.0
    axes.set_ylim(low / 2.5, high * 2.5 * room)
    if lost:
        _strip(axes)
    for (form, placement), rows in series.items():
        move = _ratio(errors) ** (APART * (forms.index(form) - (len(forms) - 1) / 2))
        _line(axes, form, placement, rows, size, move)
    axes.set_xlim(errors[0] * _ratio(errors) ** 0.35, errors[-1] / _ratio(errors) ** 0.35)
    axes.grid(True)
    axes.minorticks_off()


def _strip(axes: Axes) -> None:
    """Where the marks of errors stand that are out of reach."""
    from matplotlib.patches import Rectangle

    look = {"facecolor": style.pale(), "alpha": 0.5, "linewidth": 0}
    axes.add_patch(Rectangle((0, 1 - STRIP), 1, STRIP, transform=axes.transAxes, **look))
    axes.text(
        0.015,
        1 - STRIP / 2,
        "out of reach",
        transform=axes.transAxes,
        va="center",
        fontsize=style.points(12),
        color=style.ink(),
    )


def _ratio(errors: Sequence[float]) -> float:
    """From an error to the next, on average."""
    return (errors[0] / errors[-1]) ** (1 / (len(errors) - 1)) if len(errors) > 1 else 10.0


def _line(axes: Axes, form: str, placement: str, rows: Sequence[Row], size: str, move: float) -> None:
    """A line through what is known; a cross in the strip at the top for each error that is out of reach."""
    colour = style.ink() if form == "all" else COLOURS[form]
    pt = style.points
    known = [row for row in rows if getattr(row, size) is not None]
    line = DASHED if placement == LATTICE else "-"
    x, y = [(row.within or 0.0) * move for row in known], [max(getattr(row, size), 1) for row in known]
    axes.plot(x, y, color=colour, linestyle=line, linewidth=pt(WIDTHS[form]))
    mark = {"marker": MARKERS[form], "linestyle": "", "color": colour, "markeredgewidth": pt(1.5)}
    for row, at, number in zip(known, x, y, strict=True):
        face = colour if row.reachable else style.paper()
        axes.plot([at], [number], markerfacecolor=face, markersize=pt(5.0 + 1.3 * WIDTHS[form]), **mark)
    lost = [(row.within or 0.0) * move for row in rows if getattr(row, size) is None]
    height = 1 - STRIP * (0.3 if placement == LATTICE else 0.7)
    axes.plot(
        lost,
        [height] * len(lost),
        transform=axes.get_xaxis_transform(),
        marker="x" if placement != LATTICE else "+",
        linestyle="",
        color=colour,
        markersize=pt(8),
        markeredgewidth=pt(2),
    )


def _legend(figure: Figure, plan: Plan, note: str) -> None:
    """What colours, marks and dashes stand for, said once, below all panels."""
    from matplotlib.lines import Line2D

    pt = style.points
    forms = dict.fromkeys(row.form for row in plan.rows)
    placements = {row.placement for row in plan.rows}
    handles = [
        Line2D([], [], color=COLOURS[form], linewidth=pt(WIDTHS[form]), marker=MARKERS[form], label=form)
        for form in forms
    ]
    if any(key[0] == "all" for key in _anchors(plan)):
        handles.append(Line2D([], [], color=style.ink(), marker="D", label="all forms and layouts alike"))
    grey = {"color": style.grey(), "markeredgewidth": pt(1.8), "markersize": pt(8)}
    if "solved" in placements:
        handles.append(Line2D([], [], color=style.grey(), label="solved anchors"))
    if LATTICE in placements:
        handles.append(Line2D([], [], color=style.grey(), linestyle=DASHED, label="the paper's even anchors"))
    if any(row.parameters is not None and not row.reachable for row in plan.rows):
        label = "not built: too many, or their rounding"
        handles.append(Line2D([], [], marker="o", linestyle="", markerfacecolor=style.paper(), label=label, **grey))
    for placement, mark, words in (("solved", "x", "solved"), (LATTICE, "+", "even")):
        if any(row.parameters is None and row.placement == placement for row in plan.rows):
            label = f"out of reach, {words} anchors"
            handles.append(Line2D([], [], marker=mark, linestyle="", label=label, **grey))
    columns = style.legend_columns([str(one.get_label()) for one in handles], 0.9 * figure.bbox.width / figure.dpi)
    legend = figure.legend(handles=handles, loc="outside lower left", ncols=columns, title=note, frameon=False)
    legend.set_alignment("left")
    legend.get_title().set(fontsize=pt(12), color=style.grey(), parse_math=False)
