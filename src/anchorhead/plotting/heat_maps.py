"""Attention weights as small multiples: a row a construction, a column a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from anchorhead.plotting import style

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


def draw_heat_maps(maps: HeatMaps) -> Figure:
    """Tokens upwards in the order of s, anchors to the right from a to b, heads side by side."""
    columns = max(len(row) for row in maps.rows.values())
    figure = style.figure(3.1 * columns + 1.6, 3.4 * len(maps.rows) + 1.3)
    panels = figure.subplots(len(maps.rows), columns, squeeze=False, sharey=True)
    image: Any = None
    for number, (name, row) in enumerate(maps.rows.items()):
        for axes, heat_map in zip(panels[number], row, strict=True):
            image = _panel(axes, maps.s, heat_map, top=number == 0)
        panels[number, 0].set_ylabel(f"{name}\ntoken, by its s = w·x + t")
    for axes in panels[-1]:
        axes.set_xlabel("anchor, by its value")
    bar = figure.colorbar(image, ax=panels, shrink=0.6, aspect=28, pad=0.015)
    bar.set_label("attention weight")
    bar.outline.set_visible(False)
    figure.suptitle(
        "Attention weights gather on the anchors nearest to s as the range [a, b] widens",
        fontweight="bold",
        fontsize=17,
        x=0.008,
        ha="left",
    )
    figure.supxlabel(
        "One sharpness β in each row. Heads stand side by side: a head rests on the end of its slice "
        "where s lies beyond it, and adds 0 there unless that is a or b.",
        fontsize=12,
        color=style.GREY,
        x=0.008,
        ha="left",
    )
    return figure


def _panel(axes: Axes, s: np.ndarray, heat_map: HeatMap, top: bool) -> Any:
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
        axes.axvline(head * anchors - 0.5, color=style.ORANGE, linewidth=1.6)
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
    width = f"|b − a| = {heat_map.high - heat_map.low:g}" if top else ""
    style.title(axes, width, f"c = {heat_map.c:.2g}, error ≤ {heat_map.bound:.2g}")
    return image
