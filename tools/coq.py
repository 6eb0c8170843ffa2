"""The theorems that Coq checks: our library, and heads as `ah.export(head, "name.v")` writes them.

    python -m tools.coq                  all of it, and a table
    python -m tools.coq gelu sin         the heads of these functions alone, in this order
    python -m tools.coq expressions      those of expressions
    python -m tools.coq library          our library alone
    python -m tools.coq --write          what was compiled goes into benchmarks/coq.csv; all of it: nothing else stays
    python -m tools.coq --sollya         with a third opinion on every head, by Sollya's supnorm, where it applies
    python -m tools.coq --file head.safetensors --output head.v      a file for a head of one's own, as Coq accepts it

Each file may take 60 s of CPU and 4 GB. What is the fastest way differs from head to head, so several are tried
(export.coq.proof.SETTINGS), each within that limit, until Coq accepts one. What was done before is not done again:
out/coq keeps Coq's and Sollya's answers by the texts that they were given, so that a run that was interrupted goes on
where it was. At the end Coq prints on what all theorems together rest, and nothing may be there but the axioms of its
real numbers and its machine integers.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import anchorhead as ah
from anchorhead.disk import check_writable, write_atomically
from anchorhead.export.coq.head_file import make
from anchorhead.export.coq.proof import SETTINGS
from anchorhead.network import Network
from tools.coq_files import AXIOMS, MACHINE_INTEGERS, Kept, assumptions, compiled, compiled_once, missing, strange
from tools.coq_sollya import upper_bound

ROOT = Path(__file__).parents[1]
LIBRARY, OUT, TABLE = ROOT / "coq", ROOT / "out" / "coq", ROOT / "benchmarks" / "coq.csv"
KEPT = OUT / "kept.json"
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
        on = self.low, self.high
        if self.even is None:
            return ah.head(self.function, on=on, within=self.within, dtype=self.dtype, progress=False)
        return ah.head(self.function, on=on, anchors=self.even, placement="uniform", dtype=self.dtype, progress=False)


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
EXPRESSIONS = [
    Case("sin(3*x)*exp(x)", -1, 1, 1e-3),
    Case("exp(-x**2)", -2, 2, 1e-4),
    Case("log(1 + exp(x))", -4, 4, 1e-3),
    Case("x/(1 + x**2)", -3, 3, 1e-3, "float32"),
    Case("sqrt(1 + x**2)", -2, 2, 1e-4),
    Case("x**1.5", 0.5, 2, 1e-4),
    Case("tanh(sin(3*x))", -1, 1, 1e-2),
    Case("gelu(x)*cos(x)", -2, 2, 1e-2),
    Case("abs(sin(3*x))", -1, 1, 1e-3),
    Case("min(x, x**2)", -1, 2, 1e-2, "float32"),
    Case("where(x < 0, sin(x), x)", -2, 2, 1e-3),
    Case("max(sin(x), cos(x))", 0, 3, 1e-2),
]
"""Of functions that CoqInterval knows, kinks included, at floats and at none."""


@dataclass(frozen=True)
class Row:
    """What came of a file: the theorem's eps, CPU seconds and megabytes that coqc took, whether it holds a theorem
    about what is computed, too, which of SETTINGS did it, and what Sollya says of the error in exact arithmetic."""

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
    settings: int = 1
    sollya: str = ""

    @property
    def key(self) -> tuple[str, float, float, str, int]:
        """What tells heads apart."""
        return self.function, self.low, self.high, self.dtype, self.anchors


@dataclass(frozen=True)
class Attempt:
    """A file, with which of SETTINGS, and what coqc said."""

    text: str
    settings: int
    accepted: bool
    seconds: float
    megabytes: int
    said: str

    @property
    def computed(self) -> bool:
        return "Theorem computed_within" in self.text

    @property
    def eps(self) -> str:
        found = re.search(r"Theorem within\w* .*<= \((\d+) / 10 \^ (\d+)\)", self.text)
        return f"{found[1]}e-{found[2]}" if found else "0"


def accepted_file(network: Network, path: Path, kept: Kept) -> Attempt:
    """The first of SETTINGS whose file Coq accepts within the limits, written to path; else the last."""
    texts: set[str] = set()
    attempt = None
    for number, settings in enumerate(SETTINGS, start=1):
        text = make(network, settings)
        if text in texts:
            continue
        texts.add(text)
        attempt = Attempt(text, number, *compiled_once(path, text, kept))
        if attempt.accepted:
            break
    if attempt is None:
        raise ValueError("there are no settings to try")
    return attempt


def tried(case: Case, sollya: bool, kept: Kept) -> Row:
    """A head exported and compiled, in out/coq."""
    head = case.head()
    found = accepted_file(head.network, OUT / f"{case.name}.v", kept)
    if not found.accepted:
        print(found.said[-600:], file=sys.stderr)
    bound = upper_bound(head, kept) if sollya else None
    return Row(
        case.function, case.low, case.high, case.dtype, head.anchors, head.certificate.bound, found.eps,
        found.text.count("Lemma piece_"), round(found.seconds, 1), found.megabytes, found.accepted, found.computed,
        found.settings, "" if bound is None else f"{bound:.4g}",
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


COLUMNS = {
    "function": 24, "on": 18, "dtype": 9, "anchors": 8, "bound": 11, "eps": 12, "pieces": 7, "CPU s": 7, "MB": 6,
    "Sollya": 11, "computed": 9,
}  # fmt: skip
"""Of the table that is printed, with their widths."""


def table(rows: Sequence[Row]) -> str:
    lines = ["".join(f"{name:>{width}}" for name, width in COLUMNS.items())]
    for row in rows:
        cells = (
            row.function, f"[{row.low:.4g}, {row.high:.4g}]", row.dtype, row.anchors, f"{row.certificate:.4g}", row.eps,
            row.pieces, f"{row.seconds:.1f}", row.megabytes, row.sollya, "too" if row.computed else "",
        )  # fmt: skip
        line = "".join(f"{cell!s:>{width}}" for cell, width in zip(cells, COLUMNS.values(), strict=True))
        lines.append(line + ("" if row.accepted else "  not accepted"))
    return "\n".join(lines)


def read() -> list[Row]:
    if not TABLE.exists():
        return []
    with TABLE.open() as file:
        return [_row(record) for record in csv.DictReader(file)]


def _row(record: dict[str, str]) -> Row:
    kinds = {"float": float, "int": int, "bool": lambda text: text == "True", "str": str}
    return Row(**{one.name: kinds[str(one.type)](record[one.name]) for one in fields(Row) if one.name in record})


def write(rows: list[Row]) -> None:
    names = ",".join(field.name for field in fields(Row))
    lines = [",".join(f'"{x}"' if "," in str(x) else str(x) for x in astuple(row)) for row in rows]
    write_atomically(TABLE, ("\n".join([names, *lines]) + "\n").encode())


def disagreeing(rows: Sequence[Row]) -> list[Row]:
    """Rows for which Sollya's enclosure, which is accurate to 2^-7, does not fit what Coq accepted."""
    return [row for row in rows if row.sollya and row.accepted and float(row.sollya) > float(row.eps) * (1 + 2**-6)]


