"""A figure that keeps its look whenever it is drawn, and shows itself in notebooks."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# without a date, the same picture is the same file
UNDATED: dict[str, dict[str, Any]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


class Picture(Figure):
    """A plain matplotlib figure, to be changed at will; pyplot does not know of it, so nothing has to be closed.

    Ticks and grids are made when a figure is drawn, from the settings of that moment: `look` is set again then.
    """

    def __init__(self, inches: tuple[float, float], look: Any) -> None:
        self.look = look
        with rc_context(look):
            super().__init__(figsize=inches, layout="constrained")
        FigureCanvasAgg(self)

    def draw(self, renderer: Any) -> None:
        with rc_context(self.look):
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        """What a notebook shows where no backend of matplotlib has said how to."""
        return rendered(self, ".png", self.dpi)


def rendered(figure: Figure, suffix: str, dpi: float | None = None) -> bytes:
    """The content of a file with the figure; without dpi, as many dots per inch as files have."""
    content = io.BytesIO()
    with rc_context(figure.look if isinstance(figure, Picture) else {}):
        figure.savefig(content, format=suffix[1:], dpi=dpi, metadata=UNDATED[suffix])
    return content.getvalue()
