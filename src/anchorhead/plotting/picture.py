"""From a thing to a file with its picture."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anchorhead.constructions.head import Head
from anchorhead.constructions.plan import Plan
from anchorhead.disk import check_writable, write_atomically
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.estimators_path import CoefficientPath
from anchorhead.incontext.trace import Trace
from anchorhead.network import Network
from anchorhead.plotting.coefficients import draw_coefficients
from anchorhead.plotting.converted import draw_converted
from anchorhead.plotting.frontier import Frontier, draw_frontier
from anchorhead.plotting.head import draw_head
from anchorhead.plotting.heat_maps import HeatMaps, draw_heat_maps
from anchorhead.plotting.network import draw_network
from anchorhead.plotting.plan import draw_plan
from anchorhead.plotting.several import KINDS
from anchorhead.plotting.style import PARAMETERS
from anchorhead.plotting.sweep import Sweep, draw_sweep
from anchorhead.plotting.trace import draw_trace
from anchorhead.targets.scalar import KIND

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")


def plot(thing: Any, path: str | Path, function: Callable[..., Any] | None = None) -> None:
    """Draws a head, a network, a plan, a frontier, a sweep, heat maps or a learner's trace: .png, .svg or .pdf.

    function   of a network that approximates a callable of several variables: the callable, which is not kept in it

        >>> picture = ah.plot(ah.head("gelu", on=(-10, 10), within=1e-6), "gelu.png")
    """
    check_picture_path(path)
    write_atomically(path, _rendered(thing, Path(path).suffix.lower(), function))


def check_picture_path(path: Any) -> None:
    """Refuses a path that no picture can be written to, so that no work is done in vain."""
    if not isinstance(path, str | Path):
        raise AnchorheadError(f"a picture goes to a path, not to a {type(path).__name__}: ah.plot(thing, 'thing.png')")
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        raise AnchorheadError(f"{path} ends in {suffix or 'no suffix'}: a picture is written as .png, .svg or .pdf")
    check_writable(path)


def _rendered(thing: Any, suffix: str, function: Callable[..., Any] | None) -> bytes:
    from matplotlib import rc_context

    # without a date, the same picture is the same file
    undated = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    content = io.BytesIO()
    with rc_context(PARAMETERS):
        _drawn(thing, function).savefig(content, format=suffix[1:], metadata=undated[suffix])
    return content.getvalue()


def _drawn(thing: Any, function: Callable[..., Any] | None) -> Figure:
    match thing:
        case Head():
            return draw_head(thing)
        case Network() if thing.target is not None and thing.target.kind == KIND:
            return draw_head(thing)
        case Network() if thing.target is not None and thing.target.kind in KINDS:
            return draw_converted(thing, function)
        case Network():
            return draw_network(thing)
        case Frontier():
            return draw_frontier(thing)
        case Sweep():
            return draw_sweep(thing)
        case HeatMaps():
            return draw_heat_maps(thing)
        case Plan():
            return draw_plan(thing)
        case Trace():
            return draw_trace(thing)
        case CoefficientPath():
            return draw_coefficients(thing)
    raise AnchorheadError(
        f"{type(thing).__name__} cannot be plotted: a Head, a Network, a Plan, a frontier, a sweep, heat maps or a "
        "learner's trace can"
    )