def own_file(source: Path, target: Path) -> int:
    """A file for a saved head, by the first settings with which Coq accepts it."""
    check_writable(target)
    OUT.mkdir(parents=True, exist_ok=True)
    loaded = ah.load(source)
    found = accepted_file(getattr(loaded, "network", loaded), OUT / "own_head.v", Kept(KEPT))
    print(
        f"{'accepted' if found.accepted else 'not accepted'}: within {found.eps} of the function in exact arithmetic"
        f"{', and what is computed within the certificate' if found.computed else ''}; {found.seconds:.1f} s of CPU, "
        f"{found.megabytes} MB, settings {found.settings} of {len(SETTINGS)}"
    )
    if not found.accepted:
        print(found.said[-600:], file=sys.stderr)
        return 1
    write_atomically(target, found.text.encode())
    print(f"{target}: coqc {target.name} checks it again")
    return 0


def heads(cases: Sequence[Case], write_them: bool, sollya: bool) -> tuple[list[Row], list[str]]:
    """Heads one after the other, each with a line; the rows, and the theorems that were accepted. What Sollya said of a
    head of the table stays, where it is not asked again."""
    print(table([]))
    said = {(row.key, row.certificate): row.sollya for row in read()}
    rows: list[Row] = []
    theorems: list[str] = []
    kept = Kept(KEPT)
    for case in cases:
        row = tried(case, sollya, kept)
        row = row if sollya else replace(row, sollya=said.get((row.key, row.certificate), ""))
        rows.append(row)
        print(table([row]).splitlines()[1], flush=True)
        if row.accepted:
            theorems += [f"{case.name}.within", *([f"{case.name}.computed_within"] if row.computed else [])]
        if write_them:
            write([*(one for one in read() if one.key not in {row.key for row in rows}), *rows])
    accepted, computed = (sum(getattr(row, name) for row in rows) for name in ("accepted", "computed"))
    print(f"{accepted} of {len(cases)} heads accepted, {computed} with a theorem about what is computed")
    for row in disagreeing(rows):
        print(
            f"Sollya's {row.sollya} is above the {row.eps} that Coq accepted: {row.function} with {row.anchors} anchors"
        )
    return rows, theorems


def chosen(names: Sequence[str]) -> list[Case]:
    """The heads of these functions, in this order; all of them without a name."""
    groups = {"expressions": EXPRESSIONS, "library": []}
    known = {name: [case for case in CASES if case.function == name] for name in {case.function for case in CASES}}
    unknown = [name for name in names if name not in known | groups]
    if unknown:
        raise SystemExit(
            f"{', '.join(unknown)}: there are heads of {', '.join(sorted(known))}, expressions, and library"
        )
    return [case for name in names for case in (known | groups)[name]] if names else [*CASES, *EXPRESSIONS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="functions whose heads are compiled, expressions, library; or all")
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/coq.csv")
    parser.add_argument("--sollya", action="store_true", help="a third opinion on every head")
    parser.add_argument("--file", type=Path, help="a saved head: several settings are tried for it")
    parser.add_argument("--output", type=Path, help="where its file goes")
    given = parser.parse_args()
    if (given.file is None) != (given.output is None):
        parser.error("--file and --output go together: a saved head, and where its file goes")
    cases = chosen(given.names)
    absent = missing()
    if absent:
        print(f"Coq is not here, or not all of it: apt install {' '.join(absent)}")
        return 0
    if given.sollya and shutil.which("sollya") is None:
        print("Sollya is not here, so there is no third opinion: apt install sollya")
    if given.file is not None:
        return own_file(given.file, given.output)
    OUT.mkdir(parents=True, exist_ok=True)
    fine = True
    if cases:
        rows, theorems = heads(cases, given.write, given.sollya)
        if given.write and not given.names:
            write(rows)
        fine = all(row.accepted for row in rows) and not disagreeing(rows) and resting_on(theorems, OUT)
    if not given.names or "library" in given.names:
        fine &= resting_on(library(), OUT / "library", "-Q", ".", "Anchorhead")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
