"""Gradient descent on 10,000 examples of 50 features, 100 steps: attention layers beside numpy's own descent.

The network reads each example twice, once with either sign, and its two heads share keys and values. Processor time;
torch keeps to one thread, since two that wait for each other count twice.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from anchorhead import incontext
from benchmarks.measure import best_time, command, in_own_process, peak_megabytes

EXAMPLES, FEATURES, STEPS, RATE = 10_000, 50, 100, 0.3
WAYS = ("numpy", "attention, float64", "attention, float32")


def main() -> list[dict]:
    rows = [in_own_process("benchmarks.in_context", way) for way in WAYS]
    for row in rows:
        row["time ratio"] = row["run s"] / rows[0]["run s"]
    return rows


def run(way: str) -> dict:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((EXAMPLES, FEATURES))
    y = X @ rng.standard_normal(FEATURES) + rng.standard_normal(EXAMPLES)
    y = y / y.std()
    start = time.perf_counter()
    net = incontext.gradient_descent(
        steps=STEPS,
        rate=RATE,
        features=FEATURES,
        examples=EXAMPLES,
        on=(-6, 6),
        labels=(-6, 6),
        dtype="float32" if way.endswith("32") else "float64",
        outside="ignore",
    )
    build = time.perf_counter() - start
    prompt = net.prompt(X, y)
    descent = net.descent
    job = (lambda: descent.path(X, y)[-1]) if way == WAYS[0] else (lambda: net(prompt))
    seconds = best_time(job, 3, time.process_time)
    difference = float(np.abs(job() - descent.path(X, y)[-1]).max())
    return {
        "case": way,
        "build s": 0.0 if way == WAYS[0] else build,
        "run s": seconds,
        "MB": peak_megabytes(),
        "difference": difference,
    }


if __name__ == "__main__":
    command(__doc__ or "", run, main)
