"""What was exhausted, as a file of comma-separated values with a row for each head, and as a page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import reduce
from itertools import groupby
from pathlib import Path

import numpy as np

from anchorhead.disk import read_whole, write_atomically
from anchorhead.errors import AnchorheadError
from tools.exhaust.floats import DTYPES
from tools.exhaust.jobs import Job
from tools.exhaust.walk import Walk

LARGEST = 100_000_000
BETWEEN = "; "
BEGIN, END = "<!-- exhausted: begin -->\n", "<!-- exhausted: end -->\n"
COLUMNS = ("function", "on", "inputs", "heads", "ways", "best", "bound", "worst error", "at", "share", "largest share")
SLOW = {"own": "plain", "gate": "plain", "table": "network"}
"""Of each kind the way that takes by far the longest, and comes last."""
KINDS = {"own": "Heads with their own key", "gate": "Gates", "table": "Heads of the table"}


@dataclass(frozen=True)
class Row:
    """One head on one device. Texts, as they stand in the file.

    anchors      of a gate: registers
    inputs, of   how many inputs were tried in every way, of how many there are
    error        at the worst input, by Arb, from above; for own heads and gates relative to max(1, |x|), of a gate
                 times |u|
    share        of what is allowed there, rounded up; the worst input is the one where it is largest
    at, way      the worst input, and how the head was computed there
    ways         all that were tried
    """

    kind: str
    function: str
    low: str
    high: str
    anchors: str
    dtype: str
    device: str
    inputs: str
    of: str
    bound: str
    error: str
    share: str
    at: str
    way: str
    ways: str
    violations: str

    @property
    def key(self) -> tuple[str, ...]:
        return self.kind, self.function, self.low, self.high, self.anchors, self.dtype, self.device, self.inputs

    @property
    def order(self) -> tuple[object, ...]:
        place = list(DTYPES).index(self.dtype), list(KINDS).index(self.kind), self.device, self.function
        return *place, float(self.high), self.low, int(self.anchors), int(self.inputs)

    @property
    def complete(self) -> bool:
        return self.inputs == self.of

    @property
    def evaluations(self) -> int:
        return int(self.inputs) * len(self.ways.split(BETWEEN))

    def merged_with(self, other: Row) -> Row:
        """The worse of two rows of one head, with the ways of both; the other one where its bound is another."""
        if self.bound != other.bound:
            return other
        worse = max(self, other, key=lambda row: float(row.share))
        ways = sorted({*self.ways.split(BETWEEN), *other.ways.split(BETWEEN)})
        violations = max(int(self.violations), int(other.violations))
        return replace(worse, ways=BETWEEN.join(ways), violations=str(violations))


def rows(walk: Walk, device: str) -> list[Row]:
    """What Arb says of every head of a job that is done."""
    job = walk.job
    on = job.kind, job.function, repr(job.low), repr(job.high)
    found = []
    for head, judged in zip(job.heads, walk.judged(), strict=True):
        tried = str(head.anchors), job.dtype, device, str(walk.inputs.count), str(walk.inputs.of)
        sizes = repr(head.bound), repr(judged.error), _share(judged.share)
        found.append(Row(*on, *tried, *sizes, _shortest(judged.at.x), job.way, job.way, str(judged.violations)))
    return found


def missing(known: Iterable[Row], job: Job, device: str) -> Job | None:
    """The job with those heads alone that no row shows as done on this device, by this way, for all inputs, within the
    bound that they have now; None where none is left."""
    done = {
        (*row.key[:7], row.bound)
        for row in known
        if row.complete and not int(row.violations) and job.way in row.ways.split(BETWEEN)
    }
    on = job.kind, job.function, repr(job.low), repr(job.high)
    left = tuple(
        head for head in job.heads if (*on, str(head.anchors), job.dtype, device, repr(head.bound)) not in done
    )
    return replace(job, heads=left) if left else None


def merged(known: Iterable[Row]) -> list[Row]:
    """One row for each head and device, in order."""
    ordered = sorted(known, key=lambda row: row.order)
    return [reduce(Row.merged_with, group) for _, group in groupby(ordered, key=lambda row: row.key)]


def read(path: Path) -> list[Row]:
    """The rows of a file; none if there is no file."""
    if not path.exists():
        return []
    lines = csv.DictReader(io.StringIO(read_whole(path, "a table of what was exhausted", LARGEST).decode()))
    names = [one.name for one in fields(Row)]
    if lines.fieldnames != names:
        raise AnchorheadError(f"{path} is not a table of what was exhausted: its first line is not {','.join(names)}")
    return [Row(**line) for line in lines]


def write(path: Path, known: Iterable[Row]) -> None:
    """The whole table anew."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [one.name for one in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(asdict, known))
    write_atomically(path, text.getvalue().encode())


