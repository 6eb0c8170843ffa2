"""From a thing to a figure, and to a file with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anchorhead.constructions.planning.plan import Plan
from anchorhead.constructions.single.certified_head import Head
from anchorhead.disk import check_picture_path, write_atomically
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_word
from anchorhead.incontext.estimators.path import CoefficientPath
from anchorhead.incontext.trace import Trace
from anchorhead.network import Network
from anchorhead.plotting.circuit import draw_circuit, draw_circuit_on
from anchorhead.plotting.coefficients import draw_coefficients
from anchorhead.plotting.converted import draw_converted
from anchorhead.plotting.frontier import Frontier, draw_frontier
from anchorhead.plotting.head import draw_head
from anchorhead.plotting.heat_maps import HeatMaps, draw_heat_maps
from anchorhead.plotting.network import draw_network
from anchorhead.plotting.page import Page, Size
from anchorhead.plotting.plan import draw_plan
from anchorhead.plotting.several import OF_SEVERAL
from anchorhead.plotting.sweep import Sweep, draw_sweep, draw_sweep_on
from anchorhead.plotting.trace import draw_trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

View = Literal["function", "circuit"]
VIEWS: tuple[View, ...] = ("function", "circuit")
DRAWN: dict[type, Callable[[Any, Page], Any]] = {
    Frontier: draw_frontier,
    Sweep: draw_sweep,
    HeatMaps: draw_heat_maps,
    Plan: draw_plan,
    Trace: draw_trace,
    CoefficientPath: draw_coefficients,
}


def plot(
    thing: Any,
    path: str | Path | None = None,
    function: Callable[..., Any] | None = None,
    *,
    kind: View | None = None,
    x: Any = None,
    ax: Axes | None = None,
    size: Size | None = None,
) -> Figure:
    """A figure of a head, a network, a plan, a frontier, a sweep, heat maps, a learner's trace or coefficients.

    path       saves it as well: .png, .svg or .pdf
    function   of a network that approximates a callable of several variables: the callable, which is not kept in it
    kind       of a head or a network: "function", what it computes beside what it should, and the error; "circuit", its
               tokens, layers and heads with their labels. By default the function, where the network says which
    x          one input: the circuit with the attention weights of each head for it
    ax         draws into these axes, which circuits and sweeps can
    size       "column" for a paper, "slide", or (width, height) in inches; words and lines follow

    The figure is a matplotlib.figure.Figure that pyplot does not know of: notebooks show it, nothing has to be closed.
    What the user changed in matplotlib's rcParams, or a style sheet changes, holds for it.

    returns    the figure

        >>> figure = ah.plot(ah.head("gelu", on=(-10, 10), within=1e-6), "gelu.png")
    """
    if path is not None:
        check_picture_path(path)
    if kind is not None:
        checked_word("kind", kind, VIEWS)
    page = Page.of(size)
    if ax is not None:
        figure = _drawn_on(ax, thing, kind, x, size)
    else:
        from matplotlib import rc_context

        with rc_context(page.look()):
            figure = _drawn(thing, function, kind, x, page)
    if path is not None:
        from anchorhead.plotting.figure import rendered

        write_atomically(path, rendered(figure, Path(path).suffix.lower()))
    return figure


def _drawn(thing: Any, function: Callable[..., Any] | None, kind: View | None, x: Any, page: Page) -> Figure:
    if isinstance(thing, Head | Network):
        if _is_circuit(thing, kind, x):
            return draw_circuit(_network(thing), x, page)
        return _function(thing, function, page)
    _refuse_views(thing, kind, x)
    for known, draw in DRAWN.items():
        if isinstance(thing, known):
            return draw(thing, page)
    raise AnchorheadError(
        f"{type(thing).__name__} cannot be plotted: a Head, a Network, a Plan, a frontier, a sweep, heat maps, a "
        "learner's trace or a path of coefficients can"
    )


def _function(thing: Head | Network, function: Callable[..., Any] | None, page: Page) -> Figure:
    if isinstance(thing, Head) or thing.construction == "scalar":
        return draw_head(thing, page)
    if thing.construction in OF_SEVERAL:
        return draw_converted(thing, function, page)
    return draw_network(thing, page)


def _drawn_on(ax: Any, thing: Any, kind: View | None, x: Any, size: Any) -> Figure:
    """The whole figure that the axes belong to."""
    from matplotlib.axes import Axes as AnyAxes
    from matplotlib.figure import Figure as WholeFigure

    if not isinstance(ax, AnyAxes):
        raise AnchorheadError(f"ax={type(ax).__name__}: axes of matplotlib are needed, as from fig.subplots()")
    if size is not None:
        raise AnchorheadError(f"size={size!r} with ax=: axes have the size that their figure gives them; leave one out")
    if isinstance(thing, Head | Network) and _is_circuit(thing, kind, x):
        draw_circuit_on(ax, _network(thing), x)
    elif isinstance(thing, Sweep):
        _refuse_views(thing, kind, x)
        draw_sweep_on(ax, thing)
    else:
        raise AnchorheadError(
            f"a picture of this {type(thing).__name__} has several panels and cannot go into one ax=: sweeps can, and "
            'networks with kind="circuit". Without ax= it makes a figure of its own'
        )
    figure: Any = ax.get_figure()
    return figure if isinstance(figure, WholeFigure) else figure.figure


def _is_circuit(thing: Head | Network, kind: View | None, x: Any) -> bool:
    """Where nobody says, an input asks for the circuit, and so does a network of which no function is known."""
    if kind == "function" and x is not None:
        raise AnchorheadError('x= with kind="function": an input belongs to kind="circuit", which shows its attention')
    if kind is not None:
        return kind == "circuit"
    if x is not None:
        return True
    if isinstance(thing, Head):
        return False
    known = ("scalar", "truncated linear", *OF_SEVERAL)
    return thing.program is None or thing.certificate is None or thing.construction not in known


def _network(thing: Head | Network) -> Network:
    return thing.network if isinstance(thing, Head) else thing


def _refuse_views(thing: Any, kind: View | None, x: Any) -> None:
    if kind is not None or x is not None:
        given = "kind=" if kind is not None else "x="
        raise AnchorheadError(
            f"{given} of a {type(thing).__name__}: only heads and networks have a circuit; leave it out"
        )
