"""`anchorhead convert`: a network's weights in, an attention-only network with its proof out."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anchorhead.cli.head import Dtype, Placement
from anchorhead.cli.interval import Interval
from anchorhead.cli.waiting import waiting

if TYPE_CHECKING:
    from anchorhead.network import Network


class Form(StrEnum):
    two_layer = "two-layer"
    attention_softmax = "attention-softmax"
    deep = "deep"


class Layout(StrEnum):
    transformer = "transformer"
    sequence = "sequence"


Weights = Annotated[
    Path, typer.Argument(metavar="FILE", help="A safetensors file with the weights and biases of Linear layers.")
]
Activation = Annotated[str, typer.Option(help="What stands between the layers: relu, gelu, …, or an expression in x.")]
On = Annotated[
    Interval, typer.Option("--on", parser=Interval.parse, metavar="LOW:HIGH", help="The box of inputs: 0:1, -3:3.")
]
Within = Annotated[float, typer.Option(help="The error asked for: sup norm over the box, rounding included.")]
Tokens = Annotated[int | None, typer.Option(min=1, help="Inputs and outputs are so many tokens, one after the other.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the network: a .safetensors file.")
]
Picture = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw target, network and error: .png, .svg or .pdf.")
]


def convert(
    weights: Weights,
    activation: Activation,
    on: On,
    within: Within,
    tokens: Tokens = None,
    form: Annotated[Form | None, typer.Option(help="By default two-layer for one hidden layer, else deep.")] = None,
    layout: Annotated[
        Layout, typer.Option(help="Linear maps act on a token alone, or across the sequence as in the paper.")
    ] = Layout.transformer,
    placement: Annotated[
        Placement, typer.Option(help="Anchors where they serve best, or the paper's even spacing.")
    ] = Placement.solved,
    dtype: Annotated[Dtype | None, typer.Option(help="The type in which it computes; by default the file's.")] = None,
    causal: Annotated[bool, typer.Option("--causal", help="Token i's output depends on tokens up to i only.")] = False,
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Search for the largest error, to say how loose the bound is.")
    ] = True,
    output: Output = None,
    plot: Picture = None,
) -> None:
    """Turn a feed-forward network into attention: linear maps and softmax attention alone, the error proven.

    Example: [bold]anchorhead convert mlp.safetensors --activation relu --on 0:1 --within 1e-4 -o net.safetensors[/bold]

    Example: [bold]anchorhead convert mlp.safetensors --activation gelu --on -1:1 --within 1e-5 --tokens 4[/bold]
    """
    from anchorhead.convert import convert as make
    from anchorhead.network.files import check_folder
    from anchorhead.plotting import check_picture_path
    from anchorhead.plotting import plot as draw

    if plot is not None:
        check_picture_path(plot)
    if output is not None:
        check_folder(output)
    began = time.perf_counter()
    with waiting("converting") as tell:
        network = make(
            weights,
            (on.low, on.high),
            within,
            tokens=tokens,
            form=None if form is None else form.value,
            layout=layout.value,
            placement=placement.value,
            dtype=None if dtype is None else dtype.value,
            causal=causal,
            activation=activation,
            progress=lambda anchors, error: tell(f"solving for a head: {anchors} anchors, error {error:.2g}"),
        )
    typer.echo(network.certificate)
    typer.echo(sizes(network))
    typer.echo(f"{'time':<12}{time.perf_counter() - began:.1f} s")
    if search:
        with waiting("searching for the largest error"):
            typer.echo(_looseness(network))
    if output is not None:
        network.save(output)
        typer.echo(f"Network: {output}")
    if plot is not None:
        draw(network, plot)
        typer.echo(f"Plot: {plot}")


def sizes(network: Network) -> str:
    """The layers, and how many heads and numbers they hold."""
    from anchorhead.network import Attention

    layers = ", ".join(type(layer).__name__ for layer in network.layers)
    heads = sum(layer.heads for layer in network.layers if isinstance(layer, Attention))
    return f"{'layers':<12}{layers}; {heads:,} head{'s' * (heads != 1)}, {network.parameters:,} parameters"


def _looseness(network: Network) -> str:
    """The largest error found, beside the bound and the target's range."""
    from anchorhead.lab.converted import looseness

    found = looseness(network)
    return (
        f"{'search':<12}largest error found {found.error:.3g}, so the bound is {found.ratio:.3g} times it; outputs "
        f"range over {found.range:.3g}: relative to that, {found.bound / found.range:.2g} proven, "
        f"{found.error / found.range:.2g} found"
    )
