"""What `anchorhead head` prints and writes: a head, the frontier, the named functions."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from anchorhead.cli.report import WIDTH, print_table
from anchorhead.decimals import counted

if TYPE_CHECKING:
    from anchorhead.certificate import Certificate
    from anchorhead.constructions.single.certified_head import Head
    from anchorhead.plotting import Frontier, FrontierRow

MAX_ROWS = 20
MAX_VALUES = 5
"""Of more anchors or functions than these, the first are listed."""


def print_head(head: Head) -> None:
    """What it is, its weights and its certificate."""
    typer.echo(_wrapped(_summary(head)))
    typer.echo(_wrapped(_formula(head)))
    typer.echo()
    _print_weights(head)
    typer.echo()
    _print_certificate(head.certificate)


def print_frontier(frontier: Frontier) -> None:
    """A line a number of anchors."""
    typer.echo(
        _wrapped(f"{frontier.name} on [{frontier.low:g}, {frontier.high:g}] in {frontier.dtype}: error against anchors")
    )
    columns = _columns(frontier)
    print_table((), list(columns), [[cell(row) for cell in columns.values()] for row in frontier.rows])
    typer.echo(
        _wrapped(
            f"Heads: {frontier.kind}, rounding in {frontier.dtype} included; solved: the best with at most p anchors. "
            "Polynomials: Remez's exchange on a few thousand points, exact arithmetic, not proven."
        )
    )


def print_named() -> None:
    """The functions that have names, how to call them, and what they are."""
    from anchorhead.language.targets import NAMED

    print_table(("function", "what it is"), (), [(named.signature, named.description) for named in NAMED.values()])
    typer.echo('Where all parameters have defaults the name alone will do: gelu; else write "clip(x, 0, 2)".')


def _summary(head: Head) -> str:
    parts = f" in {len(head.parts)} parts that add up" if len(head.parts) > 1 else ""
    count = counted(head.anchors, "anchor")
    return f"{head.target.name} on [{head.on[0]:g}, {head.on[1]:g}] in {head.dtype}: {count}{parts}"


def _formula(head: Head) -> str:
    """The formula of the head with its origin and bias, where it has them."""
    origin, bias = head.atom.origin, [f"{number:.6g}" for number in head.atom.bias[:MAX_VALUES]]
    query = f"(s - {origin:.6g})" if origin > 0 else f"(s + {-origin:.6g})" if origin < 0 else "s"
    more = ", …" if len(head.atom.bias) > MAX_VALUES else ""
    shown = f"({', '.join(bias)}{more})" if len(bias) > 1 else bias[0]
    start = f"{shown} + " if any(head.atom.bias) else ""
    return f"r(s) = {start}sum of values times softmax(slope {query} + offset)"


def _print_weights(head: Head) -> None:
    functions = min(head.target.outputs, MAX_VALUES)
    more = head.target.outputs - functions
    values = ["value"] if head.target.outputs == 1 else [f"value {m}" for m in range(functions)]
    several = len(head.parts) > 1
    headings = [*(["part"] if several else []), "anchor", "slope", "offset", *values, *(["…"] if more else [])]
    rows = []
    for number, part in enumerate(head.parts, start=1):
        for k in range(len(part)):
            weights = (part.slopes[k], part.offsets[k], *part.values[k, :functions])
            cells = [f"{float(weight):.5g}" for weight in weights]
            rows.append([*([str(number)] if several else []), str(k + 1), *cells, *(["…"] if more else [])])
    print_table((), headings, rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        typer.echo(f"and {counted(len(rows) - MAX_ROWS, 'more anchor')}")
    if more:
        typer.echo(f"and {counted(more, 'more value')} an anchor")


def _print_certificate(certificate: Certificate) -> None:
    """Its own words; green where it is proven."""
    first = certificate.headline
    typer.secho(first[0].upper() + first[1:], fg="green" if certificate.kind == "proven" else "yellow")
    typer.echo(certificate.details)


def _columns(frontier: Frontier) -> dict[str, Callable[[FrontierRow], str]]:
    """What each column is called and holds."""
    several = any(row.parts > 1 for row in frontier.rows)
    columns: dict[str, Callable[[FrontierRow], str]] = {
        "anchors\np": lambda row: f"{row.anchors}",
        "uniform\nanchors": lambda row: f"{row.uniform:#.3g}",
        "polynomial,\np coefficients": lambda row: f"{row.polynomial:#.3g}",
        "solved\nanchors": lambda row: f"{row.solved:#.3g}",
        "anchors\nused": lambda row: f"{row.used}",
    }
    if several:
        columns["\nparts"] = lambda row: f"{row.parts}"
    return columns | {
        "largest\n|value|": lambda row: f"{row.max_value:#.3g}",
        "largest\n|slope|": lambda row: f"{row.max_slope:#.3g}",
    }


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="  ")
