"""Fewest anchors, and the bound proven for them, for every named function within 1e-2 ... 1e-10; ms to get a head.

A dash: no head of the table reaches it. ms: the slowest of the levels that the table serves, once the module is
imported and this machine's arithmetic tested.
"""

from __future__ import annotations

import time
from typing import cast, get_args

import anchorhead as ah
from anchorhead.decimals import round_up
from anchorhead.heads.atom import Dtype
from anchorhead.heads.tables.table import STANDARD, Frontier, lookup
from anchorhead.proof.arithmetic.arithmetic import require_model

LEVELS = tuple(10.0**-k for k in range(2, 11))


def main() -> list[dict]:
    return [
        row(function, on, cast(Dtype, dtype))
        for function, domains in STANDARD.items()
        for on in domains
        for dtype in get_args(Dtype)
    ]


def row(function: str, on: tuple[float, float], dtype: Dtype) -> dict:
    known = lookup(function, *on, dtype, str(require_model(dtype)))
    cells = {f"{level:.0e}".replace("e-0", "e-"): cell(known, level) for level in LEVELS}
    served = [level for level in LEVELS if known and known.within(level)]
    slowest = max((seconds(function, on, level, dtype) for level in served), default=0.0)
    case = f"{function}\n[{on[0]:.3g}, {on[1]:.3g}] {dtype}"
    return {"case": case, **cells, "ms": f"{1e3 * slowest:.0f}" if served else "-"}


def cell(known: Frontier | None, level: float) -> str:
    entry = known and known.within(level)
    return f"{entry.atom.anchors}\n{round_up(entry.bound, 1):.0e}".replace("e-0", "e-") if entry else "-"


def seconds(function: str, on: tuple[float, float], level: float, dtype: str) -> float:
    build = ah.head
    start = time.perf_counter()
    build(function, on=on, within=level, dtype=dtype)
    return time.perf_counter() - start
