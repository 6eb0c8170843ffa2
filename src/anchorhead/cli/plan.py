"""`anchorhead plan`: how large a network would become, of expressions or of a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from anchorhead.cli.clock import print_time
from anchorhead.cli.first_checks import check_files, check_interval, check_model_file, check_within
from anchorhead.cli.options import (
    ActivationOption,
    Causal,
    Csv,
    Dtype,
    Features,
    Form,
    FormOption,
    Intervals,
    Latex,
    Layout,
    LayoutOption,
    Order,
    Picture,
    Tokens,
    Until,
    Withins,
    box,
    domains,
    functions_of,
    layers,
)
from anchorhead.cli.own_function import is_own
from anchorhead.cli.report import keep_plot


def plan(
    functions: Annotated[
        list[str],
        typer.Argument(
            metavar="EXPRESSION|FILE",
            help="Expressions as approximate takes them; or an ONNX file; or a .safetensors file with the weights and "
            "biases of Linear layers, with --activation.",
        ),
    ],
    on: Intervals = None,
    within: Withins = None,
    activation: Annotated[str | None, ActivationOption] = None,
    order: Order = None,
    until: Until = None,
    tokens: Tokens = None,
    features: Features = None,
    form: Annotated[Form | None, FormOption] = None,
    layout: Annotated[Layout | None, LayoutOption] = None,
    dtype: Annotated[
        Dtype | None, typer.Option(help="The type in which it computes; by default the file's, or float64.")
    ] = None,
    causal: Causal = False,
    csv: Csv = None,
    latex: Latex = None,
    plot: Picture = None,
) -> None:
    """Say how large a network becomes, in every form, layout and placement, before anything is built.

    Of expressions it says as well what becomes of every term; errors are 1e-2 to 1e-8 unless --within names others.

    Example: [bold]anchorhead plan "x*y + sin(z)" --on x=-1:1 --on y=0:2 --on z=-3:3 --within 1e-2,1e-4[/bold]

    Example: [bold]anchorhead plan mlp.safetensors --activation relu --on 0:1 --within 1e-1,1e-2 --csv plan.csv[/bold]
    """
    check_files(plot, csv, latex)
    check_within(*(within or ()))
    file = _file(functions)
    model, where = (file, box(_given(on))) if file else _expressions(functions, on, tokens)
    if within is None and file:
        raise typer.BadParameter("--within is missing: the errors asked for, as in --within 1e-1,1e-2")
    if file:
        check_interval(where)
        check_model_file(file, activation, order, until)
    else:
        from anchorhead.constructions.request import requested

        requested(model, where, tokens, features)
    from anchorhead.convert.plan import plan as make
    from anchorhead.disk import write_atomically

    found = make(
        model,
        where,
        None if within is None else list(within),
        tokens=tokens,
        features=features,
        form=None if form is None else form.value,
        layout=None if layout is None else layout.value,
        dtype=None if dtype is None else dtype.value,
        causal=causal,
        activation=activation,
        order=layers(order),
        output=until,
    )
    typer.echo(found)
    for path, text, what in ((csv, found.to_csv, "Table"), (latex, found.to_latex, "LaTeX")):
        if path is not None:
            write_atomically(path, text().encode())
            typer.echo(f"{what}: {path}")
    keep_plot(found, plot)
    print_time()


def _file(functions: list[str]) -> str | None:
    """The file that is planned for, if it is one; a name that ends so is meant as one even where there is none."""
    from anchorhead.language.targets.spec import is_expression

    files = [text for text in functions if not is_expression(text)]
    if files and len(functions) > 1:
        raise typer.BadParameter(f"{files[0]} is a file: give it alone")
    return files[0] if files else None


def _given(on: list[str] | None) -> list[str]:
    if not on:
        raise typer.BadParameter("--on is missing: x=-1:1 for each variable, or for a file the box of inputs, 0:1")
    return on


def _expressions(functions: list[str], on: list[str] | None, tokens: int | None) -> tuple[Any, Any]:
    if is_own(functions[0]):
        raise typer.BadParameter(
            f"{functions[0]}: only approximate takes a function of a file; of a plan, write the expression"
        )
    where = _given(on)
    return functions_of(functions, tokens), domains(where) if tokens is None else box(where)
