"""`anchorhead approximate`: a function, a domain and an error in; a network, its size and the proof out."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from anchorhead.cli.clock import print_time
from anchorhead.cli.first_checks import check_files, check_head, check_within
from anchorhead.cli.network_report import keep, print_found, report, warnings_in_words
from anchorhead.cli.options import (
    Causal,
    Dtype,
    DtypeOption,
    Features,
    Form,
    FormOption,
    Intervals,
    Layout,
    LayoutOption,
    Output,
    Picture,
    Placement,
    PlacementOption,
    Seed,
    Tokens,
    Within,
    box,
    domains,
    functions_of,
)
from anchorhead.cli.own_function import is_own, own_function
from anchorhead.cli.terminal import stopped

Functions = Annotated[
    list[str],
    typer.Argument(
        metavar="EXPRESSION|FILE.py:NAME",
        help='Such as "x*y + sin(z)"; several are several outputs. With --tokens, an EXPRESSION for each token, its '
        "outputs separated by ;. Or a function of your own Python file, which is run.",
    ),
]


def approximate(
    functions: Functions,
    on: Intervals,
    within: Within,
    tokens: Tokens = None,
    features: Features = None,
    form: Annotated[Form | None, FormOption] = None,
    layout: Annotated[Layout | None, LayoutOption] = None,
    placement: Annotated[Placement, PlacementOption] = Placement.solved,
    dtype: Annotated[Dtype, DtypeOption] = Dtype.float64,
    causal: Causal = False,
    lipschitz: Annotated[
        float | None,
        typer.Option(help="Of your own function: a bound on its slope, with which it is proven.", metavar="SLOPE"),
    ] = None,
    seed: Seed = 0,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove/--no-prove", help="Prove heads over grids, or leave that out: the error is then measured."
        ),
    ] = True,
    output: Output = None,
    plot: Picture = None,
) -> None:
    """Approximate a continuous function by an attention-only network, the error proven.

    If the error asked for is not reached, the best network is reported, saved where -o says, and the exit code is 1.

    Example: [bold]anchorhead approximate "sin(3*x)*exp(x)" --on x=-1:1 --within 1e-6 --plot fig.png[/bold]

    Example: [bold]anchorhead approximate "x*y + sin(z)" --on x=-1:1 --on y=0:2 --on z=-3:3 --within 1e-4[/bold]

    Example: [bold]anchorhead approximate "x\\[0,0]*x\\[1,0]; 1" "max(x\\[0,0], x\\[1,0]); 0" --tokens 2 --features 1
    --on 0:1 --within 1e-3[/bold]

    Example: [bold]anchorhead approximate mymodule.py:f --on x=-1:1 --on y=0:2 --within 1e-3 -o net.safetensors[/bold]
    """
    from anchorhead.errors import NotReached

    check_files(plot, output)
    check_within(within)
    words = {
        "on": domains(on or []) if tokens is None else box(on or []),
        "within": within,
        "tokens": tokens,
        "features": features,
        "form": None if form is None else form.value,
        "layout": None if layout is None else layout.value,
        "placement": placement.value,
        "dtype": dtype.value,
        "causal": causal,
        "lipschitz": lipschitz,
        "seed": seed,
        "prove": prove,
    }
    own = [text for text in functions if is_own(text)]
    if own and len(functions) > 1:
        raise typer.BadParameter(f"{own[0]} stands alone: a function of a file may have several outputs of its own")
    function: Any = own_function(functions[0]) if own else functions_of(functions, tokens)
    if not own:
        _print_structure(function, words)
    try:
        from anchorhead.constructions.approximate import approximate as make

        with warnings_in_words():
            network = make(function, **words)
    except NotReached as error:
        _report_best(error, output)
        raise
    except KeyboardInterrupt:
        raise stopped("Stopped before there was a network.") from None
    report(network)
    keep(network, output, plot, function if own else None)
    print_time()


def _print_structure(function: Any, words: dict[str, Any]) -> None:
    from anchorhead.constructions.request import requested

    target = requested(function, words["on"], words["tokens"], words["features"])
    if words["tokens"] is None and len(target.variables) == 1:
        check_head(list(target.expressions), (target.low[0], target.high[0]), None)
    print_found(target.found())


def _report_best(error: Any, output: Any) -> None:
    """What was reached; the network is kept where the user wanted it, and nothing is lost."""
    typer.secho(f"{error.within:g} was asked for, {error.bound:.3g} was reached:", fg="yellow")
    report(error.network)
    keep(error.network, output, None)
    if output is None:
        typer.echo("It was not saved: give -o FILE to keep it.")
    print_time()
