"""Small networks on one thread, beside all of torch's threads: seconds of the clock and of all cores, and ratios.

"numbers" is how many a run handles at its widest place, which decides: up to network.threads.SMALL it keeps to one
thread, and beyond both columns are the same. Ratios below 1 say what one thread saves; on a machine with other work to
do they are far smaller.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import anchorhead as ah
from anchorhead import incontext
from anchorhead.network import threads
from benchmarks.measure import best_time, command, in_own_process

CASES = {
    "head, 1 number": lambda: _head(1),
    "head, 10,000 numbers": lambda: _head(10_000),
    "head, 100,000 numbers": lambda: _head(100_000),
    "learner, 40 steps, 20 examples": lambda: _learner(20),
    "learner, 40 steps, 300 examples": lambda: _learner(300),
    "learner, 40 steps, 3,000 examples": lambda: _learner(3_000),
    "ridge regression, 120 rows": lambda: _ridge(120),
}


def main() -> list[dict]:
    return [in_own_process("benchmarks.threads", case) for case in CASES]


def run(case: str) -> dict:
    job, numbers = CASES[case]()
    row: dict[str, Any] = {"case": case, "numbers": numbers, "threads": torch.get_num_threads()}
    for name, clock in (("s", time.perf_counter), ("core s", time.process_time)):
        row[name] = best_time(job, 3, clock)
        row[f"{name}, all threads"] = _on_all_threads(lambda clock=clock: best_time(job, 3, clock))
    row["ratio"] = row["s"] / row["s, all threads"]
    row["core ratio"] = row["core s"] / row["core s, all threads"]
    return row


def _on_all_threads(job: Callable[[], float]) -> float:
    before, threads.SMALL = threads.SMALL, -1
    try:
        return job()
    finally:
        threads.SMALL = before


def _head(batch: int) -> tuple[Callable[[], Any], int]:
    net = ah.head("tanh", (-3, 3), anchors=2).network
    x = np.random.default_rng(0).uniform(-3, 3, (batch, 1, 1))
    return lambda: net(x), net._calls.numbers(torch.from_numpy(x))


def _learner(examples: int) -> tuple[Callable[[], Any], int]:
    net = incontext.gradient_descent(steps=40, features=4, rate=0.05, on=(-6, 6), examples=examples, outside="ignore")
    rng = np.random.default_rng(0)
    prompt = net.prompt(rng.normal(size=(examples, 4)), rng.normal(size=examples))
    return lambda: net(prompt), net._calls.numbers(torch.from_numpy(prompt))


def _ridge(rows: int) -> tuple[Callable[[], Any], int]:
    X = np.random.default_rng(0).normal(size=(rows, 5))
    y = X @ np.arange(5.0)
    model = incontext.Ridge().fit(X, y)
    prompt = model.network_.prompt(X, y)
    return lambda: model.fit(X, y), model.network_._calls.numbers(torch.from_numpy(prompt))


if __name__ == "__main__":
    command(__doc__ or "", run, main)
