"""Jobs one after the other, within a budget of seconds; a state that the next run goes on from."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from anchorhead.disk import read_whole, write_atomically
from anchorhead.errors import AnchorheadError
from tools.exhaust import table
from tools.exhaust.jobs import Job
from tools.exhaust.kernels import compile_kernels
from tools.exhaust.table import Row
from tools.exhaust.walk import Walk

CHUNK = {"cuda": 2**26, "cpu": 2**20}
"""Inputs at once: a few arrays of 0.5 GB each on a GPU, what stays in a cache on a CPU."""
EVERY_S = 10.0
"""Seconds between two states that are saved, and two lines that say how far a job is."""
FORMAT = 1
LARGEST_STATE = 100_000_000


class State:
    """What is known of all jobs so far, by name: where they are, or their rows; a file if a path is given."""

    def __init__(self, path: Path | None = None) -> None:
        self.path, self.jobs = path, dict[str, Any]()
        if path is None or not path.exists():
            return
        try:
            data = json.loads(read_whole(path, "the state of tools.exhaust", LARGEST_STATE))
            if data["format"] != FORMAT:
                raise ValueError("another format")
            self.jobs = dict(data["jobs"])
        except (ValueError, KeyError, TypeError) as error:
            raise AnchorheadError(
                f"{path} is not a state of tools.exhaust, or is damaged ({error}): give another file, or delete it"
            ) from error

    def of(self, job: Job, digest: str) -> dict[str, Any]:
        """What is known of a job; nothing if weights, bounds, inputs or device were others."""
        known = self.jobs.get(job.name, {})
        return known if known.get("digest") == digest else {}

    def put(self, job: Job, digest: str, known: dict[str, Any]) -> None:
        self.jobs[job.name] = {"digest": digest, **known}
        if self.path is not None:
            write_atomically(self.path, json.dumps({"format": FORMAT, "jobs": self.jobs}).encode())


@dataclass
class Outcome:
    """The rows of jobs that are done, why others could not be, and how many are left for another run."""

    rows: list[Row] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0


def device_name(kind: str) -> str:
    """As the table has it."""
    return torch.cuda.get_device_name() if kind == "cuda" else "CPU"


def exhaust(
    chosen: Sequence[Job], kind: str, most: int | None, chunk: int | None, budget: float, state: State
) -> Outcome:
    """Works through the jobs on a kind of device, "cuda" or "cpu".

    most    inputs of each head; None: all
    chunk   inputs at once; None: as CHUNK says
    budget  seconds, after which no job goes on
    """
    device, end = torch.device(kind), time.monotonic() + budget
    shown = device_name(kind)
    digests = [job.digest(job.inputs(most), shown) for job in chosen]
    ahead = [job for job, digest in zip(chosen, digests, strict=True) if "rows" not in state.of(job, digest)]
    if kind == "cuda" and ahead:
        print(f"{compile_kernels(ahead)} kernels compiled", flush=True)
    outcome = Outcome()
    for number, (job, digest) in enumerate(zip(chosen, digests, strict=True), 1):
        if "rows" not in state.of(job, digest):
            if time.monotonic() > end:
                outcome.left += 1
                continue
            print(f"{number}/{len(chosen)} {job.name}: ", end="", flush=True)
            try:
                walk = Walk(job, job.inputs(most), device)
                _go(walk, chunk or CHUNK[kind], state, digest, end, shown)
            except Exception as error:  # whatever a kernel or a device runs into: the other ways are tried all the same
                outcome.failed[job.name] = f"{type(error).__name__}: {error}".splitlines()[0]
                print(f"does not work here: {outcome.failed[job.name]}", flush=True)
                continue
            if not walk.complete:
                outcome.left += 1
                continue
        outcome.rows += [Row(**row) for row in state.of(job, digest)["rows"]]
    return outcome


def _go(walk: Walk, size: int, state: State, digest: str, end: float, shown: str) -> None:
    """One job, from where the state has it to where time is up; its rows in the state, and a line, once it is done."""
    job, start = walk.job, time.monotonic()
    if known := state.of(job, digest):
        walk.resume(known)
    before, saved = walk.done, start

    def after_chunk() -> bool:
        nonlocal saved
        now = time.monotonic()
        going = now < end or walk.complete
        if now - saved > EVERY_S or not going:
            saved = now
            state.put(job, digest, walk.to_json())
            print(f"{walk.done / walk.inputs.count:.0%} ", end="" if going else "\n", flush=True)
        return going

    walk.go(size, after_chunk)
    if not walk.complete:
        return
    rows = table.rows(walk, shown)
    state.put(job, digest, {"rows": [vars(row) for row in rows]})
    took = max(time.monotonic() - start, 1e-9)
    rate = (walk.done - before) * len(job.heads) / took
    print(f"{table.report(rows)} ({took:.1f} s, {rate:.2g}/s)", flush=True)
    if any(int(row.violations) for row in rows):
        _tell_violations(walk)


def _tell_violations(walk: Walk) -> None:
    for head, judged in zip(walk.job.heads, walk.judged(), strict=True):
        for seen in judged.exceeding:
            print(
                f"VIOLATION: {walk.job.name}, {head.anchors} anchors, bound {head.bound!r}: at {seen.x.hex()}, "
                f"u {seen.u.hex()}, computed {seen.computed.hex()}, {seen.share!r} of what is allowed",
                flush=True,
            )
