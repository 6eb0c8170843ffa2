"""A plan: how parameters and anchors grow as the error asked for shrinks, for the paper's placement and for ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchorhead.constructions.plan import Plan, Row
from anchorhead.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "two-layer": style.BLUE,
    "attention-softmax": style.VERMILLION,
    "deep": style.GREEN,
    "head": style.BLUE,
    "all": style.BLACK,
}
WIDTHS = {"two-layer": 3.6, "attention-softmax": 2.2, "deep": 1.3, "head": 2.2, "all": 2.2}
"""Lines that coincide can all be seen: the later the narrower."""
MARKERS = {"transformer": "o", "sequence": "s", "all": "D"}
DASHED = (0, (4.0, 2.2))
LATTICE = "uniform"


def draw_plan(plan: Plan) -> Figure:
    """Parameters on the left, anchors a softmax on the right, against the error; dashed: the paper's anchors."""
    figure = style.figure(13.6, 6.6)
    left, right = figure.subplots(1, 2, width_ratios=[1.45, 1])
    for key, rows in _series(plan).items():
        _line(left, key, [(row.within, row.parameters) for row in rows], [row.reachable for row in rows])
    for key, rows in _anchors(plan).items():
        _line(right, key, [(row.within, row.anchors) for row in rows], [row.reachable for row in rows])
    for axes, label in ((left, "parameters"), (right, "anchors of one softmax, p")):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.invert_xaxis()
        axes.grid(True)
        axes.minorticks_off()
        axes.set_xlabel("error asked for, sup norm, rounding included")
        axes.set_ylabel(label)
        if not axes.has_data():
            axes.text(0.5, 0.5, "nothing reaches\nthese errors", ha="center", va="center", transform=axes.transAxes)
    told = f"{f'for {plan.where}' if plan.where else f'on {plan.on}'}, in {plan.dtype}: sizes before building"
    style.title(left, _short(plan.target, plain=bool(plan.where)), _short(told, 90, plain=True))
    style.title(right, "Anchors", "hollow: not built, for their number or their rounding")
    _legend(figure, plan)
    return figure


Key = tuple[str, str, str]


def _series(plan: Plan) -> dict[Key, list[Row]]:
    """The rows of each form, layout and placement whose sizes are known."""
    found: dict[Key, list[Row]] = {}
    for row in plan.rows:
        if row.parameters is not None:
            found.setdefault((row.form, row.layout, row.placement), []).append(row)
    return found


def _anchors(plan: Plan) -> dict[Key, list[Row]]:
    """The same for anchors; where all forms and layouts need as many, one black line stands for them."""
    found = _series(plan)
    for placement in dict.fromkeys(key[2] for key in found):
        same = [key for key in found if key[2] == placement]
        lines = {tuple((row.within, row.anchors, row.reachable) for row in found[key]) for key in same}
        if len(lines) == 1 and len(same) > 1:
            alike = [found.pop(key) for key in same]
            found["all", "all", placement] = alike[0]
    return found


def _line(axes: Axes, key: Key, points: list[tuple[float, int | None]], reachable: list[bool]) -> None:
    form, layout, placement = key
    colour, x = COLOURS[form], [point[0] for point in points]
    y = [max(point[1] or 1, 1) for point in points]
    line = DASHED if placement == LATTICE else "-"
    axes.plot(x, y, color=colour, linestyle=line, linewidth=WIDTHS[form])
    for at, size, built in zip(x, y, reachable, strict=True):
        face = colour if built else "white"
        size_of_mark = 5.0 + 1.3 * WIDTHS[form]
        axes.plot(
            [at],
            [size],
            MARKERS[layout],
            color=colour,
            markerfacecolor=face,
            markeredgewidth=1.5,
            markersize=size_of_mark,
        )


def _legend(figure: Figure, plan: Plan) -> None:
    """What colours, marks and dashes stand for, said once."""
    from matplotlib.lines import Line2D

    forms = dict.fromkeys(row.form for row in plan.rows)
    layouts = dict.fromkeys(row.layout for row in plan.rows)
    handles = [Line2D([], [], color=COLOURS[form], linewidth=4, label=form) for form in forms]
    handles += [
        Line2D([], [], color=style.GREY, marker=MARKERS[layout], linestyle="", label=f"{layout} layout")
        for layout in layouts
    ]
    handles += [
        Line2D([], [], color=style.GREY, linestyle=DASHED, label="the paper's even anchors"),
        Line2D([], [], color=style.GREY, label="solved anchors"),
    ]
    if any(key[0] == "all" for key in _anchors(plan)):
        handles.append(Line2D([], [], color=style.BLACK, marker="D", label="all of them alike"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)


def _short(text: str, most: int = 60, plain: bool = False) -> str:
    text = text if plain else text[:1].upper() + text[1:].replace("->", "→")
    return style.shortened(text, most)
