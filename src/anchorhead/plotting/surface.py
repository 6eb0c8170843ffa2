"""A function of two variables as attention: what the network computes, and its error, over the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.decimals import shortened
from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.plotting.page import Page
from anchorhead.plotting.several import SeveralTarget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 220


def draw_surface(network: Network, target: SeveralTarget, page: Page) -> Figure:
    """The first output over the box on the left; on the right network - target, on a scale that ends at the bound."""
    from matplotlib.colors import LinearSegmentedColormap

    low, high = target.box
    x, y = (np.linspace(a, b, SIDE) for a, b in zip(low, high, strict=True))
    points = np.stack(np.meshgrid(x, y, indexing="xy"), axis=-1).reshape(-1, 2)
    points = np.clip(points, low, high).astype(network.dtype)
    computed = network(points, outside="ignore")[:, 0].astype(np.float64).reshape(SIDE, SIDE)
    exact = target.values(points)[:, 0].astype(np.float64).reshape(SIDE, SIDE)
    certificate = target.certificate
    bound = certificate.bound
    figure, (left, right) = page.side_by_side(12.0, 6.0, (1, 1))
    extent = (x[0], x[-1], y[0], y[-1])
    shared = {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": "bilinear"}
    shown = left.imshow(computed, cmap="cividis", **shared)
    if np.ptp(exact) > 0:
        left.contour(x, y, exact, levels=9, colors="white", linewidths=style.points(0.8), alpha=0.8)
    figure.colorbar(shown, ax=left, label="output", pad=0.02)
    diverging = LinearSegmentedColormap.from_list("error", [style.BLUE, "#FFFFFF", style.VERMILLION])
    scale = bound or 1.0
    error = right.imshow(computed - exact, cmap=diverging, vmin=-scale, vmax=scale, **shared)
    bar = figure.colorbar(error, ax=right, pad=0.02, ticks=scale * np.linspace(-1, 1, 5))
    power = int(np.floor(np.log10(scale)))
    bar.set_ticklabels([style.minus(f"{share * scale / 10.0**power:.2f}") for share in np.linspace(-1, 1, 5)])
    bar.set_label(f"network − target, in {style.ten_to(power)}")
    for axes in (left, right):
        axes.set_xlabel(style.minus(target.names[0]))
        axes.set_ylabel(style.minus(target.names[1]))
        axes.grid(False)
    more = "" if target.outputs == 1 else f", the first of {target.outputs} outputs"
    style.title(figure, f"{shortened(target.text, 110)}{more}")
    lines = f"white lines: level lines of the function itself; {network.dtype}"
    found = f"largest here {np.abs(computed - exact).max():.3g}; the scale ends at what is {certificate.kind}"
    page.write([style.Heading(left, "The network", lines), style.Heading(right, "Its error", f"{found}, {bound:.3g}")])
    return figure
