"""Timing and peak memory of small jobs, each in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


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
