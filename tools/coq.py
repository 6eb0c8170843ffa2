"""The theorems that Coq checks: our library, and heads as `ah.export(head, "name.v")` writes them.

    python -m tools.coq                  all of it, and a table
    python -m tools.coq gelu sin         the heads of these functions alone
    python -m tools.coq --write          what was compiled goes into benchmarks/coq.csv, other rows stay

Each file may take 60 s of CPU and 4 GB. At the end Coq prints on what all theorems together rest, and nothing may be
there but the axioms of its real numbers and its machine integers.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import resource
import shutil
import subprocess
import sys
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import anchorhead as ah
from anchorhead.disk import write_atomically

ROOT = Path(__file__).parents[1]
LIBRARY, OUT, TABLE = ROOT / "coq", ROOT / "out" / "coq", ROOT / "benchmarks" / "coq.csv"
SECONDS, BYTES = 60, 4 * 2**30
PACKAGES = {
    "Interval": "libcoq-interval",
    "Coquelicot": "libcoq-coquelicot",
    "Flocq": "libcoq-flocq",
    "mathcomp": "libcoq-mathcomp-ssreflect",
}
"""Libraries of Coq, and the Debian packages that they come in."""
QUIET = "-ambiguous-paths,-notation-overridden"
"""Warnings about the libraries, not about our files."""

AXIOMS = frozenset(
    (
        "ClassicalDedekindReals.sig_not_dec",
        "ClassicalDedekindReals.sig_forall_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    )
)
"""On which Coq's real numbers rest."""
MACHINE_INTEGERS = ("PrimInt63.", "Uint63.")
"""Coq's 63-bit integers, which are those of the processor: primitives, and axioms that say what they compute."""


@dataclass(frozen=True)
class Case:
    """A head: a function, its interval, the error asked for, and the dtype."""

    function: str
    low: float
    high: float
    within: float
    dtype: str = "float64"

    @property
    def name(self) -> str:
        words = re.sub(r"\W+", "_", self.function).strip("_")
        return f"{words}_{f'{self.within:g}'.replace('-', '_').replace('.', '_')}_{self.dtype}"


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
    *_twice("erfc", -4, 4, 1e-2, 1e-4),
    *_twice("silu", -10, 10, 1e-3, 1e-6, *BOTH),
    *_twice("mish", -10, 10, 1e-2, 1e-6),
    *_twice("softplus", -10, 10, 1e-3, 1e-6),
    *_twice("tanh", -10, 10, 1e-3, 1e-6, *BOTH),
    *_twice("sigmoid", -10, 10, 1e-3, 1e-6, *BOTH),
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
    *_twice("gelu_tanh", -10, 10, 1e-2, 1e-6),
    *_twice("softsign", -10, 10, 1e-2, 1e-3),
    *_twice("selu", -10, 10, 1e-2, 1e-6, *BOTH),
    *_twice("celu", -10, 10, 1e-2, 1e-6, *BOTH),
    *_twice("hardsigmoid", -10, 10, 1e-3, 1e-6, *BOTH),
    *_twice("hardswish", -10, 10, 1e-3, 1e-6, *BOTH),
    *_twice("soft_threshold", -2, 2, 1e-3, 1e-6, *BOTH),
    Case("sin(3*x)*exp(x)", -1, 1, 1e-3),
    Case("max(sin(x), 0.5)", -1, 2, 1e-2),
]


@dataclass(frozen=True)
class Row:
    """What came of a file: the theorem's eps, and CPU seconds and megabytes that coqc took."""

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


def missing() -> list[str]:
    """The Debian packages that are not there."""
    if shutil.which("coqc") is None:
        return ["coq", *PACKAGES.values()]
    where = subprocess.run(["coqc", "-where"], capture_output=True, text=True, check=True).stdout.strip()
    return [package for name, package in PACKAGES.items() if not (Path(where) / "user-contrib" / name).is_dir()]


