"""One look for all pictures: colours that colour-blind readers tell apart, and sizes that survive halving."""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anchorhead.decimals import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Okabe and Ito's palette
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
GREY, PALE = "#6B6B6B", "#DADADA"
FONT = 13.0
"""Points of plain words in a picture as designed; all numbers that go through `points` are for this size."""
SCREEN, FILE = 100, 160
"""Dots per inch on a screen, and in a file."""
SIGN, BOLD_SIGN = 0.56, 0.64
"""Widths of signs, in units of their size: about the average of words."""
UNBROKEN = "\N{NO-BREAK SPACE}"
LINE = 1.32
"""From one line of words to the next, in units of their size."""


def parameters(font: float) -> dict[str, Any]:
    """Settings for plain words of so many points."""
    share = font / FONT
    return {
        "font.size": font,
        "axes.titlesize": 14 * share,
        "axes.titlelocation": "left",
        "axes.labelsize": font,
        "axes.edgecolor": GREY,
        "axes.linewidth": 0.9 * share,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.labelpad": 4 * share,
        "xtick.labelsize": 12 * share,
        "ytick.labelsize": 12 * share,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.labelcolor": "black",
        "ytick.labelcolor": "black",
        "xtick.major.size": 3.5 * share,
        "ytick.major.size": 3.5 * share,
        "xtick.major.pad": 3.5 * share,
        "ytick.major.pad": 3.5 * share,
        "grid.color": PALE,
        "grid.linewidth": 0.8 * share,
        "legend.fontsize": 12 * share,
        "legend.framealpha": 0.85,
        "lines.linewidth": 2.2 * share,
        "lines.markersize": 7.5 * share,
        "lines.solid_capstyle": "round",
        "figure.dpi": SCREEN,
        "savefig.dpi": FILE,
        "svg.hashsalt": "anchorhead",
    }


def points(number: float) -> float:
    """Points at the size of words that is set, for a number that is right where they have FONT points."""
    from matplotlib import rcParams

    return number * rcParams["font.size"] / FONT


def ink() -> str:
    """The colour of words: black, unless a style says otherwise."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def paper() -> str:
    """The colour behind: white, unless a style says otherwise."""
    from matplotlib import rcParams

    return rcParams["axes.facecolor"]


def grey() -> str:
    """For notes and marks that stand back."""
    return GREY if ink() == "black" else _mixed(0.62)


def pale() -> str:
    """For broad lines and bands behind others."""
    return PALE if ink() == "black" else _mixed(0.35)


def _mixed(share: float) -> str:
    """So much of the colour of words, the rest of what is behind them."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = (share * a + (1 - share) * b for a, b in zip(to_rgb(ink()), to_rgb(paper()), strict=True))
    return to_hex((red, green, blue))


def is_dark() -> bool:
    from matplotlib.colors import to_rgb

    return sum(to_rgb(paper())) < 1.5


