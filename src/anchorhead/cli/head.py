"""`anchorhead head`: the fewest anchors for a function, proven."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from anchorhead.cli.clock import print_time
from anchorhead.cli.first_checks import check_files, check_head
from anchorhead.cli.head_report import print_frontier, print_head, print_named
from anchorhead.cli.interval import Interval
from anchorhead.cli.options import Csv, Dtype, Output, Picture, Placement, PlacementOption
from anchorhead.cli.report import keep_plot, keep_rows

Functions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FUNCTION",
        help="A name such as gelu, or an expression in x; several have the same keys and a vector of values.",
    ),
]
On = Annotated[
    Interval | None,
    typer.Option("--on", parser=Interval.parse, metavar="LOW:HIGH", help="The domain: -10:10, 1e-3:1, -pi:pi."),
]
Within = Annotated[float | None, typer.Option(help="The error asked for: the smallest head proven within it.")]
Anchors = Annotated[
    int | None, typer.Option(help="Or: the best head with so many anchors; with --frontier, the most to try.")
]


def head(
    functions: Functions = None,
    on: On = None,
    within: Within = None,
    anchors: Anchors = None,
    dtype: Annotated[Dtype, typer.Option(help="The type in which the head computes.")] = Dtype.float64,
    placement: Annotated[Placement, PlacementOption] = Placement.solved,
    max_value: Annotated[float | None, typer.Option(help="A cap on |value|.")] = None,
    max_slope: Annotated[float | None, typer.Option(help="A cap on |slope|.")] = None,
    plot: Picture = None,
    output: Output = None,
    frontier: Annotated[
        bool, typer.Option("--frontier", help="Error against anchors: uniform, solved, a polynomial.")
    ] = False,
    csv: Csv = None,
    named: Annotated[bool, typer.Option("--list", help="List the functions that have names.")] = False,
) -> None:
    """Approximate a function of one variable by one attention head with the fewest anchors that are found, proven.

    Example: [bold]anchorhead head gelu --on -10:10 --within 1e-6 --plot gelu.png -o gelu.safetensors[/bold]

    Example: [bold]anchorhead head "sin(5*x)*exp(-x**2)" --on -2:2 --anchors 12 --dtype float32[/bold]

    Example: [bold]anchorhead head sin cos --on -pi:pi --within 1e-5[/bold]

    Example: [bold]anchorhead head gelu --on -10:10 --frontier --plot frontier.png --csv frontier.csv[/bold]
    """
    if named:
        print_named()
        return
    if not functions or on is None:
        raise typer.BadParameter("give a FUNCTION and its domain, as in: gelu --on -10:10; --list lists names")
    if frontier and (within is not None or output is not None or placement != Placement.solved):
        raise typer.BadParameter("--frontier makes many heads: leave out --within, --output and --placement")
    if not frontier and (csv is not None or (within is None) == (anchors is None)):
        raise typer.BadParameter("give --within or --anchors, one of the two; --csv belongs to --frontier")
    check_files(plot, output, csv)
    target = functions[0] if len(functions) == 1 else functions
    check_head(target, on, within, anchors)
    options: dict[str, Any] = {"dtype": dtype.value, "max_value": max_value, "max_slope": max_slope}
    if frontier:
        from anchorhead.lab import frontier as sweep

        options |= {} if anchors is None else {"most": anchors}
        found = sweep(target, on, **options)
        print_frontier(found)
        keep_plot(found, plot)
        keep_rows(found.rows, csv)
    else:
        from anchorhead.constructions.head import head as make

        made = make(target, on, within=within, anchors=anchors, placement=placement.value, **options)
        print_head(made)
        keep_plot(made, plot)
        if output is not None:
            made.save(output)
            typer.echo(f"Head: {output}")
    print_time()
