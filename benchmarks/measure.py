"""Timing and peak memory of small jobs, each in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH = 100


def best_time(job: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest of several runs, in seconds, after one to warm up."""
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_megabytes() -> float:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_own_process(module: str, *arguments: str) -> dict[str, Any]:
    """What `python -m module arguments` prints as JSON on its last line."""
    run = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def table_of(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    """The rows of a benchmark side by side."""
    table = Table(title=title, title_justify="left")
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "case" else "right", overflow="fold")
    for row in rows:
        table.add_row(*(value if isinstance(value, str) else f"{value:.3g}" for value in row.values()))
    return table


def command(title: str, run: Callable[[str], dict[str, Any]], main: Callable[[], list[dict[str, Any]]]) -> None:
    """`python -m module CASE` prints the figures of one case as JSON, without a case a table of all."""
    if len(sys.argv) > 1:
        sys.stdout.write(json.dumps(run(sys.argv[1])) + "\n")
    else:
        Console(width=WIDTH).print(table_of(title.splitlines()[0], main()))