def write_page(path: Path, known: Sequence[Row]) -> None:
    """The page with what stands between its two marks made anew."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise AnchorheadError(f"{path} has no place for the table: give it the lines {BEGIN!r} and {END!r}")
    write_atomically(path, (before + BEGIN + summary(known) + END + after).encode())


def summary(known: Sequence[Row]) -> str:
    """Markdown: how much was tried; for each function and interval the best head, and the largest share of any."""
    whole = [row for row in known if row.complete]
    shares = [float(row.share) for row in whole] or [0.0]
    heads = len({row.key[:5] for row in whole})
    evaluations, violations = sum(row.evaluations for row in whole), sum(int(row.violations) for row in whole)
    found = f"{heads:,} heads, {evaluations:.3g} evaluations, **{violations:,} violations**."
    between = f"{_floor(min(shares))} and {_floor(max(shares))} of its bound."
    parts = [f"{found} The largest error of a head is between {between}\n", *untried(whole)]
    for (kind, dtype, device), some in groupby(whole, key=lambda row: (row.kind, row.dtype, row.device)):
        lines = [_line(list(group)) for _, group in groupby(some, key=lambda row: row.order[:6])]
        title = f"### {KINDS[kind]}, {dtype}, on {'a CPU' if device == 'CPU' else device}\n"
        head = "| " + " | ".join(COLUMNS) + " |"
        parts.append("\n".join([title, head, "|" + " --- |" * len(COLUMNS), *lines, ""]))
    return "\n".join(parts)


def untried(known: Sequence[Row]) -> list[str]:
    """Markdown: of how many heads the slow way is left, where others of their kind were computed by it."""
    left = []
    for (kind, dtype, device), some in groupby(known, key=lambda row: (row.kind, row.dtype, row.device)):
        rows, way = list(some), SLOW[kind]
        without = [row for row in rows if way not in (one.split()[0] for one in row.ways.split(BETWEEN))]
        if 0 < len(without) < len(rows):
            left.append(f"`{way}` for {len(without)} of {len(rows)} {KINDS[kind].lower()} ({dtype}, {device})")
    return (
        [f"Not tried, because it is slow: {'; '.join(left)}. These heads were tried in the other ways.\n"]
        if left
        else []
    )


def _line(group: list[Row]) -> str:
    best = min(group, key=lambda row: float(row.bound))
    on = f"[{float(best.low):.4g}, {float(best.high):.4g}]"
    ways = sorted({way.split()[0] for row in group for way in row.ways.split(BETWEEN)})
    cells = (best.function, on, f"{int(best.inputs):,}", str(len(group)), ", ".join(ways))
    found = (best.anchors, f"{float(best.bound):.4g}", f"{float(best.error):.4g}", best.at, _floor(float(best.share)))
    return "| " + " | ".join((*cells, *found, _floor(max(float(row.share) for row in group)))) + " |"


def report(found: Sequence[Row]) -> str:
    """One line about a job that is done."""
    worst = max(found, key=lambda row: float(row.share))
    violations = sum(int(row.violations) for row in found)
    loud = f"  *** {violations:,} VIOLATIONS ***" if violations else ""
    return f"{len(found)} heads, worst {worst.share} of the bound at {worst.at}{loud}"


def _share(share: float) -> str:
    """Nine digits, not less than the share."""
    return f"{math.ceil(share * 1e9) / 1e9:.9f}" if math.isfinite(share) else "inf"


def _floor(share: float) -> str:
    """Five digits, cut off: what is below 1 is shown below 1."""
    return f"{math.floor(share * 1e5) / 1e5:.5f}" if math.isfinite(share) else "inf"


def _shortest(x: float) -> str:
    """The fewest digits that say which float32 it is; half-precision numbers are float32, too."""
    return str(np.float32(x))
