"""`anchorhead approximate`: a function, a domain and an error in; a network, its size and the proof out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from anchorhead.cli.convert import Form, Layout, Output, Picture, sizes
from anchorhead.cli.head import Dtype, Placement
from anchorhead.cli.interval import Interval
from anchorhead.cli.waiting import waiting

if TYPE_CHECKING:
    from anchorhead.network import Network

Functions = Annotated[
    list[str], typer.Argument(metavar="EXPRESSION", help='Such as "x*y + sin(z)"; several are several outputs.')
]
On = Annotated[
    list[str],
    typer.Option("--on", metavar="NAME=LOW:HIGH", help="The interval of a variable, once for each: x=-1:1."),
]
Within = Annotated[float, typer.Option(help="The error asked for: sup norm over the box, rounding included.")]


def approximate(
    functions: Functions,
    on: On,
    within: Within,
    form: Annotated[Form | None, typer.Option(help="By default one head for one variable, else two-layer.")] = None,
    layout: Annotated[
        Layout | None, typer.Option(help="Linear maps act on a token alone, or across the sequence as in the paper.")
    ] = None,
    placement: Annotated[
        Placement, typer.Option(help="Anchors where they serve best, or the paper's even spacing.")
    ] = Placement.solved,
    dtype: Annotated[Dtype, typer.Option(help="The type in which it computes.")] = Dtype.float64,
    prove: Annotated[
        bool, typer.Option("--prove/--no-prove", help="Leave out the proof of a head over a grid.")
    ] = True,
    output: Output = None,
    plot: Picture = None,
) -> None:
    """Approximate a continuous function by an attention-only network, the error proven.

    Example: [bold]anchorhead approximate "sin(3*x)*exp(x)" --on x=-1:1 --within 1e-6 --plot fig.png[/bold]

    Example: [bold]anchorhead approximate "x*y + sin(z)" --on x=-1:1 --on y=0:2 --on z=-3:3 --within 1e-4[/bold]

    Example: [bold]anchorhead approximate "sin(3*x)*cos(2*y) + exp(x*y)" --on x=-1:1 --on y=-1:1 --within 1e-6[/bold]
    """
    from anchorhead.constructions.approximate import approximate as make
    from anchorhead.network.files import check_folder
    from anchorhead.plotting import check_picture_path
    from anchorhead.plotting import plot as draw

    if plot is not None:
        check_picture_path(plot)
    if output is not None:
        check_folder(output)
    began = time.perf_counter()
    with waiting("approximating") as tell:
        network: Network = make(
            functions if len(functions) > 1 else functions[0],
            _domains(on),
            within,
            form=None if form is None else form.value,
            layout=None if layout is None else layout.value,
            placement=placement.value,
            dtype=dtype.value,
            prove=prove,
            progress=lambda anchors, error: tell(f"solving for a head: {anchors} anchors, error {error:.2g}"),
        )
    typer.echo(network.certificate)
    typer.echo(sizes(network))
    typer.echo(f"{'time':<12}{time.perf_counter() - began:.1f} s")
    if output is not None:
        network.save(output)
        typer.echo(f"Network: {output}")
    if plot is not None:
        draw(network, plot)
        typer.echo(f"Plot: {plot}")


def _domains(given: list[str]) -> dict[str, tuple[float, float]]:
    """{"x": (-1, 1)} from ["x=-1:1"]."""
    domains: dict[str, tuple[float, float]] = {}
    for text in given:
        name, sign, ends = text.partition("=")
        if not sign or not name.strip():
            raise typer.BadParameter(f"{text!r}: give a variable and its interval, such as x=-1:1")
        if name.strip() in domains:
            raise typer.BadParameter(f"{name.strip()} has two intervals: give one")
        interval = Interval.parse(ends)
        domains[name.strip()] = (interval.low, interval.high)
    return domains
