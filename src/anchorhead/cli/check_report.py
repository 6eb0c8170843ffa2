"""What `anchorhead check` prints of a report: a table of steps, the largest of them, what is assumed and what is not
verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from anchorhead.cli.report import print_table

if TYPE_CHECKING:
    from anchorhead.verify import Report


def print_report(report: Report) -> None:
    """Everything but the one line."""
    if report.steps:
        rows = [(step.where, step.lemma, step.what, f"{step.error:.3g}") for step in report.steps]
        print_table(("where", "lemma", "what"), ("error",), rows)
    if report.largest is not None:
        typer.echo(f"Largest contribution: {report.largest.where}, {report.largest.error:.3g}")
    for one in report.assumptions:
        typer.echo(f"Assumed: {one}")
    for one in report.unverified:
        typer.echo(f"Not verified: {one}")
