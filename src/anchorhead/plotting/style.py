"""One look for all pictures: colours that colour-blind readers tell apart, and sizes that survive halving."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Okabe and Ito's palette
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
GREY, PALE = "#6B6B6B", "#DADADA"
DPI = 160
LONGEST_NOTE = 90

PARAMETERS: dict[Any, Any] = {
    "font.size": 13,
    "font.family": "sans-serif",
    "axes.titlesize": 14,
    "axes.titlelocation": "left",
    "axes.labelsize": 13,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": BLACK,
    "ytick.labelcolor": BLACK,
    "grid.color": PALE,
    "grid.linewidth": 0.8,
    "legend.fontsize": 12,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "white",
    "lines.linewidth": 2.2,
    "lines.markersize": 7.5,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "anchorhead",
}


def figure(width: float, height: float) -> Figure:
    """A figure of its own, in inches, that lays itself out; pyplot is not involved."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(made)
    return made


def weights_map() -> Colormap:
    """From white (no weight) through blue to almost black (all of it): lightness falls evenly."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("weights", ["#FFFFFF", "#BFE0F5", SKY, BLUE, "#00263F"])


def title(axes: Axes, text: str, note: str = "") -> None:
    """A heading, and below it in grey what a reader needs to know; a long note is cut, and pushes nothing aside."""
    note = minus(shortened(note, LONGEST_NOTE))
    if not text:
        # an annotation takes no room in the layout: without a heading above, it would stand on the panel above
        axes.set_title(note, color=GREY, fontsize=12, pad=8)
        return
    axes.set_title(minus(text), fontweight="bold", pad=26 if note else 8)
    if note:
        words = axes.annotate(
            note,
            (0, 1),
            (0, 8),
            xycoords="axes fraction",
            textcoords="offset points",
            color=GREY,
            fontsize=12,
        )
        words.set_in_layout(False)


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def minus(text: str) -> str:
    """The text with a true minus sign in front of its negative numbers."""
    return re.sub(r"(?<!\w)-(?=[\d.])", "−", text)
