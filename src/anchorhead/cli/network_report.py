"""What commands print of a network that they made, and where they put it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from anchorhead.cli.report import keep_plot
from anchorhead.decimals import counted, shortened

if TYPE_CHECKING:
    from anchorhead.network import Network

MAX_TERMS = 12
MAX_SIGNS = 60


def report(network: Network) -> None:
    """The certificate, green if it is proven; the size."""
    certificate = network.certificate
    if certificate is not None:
        typer.secho(certificate.headline, fg="green" if certificate.kind == "proven" else "yellow")
        typer.echo(certificate.details)
    typer.echo(sizes(network))


def keep(network: Network, output: Path | None, plot: Path | None, function: Callable[..., Any] | None = None) -> None:
    """Saves and draws it, beside the callable that it was made from, if any."""
    if output is not None:
        network.save(output)
        typer.echo(f"Network: {output}")
    keep_plot(network, plot, function=function)


def sizes(network: Network) -> str:
    """The layers, and how many heads and numbers they hold."""
    from anchorhead.network import Attention

    layers = ", ".join(type(layer).__name__ for layer in network.layers)
    attention = [layer for layer in network.layers if isinstance(layer, Attention)]
    heads = sum(layer.heads for layer in attention)
    grids = [f"{' x '.join(map(str, layer.grid))} anchors" for layer in attention if layer.grid and len(layer.grid) > 1]
    over = f" ({', '.join(dict.fromkeys(grids))})" if grids else ""
    return f"{'layers':<12}{layers}; {counted(heads, 'head')}{over}, {counted(network.parameters, 'parameter')}"


def print_found(found: Sequence[tuple[str, str]]) -> None:
    """What each term became, a line each."""
    for number, (term, becomes) in enumerate(found[:MAX_TERMS]):
        typer.echo(f"{'found' if not number else '':<12}{shortened(term, MAX_SIGNS)}: {becomes}")
    if len(found) > MAX_TERMS:
        typer.echo(f"{'':<12}and {counted(len(found) - MAX_TERMS, 'more term')}")


@contextmanager
def warnings_in_words() -> Iterator[None]:
    """Warnings of the library become lines on stderr, once what it does is done."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            say(str(one.message) for one in caught if issubclass(one.category, UserWarning))


def say(texts: Iterable[str]) -> None:
    for text in dict.fromkeys(texts):
        typer.secho(f"Warning: {text}", fg="yellow", err=True)
