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
    """Tokens downwards in the order of s, anchors to the right from a to b, heads side by side."""
    columns = max(len(row) for row in maps.rows.values())
    figure = style.figure(3.1 * columns + 1.6, 3.6 * len(maps.rows) + 0.5)
    panels = figure.subplots(len(maps.rows), columns, squeeze=False, sharey=True)
    image: Any = None
    for line, (name, row) in zip(panels, maps.rows.items(), strict=True):
        for axes, heat_map in zip(line, row, strict=True):
            image = _panel(axes, maps.s, heat_map)
        line[0].set_ylabel(f"{name}\ntoken, by its s = w·x + t")
        for axes in line:
            axes.set_xlabel("anchor, by its value")
    bar = figure.colorbar(image, ax=panels, shrink=0.6, aspect=28, pad=0.015)
    bar.set_label("attention weight")
    bar.outline.set_visible(False)
    figure.suptitle(
        "Attention weights gather on the anchors nearest to s as the range |b − a| widens",
        fontweight="bold",
        x=0.01,
        ha="left",
    )
    return figure


def _panel(axes: Axes, s: np.ndarray, heat_map: HeatMap) -> Any:
    heads, tokens, anchors = heat_map.weights.shape
    side_by_side = np.concatenate(list(heat_map.weights), axis=1)
    image = axes.imshow(
        side_by_side, cmap=style.weights_map(), vmin=0, vmax=1, aspect="auto", interpolation="nearest", origin="lower"
    )
    for head in range(1, heads):
        axes.axvline(head * anchors - 0.5, color=style.VERMILLION, linewidth=1.4)
    rows = np.linspace(0, tokens - 1, 5)
    axes.set_yticks(rows, [f"{value:.2g}".replace("-", "−") for value in np.interp(rows, np.arange(tokens), s)])
    ends = [0, (heads * anchors - 1) / 2, heads * anchors - 1]
    middle = (heat_map.low + heat_map.high) / 2
    axes.set_xticks(ends, [f"{value:g}".replace("-", "−") for value in (heat_map.low, middle, heat_map.high)])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(True)
    style.title(axes, f"|b − a| = {heat_map.high - heat_map.low:g}", f"c = {heat_map.c:.2g}, error ≤ {heat_map.bound:.2g}")
    return image
