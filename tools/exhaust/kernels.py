"""Triton's kernels, compiled side by side before they are needed: one by one they would take longer than all inputs.

A kernel is compiled for the numbers of keys and powers of a head. What one process compiles stays in Triton's cache on
disk, where the next finds it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

import torch

from tools.exhaust.floats import DTYPES
from tools.exhaust.jobs import Job, attention

SIZE = 2**12
"""Of the tensors that kernels are compiled for: any multiple of 16 shares them."""
MAX_PROCESSES = 8


def compile_kernels(chosen: Sequence[Job]) -> int:
    """Compiles what the jobs' heads need by the path triton; how many kernels that was. What fails, fails again, and is
    told, where it is needed."""
    needed: dict[str, tuple[dict[str, Any], str]] = {}
    for job in chosen:
        for numbers in (one for head in job.heads for one in head.numbers() if job.path == "triton"):
            module = attention(numbers, "triton")
            shapes = [(name, tuple(buffer.shape)) for name, buffer in module.named_buffers()]
            needed[str((shapes, module.structure, job.dtype))] = numbers, job.dtype
    processes = min(MAX_PROCESSES, os.cpu_count() or 1, len(needed))
    if processes:
        with suppress(BrokenProcessPool), ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            for done in [pool.submit(_compile, *one) for one in needed.values()]:
                done.exception()
    return len(needed)


def _compile(numbers: dict[str, Any], dtype: str) -> None:
    x = torch.ones(SIZE, dtype=DTYPES[dtype][0], device="cuda")
    attention(numbers, "triton").cuda()(*([x, x] if "parts" in numbers else [x]))
    torch.cuda.synchronize()
