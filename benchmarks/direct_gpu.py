"""Converted networks on a GPU beside the networks they came from: time over the MLP's own, in torch.

As a call computes it, what it is given looked at and the answer there: wall clock, medians of rounds in which both run
in turn. "launches" are what one call starts on the GPU, ours and the MLP's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

import anchorhead as ah
from benchmarks.convert import forward, maps, random_network
from benchmarks.direct import OTHERS, WITHIN
from benchmarks.measure import command, in_own_process, interleaved

NAMES = ("relu", "gelu", "silu", "tanh", "sigmoid", "elu", "leaky_relu", "hardswish")
CASES = [f"{sizes}, {dtype}, {name}" for sizes in ("10-256-1", "64-1024-64") for dtype in WITHIN for name in NAMES]
ROWS = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 51


def main() -> list[dict]:
    if not torch.cuda.is_available():
        return [{"case": "no GPU here"}]
    return [row for case in CASES for row in in_own_process("benchmarks.direct_gpu", case)]


def run(case: str) -> list[dict]:
    sizes, dtype, name = case.split(", ")
    target = random_network([int(size) for size in sizes.split("-")], name)
    network = ah.convert(target, on=(0, 1), within=WITHIN[dtype], dtype=dtype)
    kind, found = getattr(torch, dtype), []
    layers = [tuple(torch.tensor(np.array(one)).to("cuda", kind) for one in (a.weight, a.bias)) for a in maps(target)]
    for rows in ROWS:
        x = torch.rand((rows, *target.input_shape), device="cuda", dtype=kind)
        jobs = [partial(forward, layers, x, OTHERS.get(name, torch.relu)), partial(network, x)]
        original, ours = interleaved([partial(_done, job) for job in jobs], ROUNDS, time.perf_counter)
        found.append(
            {
                "case": case,
                "rows": rows,
                "MLP ms": 1e3 * original,
                "run ms": 1e3 * ours,
                "time ratio": ours / original,
                "launches": "{} and {}".format(*(_launches(job) for job in reversed(jobs))),
            }
        )
    return found


def _done(job: Callable[[], Any]) -> None:
    job()
    torch.cuda.synchronize()


def _launches(job: Callable[[], Any]) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        _done(job)
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profile.events())


if __name__ == "__main__":
    command(__doc__ or "", run, main)
