"""How large a picture is to be, and whose style it has: ours, save for what the user has changed in matplotlib's.

A setting of matplotlib's (`rcParams`, a style sheet, a matplotlibrc) that differs from its own default wins over ours:
`with matplotlib.pyplot.style.context("dark_background"): ah.plot(net)`, or `matplotlib.rcParams["font.size"] = 9`.
All widths of lines and sizes of marks and words follow `font.size`. With `ax=` nothing of ours is set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Size = Literal["column", "slide"] | tuple[float, float]
COLUMN, SLIDE = 3.5, (13.333, 7.5)
"""Inches: the width of a column of a journal, and a slide of 16:9."""
MIN_SIDE, MAX_SIDE = 1.0, 100.0
"""Inches that a side may have."""
NARROW = 5.0
"""Below, panels stand one above the other."""
FONTS = ((COLUMN, 8.0), (8.4, style.FONT), (SLIDE[0], 16.0))
"""Widths in inches, and the points of the words at that width."""


@dataclass(frozen=True)
class Page:
    """width and height in inches; None: as the picture is designed."""

    width: float | None = None
    height: float | None = None

    @classmethod
    def of(cls, size: Any) -> Page:
        """From what a user gives as size="column", "slide" or (width, height)."""
        if size is None:
            return cls()
        if size == "column":
            return cls(COLUMN)
        if size == "slide":
            return cls(*SLIDE)
        try:
            sides = [] if isinstance(size, str) else [float(side) for side in size]
        except (TypeError, ValueError):
            sides = []
        if len(sides) != 2 or not all(math.isfinite(side) and MIN_SIDE <= side <= MAX_SIDE for side in sides):
            raise AnchorheadError(
                f'size={size!r} of a picture: "column", "slide", or (width, height) in inches, '
                f"{MIN_SIDE:g} to {MAX_SIDE:g}"
            )
        return cls(*sides)

    @property
    def narrow(self) -> bool:
        return self.width is not None and self.width < NARROW

    @property
    def font(self) -> float:
        """Points of plain words."""
        if self.width is None:
            return style.FONT
        widths, fonts = zip(*FONTS, strict=True)
        return float(np.interp(self.width, widths, fonts))

    def look(self) -> Any:
        """What is set while a picture is drawn: ours, save for what the user has changed."""
        from matplotlib import rcParams, rcParamsDefault

        now: Any = rcParams
        default: Any = rcParamsDefault

        def changed(name: str) -> bool:
            return now[name] != default[name]

        font = float(now["font.size"]) if changed("font.size") else self.font
        ours = style.parameters(font)
        for side in ("xtick", "ytick"):
            if changed(f"{side}.color") or changed("text.color"):
                ours.pop(f"{side}.labelcolor")
        return {name: now[name] if changed(name) else value for name, value in ours.items()}

    def figure(self, wide: float, high: float) -> Figure:
        """A figure of its own, which pyplot does not know of; `wide` and `high` are inches of the picture as designed.

        A column is as high as its smaller words make it.
        """
        from anchorhead.plotting.figure import Picture

        width = self.width or wide
        height = self.height or (high if self.width is None else high * self.font / style.FONT)
        return Picture((width, height), self.look())

    def side_by_side(self, wide: float, high: float, ratios: Sequence[float]) -> tuple[Figure, list[Axes]]:
        """A figure with a panel for each ratio of widths; in a column they stand one above the other."""
        if not self.narrow:
            figure = self.figure(wide, high)
            return figure, list(figure.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)[0])
        figure = self.figure(wide, high * 0.9 * len(ratios))
        return figure, list(figure.subplots(len(ratios), 1, squeeze=False)[:, 0])

    def write(self, headings: Sequence[style.Heading]) -> None:
        """The headings of panels that `side_by_side` made."""
        for group in ([one] for one in headings) if self.narrow else [headings]:
            style.headings(*group)
