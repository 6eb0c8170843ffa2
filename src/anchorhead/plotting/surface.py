"""A function of two variables as attention: what the network computes, and its error, over the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.plotting.several import SeveralTarget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 220


def draw_surface(network: Network, target: SeveralTarget) -> Figure:
    """The first output over the box on the left; on the right network - target, on a scale that ends at the bound."""
    from matplotlib.colors import LinearSegmentedColormap

    low, high = target.box
    x, y = (np.linspace(a, b, SIDE) for a, b in zip(low, high, strict=True))
    points = np.stack(np.meshgrid(x, y, indexing="xy"), axis=-1).reshape(-1, 2)
    points = np.clip(points, low, high).astype(network.dtype)
    computed = network(points, outside="ignore")[:, 0].astype(np.float64).reshape(SIDE, SIDE)
    exact = target.values(points)[:, 0].astype(np.float64).reshape(SIDE, SIDE)
    bound = target.certificate.bound
    figure = style.figure(12.0, 5.4)
    left, right = figure.subplots(1, 2)
    extent = (x[0], x[-1], y[0], y[-1])
    shared = {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": "bilinear"}
    shown = left.imshow(computed, cmap="cividis", **shared)
    left.contour(x, y, exact, levels=9, colors="white", linewidths=0.8, alpha=0.8)
    figure.colorbar(shown, ax=left, label="network (contours: target)")
    diverging = LinearSegmentedColormap.from_list("error", [style.BLUE, "#FFFFFF", style.VERMILLION])
    error = right.imshow(computed - exact, cmap=diverging, vmin=-bound, vmax=bound, **shared)
    figure.colorbar(error, ax=right, label=f"network − target; ends: {target.certificate.kind} {bound:.3g}")
    for axes in (left, right):
        axes.set_xlabel(target.names[0])
        axes.set_ylabel(target.names[1])
    more = "" if target.outputs == 1 else f", the first of {target.outputs} outputs"
    heading = f"{target.text}{more}, {network.dtype}"
    figure.suptitle(style.minus(heading), x=0.01, horizontalalignment="left", fontsize=12, color=style.GREY)
    style.title(left, "A function as attention")
    style.title(right, f"Error: largest here {np.abs(computed - exact).max():.3g}")
    return figure
