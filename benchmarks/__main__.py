"""Runs every benchmark, prints its table and writes all figures to out/bench.json."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import torch
from rich.console import Console

from benchmarks import (
    attention_only,
    convert,
    direct,
    direct_gpu,
    frontier,
    in_context,
    learn,
    threads,
    truncated_linear,
)
from benchmarks.measure import WIDTH, table_of

BENCHMARKS = {
    "truncated_linear": truncated_linear,
    "convert": convert,
    "direct": direct,
    "direct_gpu": direct_gpu,
    "attention_only": attention_only,
    "in_context": in_context,
    "learn": learn,
    "frontier": frontier,
    "threads": threads,
}


def main() -> None:
    console = Console(width=WIDTH)
    results = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__}
    for name, module in BENCHMARKS.items():
        rows = results[name] = module.main()
        console.print(table_of((module.__doc__ or name).splitlines()[0], rows))
    path = Path("out/bench.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
