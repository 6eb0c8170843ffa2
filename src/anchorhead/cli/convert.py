"""`anchorhead convert`: a network's weights in, an attention-only network with its proof out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anchorhead.cli.clock import print_time
from anchorhead.cli.first_checks import check_files, check_interval, check_model_file, check_within
from anchorhead.cli.network_report import keep, report
from anchorhead.cli.options import (
    ActivationOption,
    Box,
    Causal,
    FilesDtype,
    Form,
    FormOption,
    Layout,
    LayoutOption,
    Order,
    Output,
    Picture,
    Placement,
    PlacementOption,
    Tokens,
    Until,
    Within,
    layers,
)

if TYPE_CHECKING:
    from anchorhead.network import Network

Weights = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A safetensors file with weights and biases of Linear layers, or an ONNX file."
    ),
]


def convert(
    weights: Weights,
    on: Box,
    within: Within,
    activation: Annotated[str | None, ActivationOption] = None,
    order: Order = None,
    until: Until = None,
    tokens: Tokens = None,
    form: Annotated[Form | None, FormOption] = None,
    layout: Annotated[Layout, LayoutOption] = Layout.transformer,
    placement: Annotated[Placement, PlacementOption] = Placement.solved,
    dtype: FilesDtype = None,
    causal: Causal = False,
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Search for the largest error, to say how loose the bound is.")
    ] = True,
    output: Output = None,
    plot: Picture = None,
) -> None:
    """Turn a feed-forward network into attention: linear maps and softmax attention alone, the error proven.

    Example: [bold]anchorhead convert mlp.safetensors --activation relu --on 0:1 --within 1e-4 -o net.safetensors[/bold]

    Example: [bold]anchorhead convert mlp.onnx --on 0:1 --within 1e-4 -o net.safetensors[/bold]

    Example: [bold]anchorhead convert mlp.safetensors --activation gelu --on -1:1 --within 1e-5 --tokens 4[/bold]
    """
    check_files(plot, output)
    check_within(within)
    check_interval(on)
    check_model_file(weights, activation, order, until)
    from anchorhead.convert import convert as make
    from anchorhead.progress import progress_line

    network = make(
        weights,
        on,
        within,
        tokens=tokens,
        form=None if form is None else form.value,
        layout=layout.value,
        placement=placement.value,
        dtype=None if dtype is None else dtype.value,
        causal=causal,
        activation=activation,
        order=layers(order),
        output=until,
    )
    report(network)
    searched = 0.0
    if search:
        began = time.perf_counter()
        with progress_line(True, "searching for the largest error"):
            typer.echo(_looseness(network))
        searched = time.perf_counter() - began
    keep(network, output, plot)
    print_time(searched)


def _looseness(network: Network) -> str:
    """The largest error found, beside the bound and the target's range."""
    from anchorhead.lab.converted import looseness

    found = looseness(network)
    return (
        f"{'search':<12}largest error found {found.error:.3g}, so the bound is {found.ratio:.3g} times it; outputs "
        f"range over {found.range:.3g}: relative to that, {found.bound / found.range:.2g} proven, "
        f"{found.error / found.range:.2g} found"
    )
