"""Every float there is, through every head that ships: the largest error and where, beside the bound that is proven.

    python -m tools.exhaust --list                              what there is to do on this machine, and how much
    python -m tools.exhaust --only "own gelu" --slice 1000000   a million inputs of each head for gelu: a try
    python -m tools.exhaust --dtypes float16 bfloat16           all 65,536 inputs of half precision: seconds on a CPU
    python -m tools.exhaust --state state.json --output exhausted.csv     all: minutes on a GPU, days on a CPU

With --state what was done is kept, and the next call goes on from there. With --output rows go to a table (others in it
stay), with --page to a page. Exit status: 0 where all that was asked for is done and no bound is exceeded, 1 if a bound
is exceeded or a way of evaluation does not work here, 3 if the budget was spent first: call again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from anchorhead.disk import check_writable, read_whole, write_atomically
from anchorhead.errors import AnchorheadError
from tools.exhaust import table
from tools.exhaust.floats import DTYPES
from tools.exhaust.jobs import ORDER, Job, jobs
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

    def __init__(self, path: Path | None) -> None:
        self.path, self.jobs = path, dict[str, Any]()
        if path is None or not path.exists():
            return
        try:
            data = json.loads(read_whole(path, "the state of tools.exhaust", LARGEST_STATE))
            if data["format"] != FORMAT:
                raise ValueError("another format")
            self.jobs = dict(data["jobs"])
        except (ValueError, KeyError, TypeError) as error:
            raise AnchorheadError(f"{path} is not a state of tools.exhaust, or is damaged ({error})") from error

    def of(self, job: Job, digest: str) -> dict[str, Any]:
        """What is known of a job; nothing if weights, bounds, inputs or device were others."""
        known = self.jobs.get(job.name, {})
        return known if known.get("digest") == digest else {}

    def put(self, job: Job, digest: str, known: dict[str, Any], save: bool = True) -> None:
        self.jobs[job.name] = {"digest": digest, **known}
        if save and self.path is not None:
            write_atomically(self.path, json.dumps({"format": FORMAT, "jobs": self.jobs}).encode())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    kind = given.device if given.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    ways = kind if find_spec("triton") else "cpu"
    chosen = [job for job in jobs(ways, given.dtypes) if _wanted(job, given.only, given.paths)]
    if not chosen:
        parser.error(f"--only {given.only} --paths {given.paths}: no job is called so; see --list")
    if given.list:
        sizes = [len(job.heads) * job.inputs(given.slice).count for job in chosen]
        for job, size in zip(chosen, sizes, strict=True):
            print(f"{job.name}: {len(job.heads)} heads, {size:.3g} evaluations")
        print(f"{sum(sizes):.3g} evaluations in all")
        return 0
    for path in (given.state, given.output, given.page):
        if path is not None:
            check_writable(path)
    held = [] if given.output is None else table.read(given.output)
    rows, failed, left = exhaust(chosen, kind, given.slice, given.chunk, given.budget, State(given.state))
    if given.output is not None:
        table.write(given.output, held := table.merged([*held, *rows]))
        if given.page is not None:
            table.write_page(given.page, held)
    violations, done = (sum(int(getattr(row, name)) for row in rows) for name in ("violations", "inputs"))
    print(f"{done:.4g} evaluations of {len(rows)} heads and ways, {violations:,} violations; {left} jobs are left")
    for name, why in failed.items():
        print(f"not done: {name}: {why}")
    return 1 if violations or failed else 3 if left else 0


def exhaust(
    chosen: Sequence[Job], kind: str, most: int | None, chunk: int | None, budget: float, state: State
) -> tuple[list[Row], dict[str, str], int]:
    """Works through the jobs; the rows of those that are done, why others could not be, and how many are left."""
    device, start = torch.device(kind), time.monotonic()
    shown = torch.cuda.get_device_name(device) if kind == "cuda" else "CPU"
    digests = [job.digest(job.inputs(most), shown) for job in chosen]
    ahead = [job for job, digest in zip(chosen, digests, strict=True) if "rows" not in state.of(job, digest)]
    if kind == "cuda" and (kernels := compile_kernels(ahead)):
        print(f"{kernels} kernels compiled in {time.monotonic() - start:.0f} s", flush=True)
    rows, failed, left = list[Row](), dict[str, str](), 0
    for number, (job, digest) in enumerate(zip(chosen, digests, strict=True), 1):
        inputs, known = job.inputs(most), state.of(job, digest)
        if "rows" not in known:
            spent = time.monotonic() - start
            if spent > budget:
                left += 1
                continue
            try:
                walk = Walk(job, inputs, device)
                if known:
                    walk.resume(known)
                _go(walk, chunk or CHUNK[kind], state, digest, start + budget)
            except (RuntimeError, ValueError, ImportError, AnchorheadError) as error:
                failed[job.name] = f"{type(error).__name__}: {error}".splitlines()[0]
                print(f"{number}/{len(chosen)} {job.name}: does not work here: {failed[job.name]}", flush=True)
                continue
            if not walk.complete:
                left += 1
                continue
            known = {"rows": [vars(row) for row in table.rows(walk, shown)]}
            state.put(job, digest, known)
            found = [Row(**row) for row in known["rows"]]
            took = time.monotonic() - start - spent
            rate = inputs.count * len(job.heads) / max(took, 1e-9)
            print(f"{number}/{len(chosen)} {table.report(job, found)}  ({took:.1f} s, {rate:.2g}/s)", flush=True)
            if any(int(row.violations) for row in found):
                _tell_violations(job, walk)
        rows += [Row(**row) for row in known["rows"]]
    return rows, failed, left


def _go(walk: Walk, size: int, state: State, digest: str, deadline: float) -> None:
    last = time.monotonic()

    def after_chunk() -> bool:
        nonlocal last
        now = time.monotonic()
        going = now < deadline or walk.complete
        if now - last > EVERY_S or not going:
            last = now
            state.put(walk.job, digest, walk.to_json())
            print(f"  {walk.job.name}: {walk.done / walk.inputs.count:.1%}", flush=True)
        return going

    walk.go(size, after_chunk)


def _tell_violations(job: Job, walk: Walk) -> None:
    for head, judged in zip(job.heads, walk.judged(), strict=True):
        for seen in judged.exceeding:
            print(
                f"VIOLATION: {job.name}, {head.anchors} anchors, bound {head.bound!r}: at {seen.x.hex()}, "
                f"u {seen.u.hex()}, computed {seen.computed.hex()}, {seen.share!r} of what is allowed",
                flush=True,
            )


def _wanted(job: Job, only: Sequence[str], paths: Sequence[str]) -> bool:
    words = job.name.split()
    return (not only or any(set(one.split()) <= set(words) for one in only)) and (not paths or job.path in paths)


def _count(text: str) -> int:
    base, _, power = text.partition("^")
    number = int(base) ** int(power) if power else int(base)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number: give one such as 1000000 or 2^20")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.exhaust", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--list", action="store_true", help="say what there is to do, and do nothing")
    add("--only", nargs="+", default=[], metavar="WORDS", help='jobs with all these words: "own gelu" "table sin"')
    add("--paths", nargs="+", default=[], choices=ORDER, help="these ways to evaluate alone; else all")
    add("--dtypes", nargs="+", default=["float32"], choices=list(DTYPES), help="of the inputs; float32 unless told")
    add("--device", default="auto", choices=["auto", "cuda", "cpu"], help="a GPU if there is one")
    add("--slice", type=_count, metavar="N", help="about so many inputs a head, not all: to try it")
    add("--chunk", type=_count, metavar="N", help="inputs at once: 2^26 on a GPU, 2^20 on a CPU; changes no result")
    add("--budget", type=float, default=float("inf"), metavar="SECONDS", help="stop after so many seconds")
    add("--state", type=Path, metavar="FILE", help="where to keep what is done, and to go on from")
    add("--output", type=Path, metavar="FILE", help="the table of rows (.csv); rows of other jobs in it stay")
    add("--page", type=Path, metavar="FILE", help="the page whose table is made anew from --output")
    return parser


if __name__ == "__main__":
    sys.exit(main())
