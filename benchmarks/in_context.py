"""Gradient descent on 10,000 examples of 50 features, 100 steps: attention layers beside numpy's own descent.

The network reads each example twice, once with either sign, and its two heads share keys and values. Beside it the
plainest loop that numpy has for the same steps, in the same dtype. Processor time; torch and numpy keep to one thread,
since two that wait for each other count twice.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from anchorhead import incontext
from benchmarks.measure import best_time, command, in_own_process, peak_megabytes

EXAMPLES, FEATURES, STEPS, RATE = 10_000, 50, 100, 0.3
WAYS = tuple(f"{what}, {dtype}" for dtype in ("float64", "float32") for what in ("numpy", "attention"))


def main() -> list[dict]:
    rows = [in_own_process("benchmarks.in_context", way) for way in WAYS]
    for numpy, attention in zip(rows[::2], rows[1::2], strict=True):
        attention["time ratio"] = attention["run s"] / numpy["run s"]
    return rows


def run(way: str) -> dict:
    torch.set_num_threads(1)
    what, dtype = way.split(", ")
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
        dtype=dtype,
        outside="ignore",
    )
    build = time.perf_counter() - start
    prompt, given = net.prompt(X, y), (X.astype(dtype), y.astype(dtype))
    job = (lambda: by_numpy(*given)) if what == "numpy" else (lambda: net(prompt))
    seconds = best_time(job, 5, time.process_time)
    return {
        "case": way,
        "build s": 0.0 if what == "numpy" else build,
        "run s": seconds,
        "MB": peak_megabytes(),
        "difference": float(np.abs(job() - by_numpy(X, y)).max()),
    }


def by_numpy(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    w = np.zeros(FEATURES, X.dtype)
    for _ in range(STEPS):
        w -= RATE / EXAMPLES * (X.T @ (X @ w - y))
    return w


if __name__ == "__main__":
    command(__doc__ or "", run, main)
