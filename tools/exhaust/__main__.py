"""Every float there is, through every head that ships: the largest error and where, beside the bound that is proven.

    python -m tools.exhaust --list                              what there is to do on this machine, and how much
    python -m tools.exhaust --only "own gelu" --slice 1000000   a million inputs of each head for gelu: a try
    python -m tools.exhaust --dtypes float16 bfloat16           all 65,536 inputs of half precision: seconds on a CPU
    python -m tools.exhaust --state state.json --output exhausted.csv     all: minutes on a GPU, days on a CPU

With --missing what the table of --output already shows is left out: heads by the bounds and ways that stand there.
With --state what was done is kept, and the next call goes on from there. With --output rows go to a table (others in it
stay), with --page to a page. Exit status: 0 where all that was asked for is done and no bound is exceeded, 1 if a bound
is exceeded or a way of evaluation does not work here, 3 if the budget was spent first: call again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import torch

from anchorhead.disk import check_writable
from tools.exhaust import table
from tools.exhaust.floats import DTYPES
from tools.exhaust.jobs import ORDER, Job, jobs
from tools.exhaust.run import State, device_name, exhaust


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    kind = given.device if given.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    ways = kind if find_spec("triton") else "cpu"
    chosen = [job for job in jobs(ways, given.dtypes) if _wanted(job, given.only, given.paths)]
    if not chosen:
        parser.error(f"--only {given.only} --paths {given.paths}: no job is called so; see --list")
    if given.missing and given.output is None:
        parser.error("--missing is what a table lacks: give --output, too")
    held = [] if given.output is None else table.read(given.output)
    if given.missing:
        shown = device_name(kind)
        chosen = [left for job in chosen if (left := table.missing(held, job, shown)) is not None]
    if given.list:
        sizes = [len(job.heads) * job.inputs(given.slice).count for job in chosen]
        for job, size in zip(chosen, sizes, strict=True):
            print(f"{job.name}: {len(job.heads)} heads, {size:.3g} evaluations")
        print(f"{sum(sizes):.3g} evaluations in all")
        return 0
    if given.page is not None and given.output is None:
        parser.error(f"--page {given.page} is made from a table: give --output, too")
    for path in (given.state, given.output, given.page):
        if path is not None:
            check_writable(path)
    outcome = exhaust(chosen, kind, given.slice, given.chunk, given.budget, State(given.state))
    if given.output is not None:
        table.write(given.output, held := table.merged([*held, *outcome.rows]))
        if given.page is not None:
            table.write_page(given.page, held)
    violations, done = (sum(int(getattr(row, name)) for row in outcome.rows) for name in ("violations", "inputs"))
    print(f"{done:.4g} evaluations of {len(outcome.rows)} heads and ways, {violations:,} violations; ", end="")
    print(f"{outcome.left} jobs are left")
    for name, why in outcome.failed.items():
        print(f"not done: {name}: {why}")
    return 1 if violations or outcome.failed else 3 if outcome.left else 0


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
    add("--missing", action="store_true", help="what the table of --output lacks alone")
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
