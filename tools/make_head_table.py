"""Makes the table of named heads that ships with the package, or proves again every head that is in it.

    python -m tools.make_head_table            what is missing, two processes, the table written after every function
    python -m tools.make_head_table gelu silu  these functions anew; heads that were better stay
    python -m tools.make_head_table --verify   every head proven again, against the bounds in the table

The solver climbs from few anchors to many, in every way that it has; what it finds is proven; a head stays if its
proven bound is smaller than that of every head with fewer anchors.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import cast, get_args

os.environ.setdefault("OMP_NUM_THREADS", "1")

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.heads.solver.problem import Problem
from anchorhead.heads.solver.search import Search, Way
from anchorhead.heads.solver.single import Solution
from anchorhead.heads.tables.table import PATH, STANDARD, Entry, Frontier, frontiers, read, write
from anchorhead.language.targets import ScalarTarget, target_of
from anchorhead.progress import Status
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.heads.head import prove_head
from tools.proven_again import failures, larger

ENOUGH = 5e-12  # an estimated error with which the climb ends: the levels that are printed go down to 1e-10
MAX_ANCHORS = 40
LOOSEST = 2.2  # a bound is between one and two estimates: heads estimated beyond that cannot be the best
Key = tuple[str, float, float, str]


class OutOfTime(Exception):
    """The climb took longer than it may."""


@dataclass
class Climb:
    """Everything that the solver finds for one target, and how far it went."""

    target: ScalarTarget
    dtype: Dtype
    limit_s: float
    top: int = MAX_ANCHORS
    searched: int = MAX_ANCHORS
    notes: list[str] = field(default_factory=list)
    reached: int = 0
    since: float = 0.0

    def solutions(self) -> Iterator[Solution]:
        """From every way, in `limit_s` processor seconds each; once one finds enough, the others go no further."""
        problem = Problem.of(self.target.values, self.target.kinks, self.target.low, self.target.high)
        search = Search(problem, self.dtype, progress=self._on_rung)
        for way in search.ways:
            yield from self._of(search, way)

    def _of(self, search: Search, way: Way) -> Iterator[Solution]:
        self.since, self.reached = time.process_time(), way.fewest - 1
        try:
            for solution in search.climb(way, self.top):
                yield solution
                if solution.total <= ENOUGH:
                    self.top = solution.atom.anchors
                    self.searched = min(self.searched, self.top)
                    return
        except OutOfTime:
            self.notes.append(f"{type(way).__name__} out of time at {self.reached} anchors")
            self.searched = min(self.searched, self.reached)

    def _on_rung(self, status: Status) -> None:
        self.reached = status.anchors or self.reached
        if time.process_time() - self.since > self.limit_s:
            raise OutOfTime


def frontier(key: Key, limit_s: float) -> Frontier:
    """The heads for one function, interval and dtype; a failure is a note."""
    function, low, high, kind = key
    dtype = cast(Dtype, kind)
    try:
        target = cast(ScalarTarget, target_of(function, (low, high)))
        climb = Climb(target, dtype, limit_s)
        found = sorted(climb.solutions(), key=lambda solution: (solution.atom.anchors, solution.total))
    except (AnchorheadError, ArithmeticError, ValueError) as error:
        return Frontier(function, low, high, dtype, (), 0, f"failed: {error}")
    heads: list[Entry] = []
    least, proven = float("inf"), float("inf")
    for solution in found:
        least = min(least, solution.total)
        if solution.total > LOOSEST * least:
            continue
        entry = proved(solution, target)
        if entry.bound < proven:
            proven = entry.bound
            heads = [*(head for head in heads if head.atom.anchors < entry.atom.anchors), entry]
    return Frontier(function, low, high, dtype, tuple(heads), climb.searched, "; ".join(climb.notes))


def proved(solution: Solution, target: ScalarTarget) -> Entry:
    atom = solution.atom
    bound = prove_head(atom.parts, atom.origin, atom.bias, target, arithmetic_of(atom.dtype))
    return Entry(atom, bound.exact, bound.rounding, bound.found, bound.at)


def best_of(old: Frontier, new: Frontier) -> Frontier:
    """The heads of both that are better than all with fewer anchors."""
    heads: list[Entry] = []
    for entry in sorted((*old.heads, *new.heads), key=lambda entry: (entry.atom.anchors, entry.bound)):
        if not heads or entry.bound < heads[-1].bound:
            heads.append(entry)
    return Frontier(*new.key[:3], new.dtype, tuple(heads), max(old.searched, new.searched), new.note)


def disagreements(known: Frontier) -> list[str]:
    """The heads of a frontier whose stored bound a new proof does not confirm."""
    target = target_of(known.function, (known.low, known.high))
    wrong = []
    for entry in known.heads:
        atom = entry.atom
        again = prove_head(atom.parts, atom.origin, atom.bias, target, arithmetic_of(atom.dtype))
        if larger((again.exact, again.rounding), (entry.exact, entry.rounding)):
            wrong.append(
                f"{known.key} with {atom.anchors} anchors: {again.total:.6g}, the table says {entry.bound:.6g}"
            )
    return wrong


def make(names: list[str], limit_s: float, jobs: int) -> None:
    """Solves what is named or missing and writes the table after each."""
    models = {dtype: str(arithmetic_of(dtype)) for dtype in get_args(Dtype)}
    held = {one.key: one for one in frontiers()} if read(PATH)[0] == models else {}
    wanted = [(f, *on, dtype) for dtype in sorted(models, reverse=True) for f, ons in STANDARD.items() for on in ons]
    held = {key: held[key] for key in wanted if key in held}
    todo = [key for key in wanted if key[0] in names or (not names and key not in held)]
    start = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(frontier, key, limit_s) for key in todo]
        for done in as_completed(running):
            one = done.result()
            one = best_of(held[one.key], one) if one.key in held else one
            held[one.key] = one
            write(PATH, models, held.values())
            shown = "  ".join(f"{entry.atom.anchors}:{entry.bound:.1e}" for entry in one.heads)
            print(f"{time.monotonic() - start:6.0f} s  {one.key}  {shown}  {one.note}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="functions to solve anew; none: what is missing")
    parser.add_argument("--limit", type=float, default=60.0, help="processor seconds for each way to build a head")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--verify", action="store_true", help="prove every head of the table again")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(STANDARD))
    if unknown:
        parser.error(f"{', '.join(unknown)}: known are {', '.join(STANDARD)}")
    if given.verify:
        return 1 if failures(frontiers(), disagreements, given.jobs) else 0
    make(given.names, given.limit, given.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
