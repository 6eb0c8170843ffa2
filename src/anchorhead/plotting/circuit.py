"""A network as a circuit: a lane for each token, a band for each layer, what heads do, and attention for an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.plotting.circuit_drawing import Drawing
from anchorhead.plotting.circuit_view import Circuit
from anchorhead.plotting.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = 8.4
SHRINKS = (0.7, 0.8, 0.9, 1.0, 1.2, 1.45, 1.75, 2.1, 2.6, 3.2, 4.0, 5.0, 6.5, 8.0)
"""How many times smaller words become, from large on, until all of it fits."""


def draw_circuit(network: Network, x: Any, page: Page) -> Figure:
    """As high as it needs to be, or, where the height is given, with words as small as they need to be."""
    circuit = Circuit.of(network, x)
    width = page.width or WIDE
    drawing = Drawing(circuit, width, 1.0)
    height = drawing.height
    if page.height is not None:
        drawing = _fitted(circuit, width, page.height)
        height = page.height
    figure = page.figure(width, height) if page.height else page.figure(width, height * style.FONT / page.font)
    figure.set_layout_engine("none")
    drawing.draw(figure.add_axes((0, 0, 1, 1)), width, height)
    return figure


def draw_circuit_on(axes: Axes, network: Network, x: Any) -> None:
    """Into axes that are there, with words as small as they need to be."""
    figure: Any = axes.get_figure()
    box = axes.get_position()
    dots = figure.bbox
    width, height = box.width * dots.width / figure.dpi, box.height * dots.height / figure.dpi
    _fitted(Circuit.of(network, x), width, height).draw(axes, width, height)


def _fitted(circuit: Circuit, width: float, height: float) -> Drawing:
    drawings = [Drawing(circuit, width, shrink) for shrink in SHRINKS]
    return next((one for one in drawings if one.height <= height), drawings[-1])