def compiled(path: Path, *options: str) -> tuple[bool, float, int, str]:
    """Whether coqc accepts a file; its CPU seconds, megabytes, and what it says."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    said = path.with_suffix(".log")
    with said.open("w") as log:
        child = subprocess.Popen(
            ["coqc", "-q", "-w", QUIET, *options, path.name], cwd=path.parent, stdout=log, stderr=log, preexec_fn=limit
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode == 0, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024, said.read_text()


def tried(case: Case) -> Row:
    """A head exported and compiled, in out/coq."""
    head = ah.head(case.function, on=(case.low, case.high), within=case.within, dtype=case.dtype, progress=False)
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
        text.count("Lemma piece_"), round(seconds, 1), megabytes, accepted,
    )  # fmt: skip


def assumptions(theorems: list[str], folder: Path, *options: str) -> set[str]:
    """On what theorems (Module.name) of compiled files rest, by name."""
    path = folder / "all_theorems.v"
    modules = " ".join(dict.fromkeys(theorem.rpartition(".")[0] for theorem in theorems))
    together = ", ".join(f"@{theorem}" for theorem in theorems)
    path.write_text(f"Require {modules}.\nDefinition together := ({together}).\nPrint Assumptions together.\n")
    accepted, _, _, said = compiled(path, *options)
    if not accepted:
        raise SystemExit(said[-600:])
    return {line.split(" :")[0].strip() for line in said.splitlines() if re.match(r"\w[\w.]*( :|$)", line)} - {
        "Axioms:"
    }


def strange(names: set[str]) -> set[str]:
    """What is neither an axiom of the real numbers nor a machine integer."""
    return {name for name in names if name not in AXIOMS and not name.startswith(MACHINE_INTEGERS)}


def table(rows: list[Row]) -> str:
    lines = [f"{'function':<18}{'on':>18}  {'dtype':<8}{'anchors':>8}{'eps':>12}{'pieces':>8}{'CPU s':>8}{'MB':>6}"]
    for row in rows:
        on = f"[{row.low:.4g}, {row.high:.4g}]"
        lines.append(
            f"{row.function:<18}{on:>18}  {row.dtype:<8}{row.anchors:>8}{row.eps:>12}{row.pieces:>8}{row.seconds:>8.1f}"
            f"{row.megabytes:>6}{'' if row.accepted else '  not accepted'}"
        )
    return "\n".join(lines)


def read() -> list[Row]:
    if not TABLE.exists():
        return []
    with TABLE.open() as file:
        return [_row(record) for record in csv.DictReader(file)]


def _row(record: dict[str, str]) -> Row:
    kinds = {"float": float, "int": int, "bool": lambda text: text == "True", "str": str}
    return Row(**{field.name: kinds[str(field.type)](record[field.name]) for field in fields(Row)})


def write(rows: list[Row]) -> None:
    names = ",".join(field.name for field in fields(Row))
    lines = [",".join(f'"{x}"' if "," in str(x) else str(x) for x in astuple(row)) for row in rows]
    write_atomically(TABLE, ("\n".join([names, *lines]) + "\n").encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", help="of which heads are compiled; by default all, and the library")
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/coq.csv")
    given = parser.parse_args()
    absent = missing()
    if absent:
        print(f"Coq is not here, or not all of it: apt install {' '.join(absent)}")
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    cases = [case for case in CASES if not given.functions or case.function in given.functions]
    print(table([]))
    done: dict[str, Row] = {}
    for case in cases:
        row = done[case.name] = tried(case)
        print(table([row]).splitlines()[1], flush=True)
        if given.write:
            key = (row.function, row.low, row.high, row.dtype, row.eps)
            others = [one for one in read() if (one.function, one.low, one.high, one.dtype, one.eps) != key]
            write([*others, row])
    good = [name for name, row in done.items() if row.accepted]
    found = assumptions([f"{name}.within" for name in good], OUT)
    print(f"{len(good)} of {len(cases)} theorems accepted; they rest on: {', '.join(sorted(found & AXIOMS))}", end="")
    print(", and on Coq's machine integers" if any(name.startswith(MACHINE_INTEGERS) for name in found) else "")
    if strange(found):
        print(f"and on what they may not: {', '.join(sorted(strange(found)))}")
    return int(len(good) < len(cases) or bool(strange(found)))


if __name__ == "__main__":
    sys.exit(main())