def series() -> tuple[str, ...]:
    """Colours of lines that stand beside each other: ours, or those of the user's own cycle."""
    from matplotlib import rcParams, rcParamsDefault

    cycle = rcParams["axes.prop_cycle"]
    own = cycle.by_key().get("color", []) if cycle != rcParamsDefault["axes.prop_cycle"] else []
    return tuple(own) * (1 + len(SERIES) // len(own)) if own else SERIES


def weights_map() -> Colormap:
    """From white (no weight) through blue to almost black (all of it): lightness falls evenly."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("weights", ["#FFFFFF", "#BFE0F5", SKY, BLUE, "#00263F"])


@dataclass(frozen=True, eq=False)
class Heading:
    """Above axes, from top to bottom: words in bold, a note in grey, and what lines and marks stand for.

    Nothing of it can stand on what is drawn; long ones are broken into lines. A legend lists what there is when the
    heading is written.
    """

    axes: Axes
    text: str = ""
    note: str = ""
    legend: bool = False

    @property
    def width(self) -> float:
        """About how many inches there will be for it, once the figure is laid out."""
        place, figure = self.axes.get_subplotspec(), self.axes.get_figure()
        columns = 1 if place is None else place.get_gridspec().ncols
        share = self.axes.get_position().width * 1.08 * (columns + 0.2 * (columns - 1)) / columns
        return share * figure.bbox.width / figure.dpi  # type: ignore[union-attr]


def headings(*given: Heading) -> None:
    """Headings of panels side by side: their words begin at the same height."""
    below = [points(5) + (_legend_above(one.axes, one.width) if one.legend else 0.0) for one in given]
    notes = [wrapped(one.note, one.width, points(12)) if one.note else [] for one in given]
    line = points(12) * LINE
    top = max(start + line * len(note) + points(3) * bool(note) for start, note in zip(below, notes, strict=True))
    for one, note in zip(given, notes, strict=True):
        if note:
            words = one.axes.annotate(
                "\n".join(note),
                (0, 1),
                (0, top - points(3) if one.text else line * len(note)),
                xycoords="axes fraction",
                textcoords="offset points",
                va="top",
                color=grey(),
                fontsize=points(12),
                linespacing=LINE,
                parse_math=False,
            )
            words.set_in_layout(not one.text)
        if one.text:
            lines = "\n".join(wrapped(one.text, one.width, _title_size(), BOLD_SIGN))
            one.axes.set_title(lines, loc="left", fontweight="bold", pad=top, va="bottom", parse_math=False)


def _title_size() -> float:
    """Points of titles, which a style may say in words."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=rcParams["axes.titlesize"]).get_size_in_points())


def heading(axes: Axes, text: str, note: str = "", legend: bool = False) -> None:
    headings(Heading(axes, text, note, legend))


def _legend_above(axes: Axes, width: float) -> float:
    """Draws it in as many columns as fit, and returns the points that it takes."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return 0.0
    size = points(12)
    columns = legend_columns(labels, width)
    rows = math.ceil(len(labels) / columns)
    axes.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=size,
        borderpad=0.0,
        borderaxespad=0.35,
        handlelength=1.8,
        columnspacing=1.4,
        labelspacing=0.3,
    )
    return size * (1.35 * rows + 0.35)


def legend_columns(labels: list[str], inches: float) -> int:
    """In how many columns a legend fits into a width."""
    for count in range(len(labels), 1, -1):
        split = [labels[start : start + size] for start, size in _split(len(labels), count)]
        if sum(SIGN * max(map(len, column)) + 4.2 for column in split) * points(12) <= 72 * inches:
            return count
    return 1


def _split(count: int, columns: int) -> list[tuple[int, int]]:
    """Where columns begin, and how many entries they have: as matplotlib fills them, the first ones being longer."""
    sizes = [count // columns + (place < count % columns) for place in range(columns)]
    return [(sum(sizes[:place]), size) for place, size in enumerate(sizes)]


def wrapped(text: str, inches: float, size: float, sign: float = SIGN) -> list[str]:
    """Lines of words of so many points that are at most so many inches long; signs that cannot be seen are replaced."""
    plain = "".join(one if one.isprintable() or one == UNBROKEN else "\N{REPLACEMENT CHARACTER}" for one in minus(text))
    return textwrap.wrap(plain, max(12, int(inches * 72 / (size * sign)))) or [""]


def whole_numbers(axis: Axis, bins: int = 8) -> None:
    """Ticks of an axis that counts."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(bins, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda x, _: minus(f"{x:,.0f}")))


def in_powers(axis: Axis, largest: float) -> str:
    """Writes ticks in units of a power of ten where that is shorter, and returns the unit for the axis' label."""
    from matplotlib.ticker import FuncFormatter

    power = 0 if not 0 < largest < math.inf else math.floor(math.log10(largest))
    if -2 <= power <= 3:
        return ""
    axis.set_major_formatter(FuncFormatter(lambda x, _: minus(f"{x / 10.0**power:.10g}")))
    return f" / {ten_to(power)}"


def ten_to(power: int) -> str:
    """10⁻⁷."""
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def title(figure: Figure, text: str, note: str = "") -> None:
    """A heading over all panels."""
    inches = figure.bbox.width / figure.dpi
    lines = wrapped(text, inches, points(15), BOLD_SIGN)
    figure.suptitle(
        "\n".join(lines), fontweight="bold", fontsize=points(15), x=0.01, ha="left", color=ink(), parse_math=False
    )
    if note:
        words = "\n".join(wrapped(note, inches, points(12)))
        figure.supxlabel(words, fontsize=points(12), color=grey(), x=0.01, ha="left", parse_math=False)


def label(name: str, most: int) -> str:
    """A name in a legend: short, and no formula, whatever signs it holds."""
    return shortened(name, most).replace("$", r"\$")


def minus(text: str) -> str:
    """The text with true minus signs, in front of numbers and between terms."""
    return re.sub(r"(?<!\w)-(?=[\d.])|(?<= )-(?= )", "−", text)
