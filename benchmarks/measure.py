"""Timing and peak memory of small jobs, each in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH = 112


def best_time(job: Callable[[], Any], repeats: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of several runs, in seconds, after one to warm up."""
    job()
    times = []
    for _ in range(repeats):
        start = clock()
        job()
        times.append(clock() - start)
    return min(times)


def interleaved(jobs: Sequence[Callable[[], Any]], rounds: int, clock: Callable[[], float]) -> list[float]:
    """The median time of each job, one after the other in every round, so that whatever else runs meets all alike."""
    for job in jobs:
        job()
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds):
        for job, own in zip(jobs, times, strict=True):
            job()  # its own arrays are in the cache, not the other's
            start = clock()
            job()
            own.append(clock() - start)
    return [sorted(own)[rounds // 2] for own in times]


def peak_megabytes() -> float:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_own_process(module: str, *arguments: str, **environment: str) -> Any:
    """What `python -m module arguments` prints as JSON on its last line."""
    given = {**os.environ, **environment}
    run = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=True, env=given
    )
    return json.loads(run.stdout.splitlines()[-1])


def table_of(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    """The rows of a benchmark side by side."""
    table = Table(title=title, title_justify="left")
    for column in rows[0]:
        table.add_column(
            column, justify="left" if column == "case" else "right", no_wrap=column == "case", overflow="fold"
        )
    for row in rows:
        table.add_row(*map(_shown, row.values()))
    return table


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if isinstance(value, int) or 1_000 <= abs(value) < 1e6 else f"{value:.3g}"


def command(title: str, run: Callable[[str], Any], main: Callable[[], list[dict[str, Any]]]) -> None:
    """`python -m module CASE` prints the figures of one case as JSON, without a case a table of all.

    title   its first line stands above the table, the others below it
    """
    if len(sys.argv) > 1:
        sys.stdout.write(json.dumps(run(sys.argv[1])) + "\n")
    else:
        first, _, rest = title.partition("\n")
        console = Console(width=WIDTH)
        console.print(table_of(first, main()))
        console.print(rest.strip(), markup=False, highlight=False, soft_wrap=True)
