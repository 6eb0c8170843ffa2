"""`ah.head`: functions of one variable as a head."""

from __future__ import annotations

from typing import Any

from anchorhead.constructions.build_request import BuildRequest, Placement
from anchorhead.constructions.compile import built
from anchorhead.constructions.single.certified_head import Head
from anchorhead.decimals import beyond_float64
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets import CallableTarget, target_of
from anchorhead.progress import Progress, progress_line


def head(
    function: Any,
    on: Any,
    within: float | None = None,
    *,
    anchors: int | None = None,
    dtype: Any = "float64",
    placement: Placement = "solved",
    max_value: float | None = None,
    max_slope: float | None = None,
    lipschitz: float | None = None,
    progress: Progress | bool | None = True,
) -> Head:
    """A head for a function of one variable on an interval.

    function   a name ("gelu"), an expression in x ("sin(5*x)*exp(-x**2)"), a list of these, or a callable
    on         the two ends of the interval, (-10, 10); or {"t": (-10, 10)}, for an expression in t
    within     the smallest head that is proven within this error, rounding included
    anchors    or: the best head with at most so many anchors, and what it achieves
    placement  "solved": anchors where they serve best; "uniform": the paper's even spacing, values of the function
    max_value, max_slope   caps on the weights
    dtype      float32 or float64, in which it computes
    lipschitz  a bound on a callable's slope: with it the certificate is proven, without it measured
    progress   a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   a Head: call it with numbers or arrays; head.certificate, head.parts, head.network

        >>> head = ah.head("gelu", on=(-10, 10), within=1e-6)
        >>> head.anchors
        8
        >>> round(float(head(0.3)), 5)
        0.18537
    """
    target = target_of(function, on, lipschitz)
    with progress_line(progress, "solving for a head") as tell, beyond_float64():
        request = BuildRequest(
            within,
            dtype,
            placement=placement,
            progress=tell,
            anchors=anchors,
            max_value=max_value,
            max_slope=max_slope,
            function=target if isinstance(target, CallableTarget) else None,
        )
        made = built(program_of(target), request)
    if not isinstance(made, Head):
        raise TypeError("a program of one variable that is no head")
    return made
