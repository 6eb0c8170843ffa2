"""What commands print and write: tables, pictures, CSV files; and what a sweep says of the rate."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from anchorhead.decimals import counted

if TYPE_CHECKING:
    from anchorhead.lab import TaskRow
    from anchorhead.lab.in_context import LearnerRow
    from anchorhead.plotting import Row, Sweep

WIDTH = 100


def print_table(words: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns of words, which may be broken into lines, under these headings, then columns of numbers."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for heading in words:
        table.add_column(heading)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    Console(width=WIDTH, highlight=False).print(table)


def keep_plot(thing: Any, path: Path | None, **options: Any) -> None:
    """Draws a thing, with options of ah.plot, if there is a path for it."""
    if path is not None:
        from anchorhead.plotting import plot

        plot(thing, path, **options)
        typer.echo(f"Plot: {path}")


def keep_rows(rows: Sequence[Any], path: Path | None) -> None:
    """Rows of a table, which are dataclasses, with all their digits, if there is a path for them."""
    if path is None:
        return
    from anchorhead.disk import write_atomically

    text = io.StringIO()
    listed = [asdict(row) for row in rows]
    writer = csv.DictWriter(text, list(listed[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    write_atomically(path, text.getvalue().encode())
    typer.echo(f"Table: {path}")


def print_sweep(sweep: Sweep) -> None:
    """A line a size, then the rate."""
    typer.echo(
        f"The {sweep.theorem} theorem on [{sweep.low:g}, {sweep.high:g}] in {sweep.dtype}, varying the {sweep.varied}"
    )
    columns = _columns(sweep)
    print_table((), list(columns), [[cell(row) for cell in columns.values()] for row in sweep.rows])
    if sweep.rate is None:
        typer.echo("One size has no rate: give a range such as 8:512.")
    else:
        typer.echo(
            f"Fitted rate: the error found goes as ({sweep.intervals_formula})^{sweep.rate:.3f}; the theorem's is -1."
        )


def print_task(rows: Sequence[TaskRow], size: int, neurons: int) -> None:
    """A table a dtype, a line a way to build the paper's random ReLU network."""
    typer.echo(f"A random ReLU network {size} -> {neurons} -> {size} on [0, 1], as attention alone")
    numbers = ("heads", "anchors", "weights", "proven", "found", "proven\n/ found", "proven\n/ range", "time")
    for dtype in dict.fromkeys(row.dtype for row in rows):
        lines = []
        for row in (row for row in rows if row.dtype == dtype):
            sizes = (f"{row.heads:,}", f"{row.anchors}", f"{row.parameters:,}")
            errors = (f"{row.bound:.1e}", f"{row.error:.1e}", f"{row.bound / row.error:.3g}", f"{row.relative:.1e}")
            lines.append((row.form, row.layout, *sizes, *errors, f"{row.seconds:.1f} s"))
        print_table((f"{dtype}\nform", "layout"), numbers, lines)


def print_learners(rows: Sequence[LearnerRow], examples: int, features: int, steps: int, dtype: str) -> None:
    """A line a loss and layout."""
    data = f"{counted(examples, 'example')} of {counted(features, 'feature')}"
    typer.echo(f"{counted(steps, 'step')} of gradient descent on {data}, in {dtype}")
    lines = []
    for row in rows:
        bound = f"{row.bound:.1e}" if row.kind else "-"
        sizes = (f"{row.layers:,}", f"{row.parameters:,}")
        lines.append((row.loss, row.layout, *sizes, f"{row.deviation:.1e}", bound, row.kind))
    numbers = ("attention\nlayers", "weights", "largest distance\nfrom exact descent", "bound for\nthis prompt", "")
    print_table(("loss", "layout"), numbers, lines)


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
