"""Runs every benchmark, prints its table and writes all figures to out/bench.json."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import convert, frontier, in_context, learn, truncated_linear

BENCHMARKS = {
    "truncated_linear": truncated_linear,
    "convert": convert,
    "in_context": in_context,
    "learn": learn,
    "frontier": frontier,
}


def main() -> None:
    console = Console(width=100)
    results = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__}
    for name, module in BENCHMARKS.items():
        rows = results[name] = module.main()
        table = Table(title=(module.__doc__ or name).splitlines()[0], title_justify="left")
        for column in rows[0]:
            table.add_column(column, justify="left" if column == "case" else "right", overflow="fold")
        for row in rows:
            table.add_row(*(value if isinstance(value, str) else f"{value:.3g}" for value in row.values()))
        console.print(table)
    path = Path("out/bench.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
