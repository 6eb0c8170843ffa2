"""What `anchorhead check` prints of a report: a table of steps, the largest of them, what is assumed and what is not
verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from anchorhead.verify import Report

WIDTH = 100


def print_report(report: Report) -> None:
    """Everything but the one line."""
    if report.steps:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
        for heading in ("where", "lemma", "what"):
            table.add_column(heading)
        table.add_column("error", justify="right", no_wrap=True)
        for step in report.steps:
            table.add_row(*map(Text, (step.where, step.lemma, step.what, f"{step.error:.3g}")))
        Console(width=WIDTH, highlight=False).print(table)
    if report.largest is not None:
        typer.echo(f"Largest contribution: {report.largest.where}, {report.largest.error:.3g}")
    for one in report.assumptions:
        typer.echo(f"Assumed: {one}")
    for one in report.unverified:
        typer.echo(f"Not verified: {one}")
