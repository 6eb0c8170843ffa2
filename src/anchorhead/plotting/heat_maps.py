"""Attention weights as small multiples: a row a construction, a column a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from anchorhead.as_html import block, table
from anchorhead.plotting import style
from anchorhead.plotting.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class HeatMap:
    """The attention weights of one network at one input.

    low, high  the range [a, b]
    weights    how much each token attends to each anchor, head by head
    c          the sharpness, for anchors one apart
    bound      the proven bound of the network
    """

    low: float
    high: float
    weights: Float[np.ndarray, "heads tokens anchors"]
    c: float
    bound: float


@dataclass(frozen=True, eq=False)
class HeatMaps:
    """Rows of heat maps by the name of their construction; token i of all has the pre-activation s[i]."""

    s: Float[np.ndarray, " tokens"]
    rows: dict[str, tuple[HeatMap, ...]]

    def _repr_html_(self) -> str:
        rows = [
            (
                name,
                f"[{one.low:g}, {one.high:g}]",
                " × ".join(map(str, one.weights.shape)),
                f"{one.c:.3g}",
                f"{one.bound:.3g}",
            )
            for name, maps in self.rows.items()
            for one in maps
        ]
        heads = ("construction", "range", "heads × tokens × anchors", "c", "error, proven")
        return block("Attention weights of both constructions at one input", table(heads, rows))


def draw_heat_maps(maps: HeatMaps, page: Page) -> Figure:
    """Tokens upwards in the order of s, anchors to the right from a to b, heads side by side.

    A row a construction and a column a range; in a narrow picture the other way round.
    """
    across, down = max(len(row) for row in maps.rows.values()), len(maps.rows)
    if page.narrow:
        across, down = down, across
    figure = page.figure(3.1 * across + 1.8, 3.4 * down + 2.0)
    panels = figure.subplots(down, across, squeeze=False, sharey=True)
    image: Any = None
    for number, (name, row) in enumerate(maps.rows.items()):
        for place, heat_map in enumerate(row):
            axes = panels[place, number] if page.narrow else panels[number, place]
            image = _panel(axes, maps.s, heat_map, _title(name, heat_map, number, place, page.narrow))
        if not page.narrow:
            panels[number, 0].set_ylabel(f"{name}\ntoken, by its s = w·x + t")
    if page.narrow:
        figure.supylabel("token, by its s = w·x + t", fontsize=style.points(style.FONT))
    for axes in panels[-1]:
        axes.set_xlabel("anchor, by its value")
    bar = figure.colorbar(image, ax=panels, **_bar(page.narrow))
    bar.set_label("share of a token's attention: white none, dark all of it")
    bar.outline.set_visible(False)
    style.title(figure, "Attention weights gather on the anchors nearest to s as the range [a, b] widens", NOTE)
    return figure


NOTE = (
    "Each row of cells is a token, each column an anchor. One sharpness β for each construction. Heads stand side by "
    "side, orange lines between them: a head rests on the end of its slice where s lies beyond it, and adds 0 there "
    "unless that is a or b."
)


def _bar(narrow: bool) -> dict[str, Any]:
    if narrow:
        return {"location": "bottom", "shrink": 0.9, "aspect": 30, "pad": 0.02}
    return {"shrink": 0.8, "aspect": 34, "pad": 0.015}


def _title(name: str, heat_map: HeatMap, number: int, place: int, narrow: bool) -> str:
    """Said once for each row and column: the construction, the width of the range."""
    width = f"|b − a| = {heat_map.high - heat_map.low:g}".replace(" ", style.UNBROKEN)
    if not narrow:
        return width if number == 0 else ""
    return f"{name}, {width}"


def _panel(axes: Axes, s: np.ndarray, heat_map: HeatMap, title: str) -> Any:
    heads, tokens, anchors = heat_map.weights.shape
    side_by_side = np.concatenate(list(heat_map.weights), axis=1)
    image = axes.imshow(
        side_by_side,
        cmap=style.weights_map(),
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
        origin="lower",
    )
    for head in range(1, heads):
        axes.axvline(head * anchors - 0.5, color=style.ORANGE, linewidth=style.points(1.6))
    rows = np.linspace(0, tokens - 1, 5)
    axes.set_yticks(rows, [style.minus(f"{value:.2g}") for value in np.interp(rows, np.arange(tokens), s)])
    ends = [-0.5, (heads * anchors - 1) / 2, heads * anchors - 0.5]
    middle = (heat_map.low + heat_map.high) / 2
    axes.set_xticks(ends, [style.minus(f"{value:g}") for value in (heat_map.low, middle, heat_map.high)])
    for label, side in zip(axes.get_xticklabels(), ("left", "center", "right"), strict=True):
        label.set_horizontalalignment(side)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(True)
    style.heading(axes, title, f"c = {heat_map.c:.2g}, error ≤ {heat_map.bound:.2g}")
    return image
