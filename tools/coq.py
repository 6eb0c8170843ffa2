"""The theorems that Coq checks: our library, and heads as `ah.export(head, "name.v")` writes them.

    python -m tools.coq                  all of it, and a table
    python -m tools.coq gelu sin         the heads of these functions alone, in this order
    python -m tools.coq --write          what was compiled goes into benchmarks/coq.csv, other rows stay
    python -m tools.coq --sollya         a third opinion, for the rows of that table, by Sollya's supnorm

Each file may take 60 s of CPU and 4 GB. At the end Coq prints on what all theorems together rest, and nothing may be
there but the axioms of its real numbers and its machine integers.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import sys
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import anchorhead as ah
from anchorhead.disk import write_atomically
from tools.coq_files import AXIOMS, MACHINE_INTEGERS, assumptions, compiled, missing, strange
from tools.coq_sollya import upper_bound

ROOT = Path(__file__).parents[1]
LIBRARY, OUT, TABLE = ROOT / "coq", ROOT / "out" / "coq", ROOT / "benchmarks" / "coq.csv"
LONGEST = 600
"""Seconds of CPU for a file of the library."""


@dataclass(frozen=True)
class Case:
    """A head: a function, its interval, the error asked for and the dtype; or so many even anchors."""

    function: str
    low: float
    high: float
    within: float | None = None
    dtype: str = "float64"
    even: int | None = None

    @property
    def name(self) -> str:
        asked = f"{self.within:g}" if self.even is None else f"even {self.even}"
        return re.sub(r"\W+", "_", f"{self.function} {asked} {self.dtype}").strip("_")

    def head(self) -> ah.Head:
        how = {"within": self.within} if self.even is None else {"anchors": self.even, "placement": "uniform"}
        return ah.head(self.function, on=(self.low, self.high), dtype=self.dtype, progress=False, **how)


def _twice(function: str, low: float, high: float, coarse: float, fine: float, *dtypes: str) -> list[Case]:
    first, second = dtypes or ("float64", "float64")
    return [Case(function, low, high, coarse, first), Case(function, low, high, fine, second)]


PI = 3.141592653589793
BOTH = ("float32", "float64")
CASES = [
    *_twice("relu", -10, 10, 1e-3, 1e-6, *BOTH),
    *_twice("abs", -1, 1, 1e-3, 1e-6, *BOTH),
    *_twice("leaky_relu", -1, 1, 1e-2, 1e-6),
    *_twice("hardtanh", -2, 2, 1e-3, 1e-6, *BOTH),
    *_twice("relu6", -10, 10, 1e-3, 1e-6, *BOTH),
    *_twice("elu", -10, 10, 1e-2, 1e-6, *BOTH),
    *_twice("gelu", -10, 10, 1e-2, 1e-4),
    *_twice("erf", -4, 4, 1e-2, 1e-4),
    *_twice("silu", -10, 10, 1e-3, 1e-6, *BOTH),
    *_twice("mish", -10, 10, 1e-2, 1e-6),
    *_twice("softplus", -10, 10, 1e-3, 1e-6),
    Case("tanh", -10, 10, 1e-3, "float32"),
    *_twice("exp", -1, 1, 1e-3, 1e-6, *BOTH),
    *_twice("expm1", -1, 1, 1e-3, 1e-6, *BOTH),
    *_twice("log", 0.5, 2, 1e-3, 1e-6),
    *_twice("log1p", 0, 1, 1e-3, 1e-6),
    *_twice("sqrt", 1, 4, 1e-3, 1e-6),
    *_twice("square", -1, 1, 1e-3, 1e-6, *BOTH),
    *_twice("reciprocal", 0.5, 2, 1e-3, 1e-6),
    *_twice("sin", -PI, PI, 1e-3, 1e-6),
    *_twice("cos", -PI, PI, 1e-3, 1e-8),
    *_twice("tan", -1, 1, 1e-3, 1e-6),
    Case("log1p", 0, 1, 1e-2),
    Case("erf", -4, 4, 0.02, "float32"),
    Case("cos", -PI, PI, 0.02, "float32"),
    Case("cos", -3, 3, dtype="float32", even=6),
]


@dataclass(frozen=True)
class Row:
    """What came of a file: the theorem's eps, CPU seconds and megabytes that coqc took, whether it holds a theorem
    about what is computed, too, and what Sollya says of the error in exact arithmetic."""

    function: str
    low: float
    high: float
    dtype: str
    anchors: int
    certificate: float
    eps: str
    pieces: int
    seconds: float
    megabytes: int
    accepted: bool
    computed: bool
    sollya: str = ""

    @property
    def key(self) -> tuple[str, float, float, str, float]:
        """What tells heads apart."""
        return self.function, self.low, self.high, self.dtype, self.certificate


def tried(case: Case) -> Row:
    """A head exported and compiled, in out/coq."""
    head = case.head()
    path = OUT / f"{case.name}.v"
    ah.export(head, path, progress=False)
    text = path.read_text()
    eps = re.search(r"Theorem within .*<= \((\d+) / 10 \^ (\d+)\)", text)
    stated = f"{eps[1]}e-{eps[2]}" if eps else "0"
    accepted, seconds, megabytes, said = compiled(path)
    if not accepted:
        print(said[-600:], file=sys.stderr)
    return Row(
        case.function, case.low, case.high, case.dtype, head.anchors, head.certificate.bound, stated,
        text.count("Lemma piece_"), round(seconds, 1), megabytes, accepted, "computed_within" in text,
    )  # fmt: skip


def library() -> list[str]:
    """Compiles coq/*.v in the order of _CoqProject, in a copy; its theorems. Ends where a file is not accepted."""
    folder = OUT / "library"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(LIBRARY, folder, ignore=shutil.ignore_patterns("*.vo*", "*.glob", ".*"))
    theorems: list[str] = []
    for name in (LIBRARY / "_CoqProject").read_text().split():
        if not name.endswith(".v"):
            continue
        accepted, seconds, megabytes, said = compiled(folder / name, "-Q", ".", "Anchorhead", seconds=LONGEST)
        found = re.findall(r"^Theorem (\w+)", (folder / name).read_text(), re.MULTILINE)
        print(f"{name:<18}{seconds:>8.1f} CPU s{megabytes:>6} MB  {', '.join(found)}", flush=True)
        if not accepted:
            raise SystemExit(said[-600:])
        theorems += [f"Anchorhead.{name.removesuffix('.v')}.{theorem}" for theorem in found]
    return theorems


def resting_on(theorems: list[str], folder: Path, *options: str) -> bool:
    """Prints on what theorems rest; whether that is all that they may."""
    found = assumptions(theorems, folder, *options)
    integers = ["Coq's machine integers"] if any(name.startswith(MACHINE_INTEGERS) for name in found) else []
    print(f"{len(theorems)} theorems rest on: {', '.join([*sorted(found & AXIOMS), *integers])}")
    if strange(found):
        print(f"and on what they may not: {', '.join(sorted(strange(found)))}")
    return not strange(found)


def table(rows: list[Row]) -> str:
    lines = [
        f"{'function':<18}{'on':>18}  {'dtype':<8}{'anchors':>8}{'eps':>12}{'pieces':>8}{'CPU s':>8}{'MB':>6}  computed"
    ]
    for row in rows:
        on = f"[{row.low:.4g}, {row.high:.4g}]"
        lines.append(
            f"{row.function:<18}{on:>18}  {row.dtype:<8}{row.anchors:>8}{row.eps:>12}{row.pieces:>8}{row.seconds:>8.1f}"
            f"{row.megabytes:>6}  {'too' if row.computed else ''}{'' if row.accepted else '  not accepted'}"
        )
    return "\n".join(lines)


def read() -> list[Row]:
    if not TABLE.exists():
        return []
    with TABLE.open() as file:
        return [_row(record) for record in csv.DictReader(file)]


def _row(record: dict[str, str]) -> Row:
    kinds = {"float": float, "int": int, "bool": lambda text: text == "True", "str": str}
    return Row(**{field.name: kinds[str(field.type)](record.get(field.name, "")) for field in fields(Row)})


def write(rows: list[Row]) -> None:
    names = ",".join(field.name for field in fields(Row))
    lines = [",".join(f'"{x}"' if "," in str(x) else str(x) for x in astuple(row)) for row in rows]
    write_atomically(TABLE, ("\n".join([names, *lines]) + "\n").encode())


def third_opinion(cases: list[Case]) -> int:
    """Sollya's bounds of the errors in exact arithmetic, into the table; how many are above what Coq accepted."""
    rows = {row.key: row for row in read()}
    wrong = 0
    for case in cases:
        head = case.head()
        row = rows.get((case.function, case.low, case.high, case.dtype, head.certificate.bound))
        bound = None if row is None else upper_bound(head)
        if row is None or bound is None:
            continue
        rows[row.key] = replace(row, sollya=f"{bound:.4g}")
        wrong += bound > float(row.eps) * (1 + 2**-6)
        print(f"{row.function:<18}{row.dtype:<8}{row.anchors:>8}  Coq {row.eps:>12}  Sollya {bound:.4g}", flush=True)
        write(list(rows.values()))
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", help="of which heads are compiled; by default all, and the library")
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/coq.csv")
    parser.add_argument("--sollya", action="store_true", help="a third opinion on the rows of benchmarks/coq.csv")
    given = parser.parse_args()
    cases = [case for name in given.functions for case in CASES if case.function == name] or CASES
    if given.sollya:
        return third_opinion(cases)
    absent = missing()
    if absent:
        print(f"Coq is not here, or not all of it: apt install {' '.join(absent)}")
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    print(table([]))
    done: dict[str, Row] = {}
    for case in cases:
        row = done[case.name] = tried(case)
        print(table([row]).splitlines()[1], flush=True)
        if given.write:
            write([*(one for one in read() if one.key != row.key), row])
    good = [f"{name}.within" for name, row in done.items() if row.accepted]
    good += [f"{name}.computed_within" for name, row in done.items() if row.accepted and row.computed]
    accepted = sum(row.accepted for row in done.values())
    print(f"{accepted} of {len(cases)} heads accepted")
    fine = resting_on(good, OUT) if good else False
    if not given.functions:
        fine &= resting_on(library(), OUT / "library", "-Q", ".", "Anchorhead")
    return int(accepted < len(cases) or not fine)


if __name__ == "__main__":
    sys.exit(main())
