"""Feeds mutated files and texts to the readers: python -m tools.fuzz onnx --count 100000

Targets: onnx, safetensors, csv, expressions. Every input is made from a seed and a number, so that a finding can be
repeated with --start. A reader may refuse an input by an AnchorheadError and in no other way: another exception, more
than LIMIT_S seconds, more than LIMIT_BYTES of memory or the death of the process is a finding, which is kept in
out/fuzz and named at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anchorhead.errors import AnchorheadError
from tools.fuzz_inputs import TARGETS
from tools.fuzz_mutations import mutated

LIMIT_S = 10.0
LIMIT_BYTES = 2 * 2**30
FOLDER = Path(__file__).parents[1] / "out" / "fuzz"
MEMORY = Path("/dev/shm")


@dataclass
class Findings:
    """What went wrong, and how many inputs were refused or read."""

    refused: int = 0
    accepted: int = 0
    found: list[str] = field(default_factory=list)


def inputs(name: str, seed: int, start: int, count: int) -> Iterator[tuple[int, bytes]]:
    target = TARGETS[name]
    seeds = target.seeds()
    for number in range(start, start + count):
        yield number, mutated(seeds, target, random.Random(f"{name} {seed} {number}"))


def tried(name: str, data: bytes, path: Path) -> str | None:
    """What went wrong with an input, None if nothing did; raises AnchorheadError where it was refused."""
    began = time.process_time()
    try:
        TARGETS[name].read(data, path)
    except AnchorheadError:
        raise
    except (Exception, MemoryError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:120]} at {Path(place.filename).name}:{place.lineno}"
    took = time.process_time() - began
    return f"took {took:.1f} s" if took > LIMIT_S else None


def run(
    name: str, seed: int, start: int, count: int, path: Path, tell: Callable[[int], None] | None = None
) -> Findings:
    """All inputs in this process."""
    result = Findings()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, data in inputs(name, seed, start, count):
            if tell is not None:
                tell(number)
            try:
                wrong = tried(name, data, path)
            except AnchorheadError:
                result.refused += 1
                continue
            result.accepted += wrong is None
            if wrong is not None:
                result.found.append(f"{number}: {wrong}")
    return result


def _worker(name: str, seed: int, start: int, count: int, at: Any, results: Any) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_used() + LIMIT_BYTES,) * 2)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        found = run(
            name, seed, start, count, Path(folder) / f"input.{name}", lambda number: setattr(at, "value", number)
        )
    results.put(found)


def _used() -> int:
    """The bytes of data that this process has now."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData"))


def guarded(name: str, seed: int, start: int, count: int) -> Findings:
    """All inputs in a process of their own, so that its death, or an input that never ends, is a finding."""
    context = multiprocessing.get_context("fork")
    at, results = context.Value("q", start), context.SimpleQueue()
    worker = context.Process(target=_worker, args=(name, seed, start, count, at, results))
    worker.start()
    last, since = start, time.perf_counter()
    while worker.is_alive() and results.empty():
        worker.join(0.5)
        if at.value != last:
            last, since = at.value, time.perf_counter()
        elif time.perf_counter() - since > 3 * LIMIT_S:
            worker.kill()
    result = results.get() if not results.empty() else Findings()
    worker.join()
    if worker.exitcode:
        what = "never ended" if time.perf_counter() - since > 3 * LIMIT_S else f"ended the process ({worker.exitcode})"
        result = Findings(found=[f"{at.value}: {what}"])
        rest = start + count - at.value - 1
        if rest > 0:
            after = guarded(name, seed, at.value + 1, rest)
            result = Findings(after.refused, after.accepted, result.found + after.found)
    return result


def warm_up(name: str) -> None:
    """Valid inputs are read once, so that what a reader imports is there before limits are set."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for data in TARGETS[name].seeds():
            with contextlib.suppress(AnchorheadError):
                TARGETS[name].read(data, Path(folder) / f"input.{name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--start", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began, total = time.perf_counter(), Findings()
    warm_up(given.target)
    for start in range(given.start, given.start + given.count, 5_000):
        part = guarded(given.target, given.seed, start, min(5_000, given.start + given.count - start))
        total.refused, total.accepted = total.refused + part.refused, total.accepted + part.accepted
        total.found += part.found
        done, took = start + 5_000 - given.start, time.perf_counter() - began
        print(f"{min(done, given.count):,} inputs, {took:.0f} s: {total.refused:,} refused, {total.accepted:,} read, "
              f"{len(total.found)} findings", flush=True)  # fmt: skip
    for number, data in inputs_of(given.target, given.seed, [int(line.partition(":")[0]) for line in total.found[:20]]):
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{given.target}-{given.seed}-{number}").write_bytes(data)
    print("\n".join(total.found[:50]))
    return 1 if total.found else 0


def inputs_of(name: str, seed: int, numbers: list[int]) -> Iterator[tuple[int, bytes]]:
    for number in numbers:
        yield from inputs(name, seed, number, 1)


if __name__ == "__main__":
    sys.exit(main())
