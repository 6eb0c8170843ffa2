"""Sizes, bounds and CPU seconds of about 150 cases over all constructions: what a change makes better or worse.

    python -m benchmarks.figures                       all cases, to out/figures.csv, beside benchmarks/figures.csv
    python -m benchmarks.figures head "x*y"            those whose names hold one of these words
    python -m benchmarks.figures --keep                write benchmarks/figures.csv itself

Bounds are those that certificates state, 1% above what was proven. benchmarks/figures_before.csv has the same cases,
but for the six functions of three to eight variables that were not reached then, on the same machine, of the version
before programs, lemmas and the verifier, whose certificates stated what was proven. What is larger since, and why:

    x*y + sin(z), two outputs,  bounds are closer to what was asked for: errors are shared out by what heads cost,
    sin(x*y) + exp(z*w) + ...   and the networks hold 2% to 8% fewer numbers
    sin(50*x)                   likewise: 44 anchors for 45
    1/(1 + x^2 + y^2 + z^2)     four heads in place of one over a grid, and a quarter of its numbers
    x*y*z                       five heads in place of one over a grid, and 576 numbers for 485

Where processors differ, so may the last anchors that are found: a row holds the largest of what several of them gave.

A case is worse if a size or a bound is more than 2% larger than in benchmarks/figures.csv, or its time more than 20%
and half a second. Seconds are of the processor, on one thread: beside other work they are up to half as long again.
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported, which reads it then

from benchmarks.figures_cases import cases

KEPT, NEW = Path("benchmarks/figures.csv"), Path("out/figures.csv")
COLUMNS = ("case", "kind", "anchors", "heads", "parameters", "bound", "seconds")
SIZES, LARGER, LONGER, MOMENT = ("anchors", "heads", "parameters", "bound"), 1.02, 1.2, 0.5
Row = dict[str, Any]


def main(given: Sequence[str]) -> int:
    """How many cases are worse than kept."""
    import torch

    torch.set_num_threads(1)
    words = [one for one in given if not one.startswith("--")]
    chosen = {name: build for name, build in cases().items() if not words or any(word in name for word in words)}
    kept, rows, worse = read(KEPT), [], 0
    for number, (name, build) in enumerate(chosen.items(), 1):
        rows.append(row := figures(name, build))
        said = compared(row, kept.get(name))
        worse += bool(said)
        size = ", ".join(f"{what} {row[what]}" for what in ("anchors", "heads", "parameters") if row[what] != "")
        line = f"{number:>3}/{len(chosen)}  {name}: {row['kind']} {row['bound']}; {size}; {row['seconds']} s"
        print(line + (f"  WORSE: {'; '.join(said)}" if said else ""), flush=True)
    path = KEPT if "--keep" in given else NEW
    write(
        path, rows if not ("--keep" in given and words) else [*{**kept, **{row["case"]: row for row in rows}}.values()]
    )
    print(f"{len(rows)} cases, {worse} worse than in {KEPT}; written to {path}")
    return worse


def figures(name: str, build: Any) -> Row:
    """One case, measured; where it fails, `kind` says how."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        try:
            made = build()
        except Exception as error:
            taken = time.process_time() - began
            return dict(zip(COLUMNS, (name, type(error).__name__, "", "", "", "", f"{taken:.2f}"), strict=True))
        taken = time.process_time() - began
    kind, bound = _proven(made)
    return {"case": name, "kind": kind, **_sizes(made), "bound": f"{bound:.4g}", "seconds": f"{taken:.2f}"}


def _proven(made: Any) -> tuple[str, float]:
    if hasattr(made, "layers") and not hasattr(made, "certificate"):  # of an attention-only model
        known = [layer.certificate for layer in made.layers]
        return known[0].kind, max(one.bound for one in known)
    return made.certificate.kind, made.certificate.bound


def _sizes(made: Any) -> dict[str, Any]:
    from anchorhead.network import Attention, Network, Repeat

    network = getattr(made, "network", made)
    if not isinstance(network, Network):
        return {"anchors": max(layer.anchors for layer in made.layers), "heads": "", "parameters": ""}

    def heads(layers: Any, times: int = 1) -> int:
        own = sum(layer.heads for layer in layers if isinstance(layer, Attention))
        return own * times + sum(heads(layer.layers) for layer in layers if isinstance(layer, Repeat))

    anchors = made.anchors if made is not network else ""
    return {"anchors": anchors, "heads": heads(network.layers), "parameters": network.parameters}


def compared(row: Row, before: Mapping[str, str] | None) -> list[str]:
    """What is worse than before, in words."""
    if before is None:
        return []
    found = larger(row, before)
    if float(row["seconds"]) > LONGER * float(before["seconds"]) + MOMENT:
        found.append(f"{before['seconds']} s became {row['seconds']} s")
    return found


def larger(row: Row, before: Mapping[str, str]) -> list[str]:
    """What is said less well, or is larger, than before: without the time, which depends on the machine."""
    found = [] if row["kind"] == before["kind"] else [f"{before['kind']} became {row['kind']}"]
    for what in SIZES:
        if row[what] != "" and before[what] != "" and float(row[what]) > LARGER * float(before[what]):
            found.append(f"{what} {before[what]} became {row[what]}")
    return found


def read(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a table, by their cases."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {row["case"]: row for row in csv.DictReader(file)}


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
