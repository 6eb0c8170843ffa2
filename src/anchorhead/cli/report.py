"""What a sweep prints and writes: a table, the fitted rate, a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from anchorhead.decimals import counted

if TYPE_CHECKING:
    from anchorhead.lab import TaskRow
    from anchorhead.lab.in_context import LearnerRow
    from anchorhead.plotting import Row, Sweep

WIDTH = 100


def print_sweep(sweep: Sweep) -> None:
    """A line a size, then the rate."""
    typer.echo(
        f"The {sweep.theorem} theorem on [{sweep.low:g}, {sweep.high:g}] in {sweep.dtype}, varying the {sweep.varied}"
    )
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    columns = _columns(sweep)
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in sweep.rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    Console(width=WIDTH, highlight=False).print(table)
    if sweep.rate is None:
        typer.echo("One size has no rate: give a range such as 8:512.")
    else:
        typer.echo(
            f"Fitted rate: the error found goes as ({sweep.intervals_formula})^{sweep.rate:.3f}; the theorem's is -1."
        )


def print_task(rows: Sequence[TaskRow], size: int, neurons: int) -> None:
    """A table a dtype, a line a way to build the paper's random ReLU network."""
    typer.echo(f"A random ReLU network {size} -> {neurons} -> {size} on [0, 1], as attention alone")
    for dtype in dict.fromkeys(row.dtype for row in rows):
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
        for heading in (f"{dtype}\nform", "layout"):
            table.add_column(heading, no_wrap=True)
        for heading in ("heads", "anchors", "weights", "proven", "found", "proven\n/ found", "proven\n/ range", "time"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in (row for row in rows if row.dtype == dtype):
            sizes = (f"{row.heads:,}", f"{row.anchors}", f"{row.parameters:,}")
            errors = (f"{row.bound:.1e}", f"{row.error:.1e}", f"{row.bound / row.error:.3g}", f"{row.relative:.1e}")
            table.add_row(row.form, row.layout, *sizes, *errors, f"{row.seconds:.1f} s")
        Console(width=WIDTH, highlight=False).print(table)


def print_learners(rows: Sequence[LearnerRow], examples: int, features: int, steps: int, dtype: str) -> None:
    """A line a loss and layout."""
    data = f"{counted(examples, 'example')} of {counted(features, 'feature')}"
    typer.echo(f"{counted(steps, 'step')} of gradient descent on {data}, in {dtype}")
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for heading in ("loss", "layout"):
        table.add_column(heading, no_wrap=True)
    for heading in (
        "attention\nlayers",
        "weights",
        "largest distance\nfrom exact descent",
        "bound for\nthis prompt",
        "",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        bound = f"{row.bound:.1e}" if row.kind else "-"
        table.add_row(
            row.loss, row.layout, f"{row.layers:,}", f"{row.parameters:,}", f"{row.deviation:.1e}", bound, row.kind
        )
    Console(width=WIDTH, highlight=False).print(table)


def write_rows(rows: Sequence[Any], path: Path) -> None:
    """Rows of a table, which are dataclasses, with all their digits."""
    from anchorhead.disk import write_atomically

    text = io.StringIO()
    listed = [asdict(row) for row in rows]
    writer = csv.DictWriter(text, list(listed[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    write_atomically(path, text.getvalue().encode())


def _columns(sweep: Sweep) -> dict[str, Callable[[Row], str]]:
    """What each column is called and holds."""
    single = sweep.theorem == "single-head"
    sizes: dict[str, Callable[[Row], str]] = {"tokens\nn": lambda row: f"{row.tokens:,}"}
    if single:
        sizes["anchors\np"] = lambda row: f"{row.size:,}"
    else:
        sizes["heads\nH"] = lambda row: f"{row.heads:,}"
    return sizes | {
        f"intervals\n{sweep.intervals_formula}": lambda row: f"{row.intervals:,}",
        f"theorem's bound\n{sweep.theorem_formula}": lambda row: f"{row.theorem:#.3g}",
        "our bound,\nproven": lambda row: f"{row.proven:#.3g}",
        "largest\nerror found": lambda row: f"{row.measured:#.3g}",
        "theorem's\n/ ours": lambda row: f"{row.theorem / row.proven:#.3g}",
        "sharpness\nc": lambda row: f"{row.c:#.3g}",
    }
