"""Makes the table of heads for gated neurons that ships with the package, or proves again every head that is in it.

    python -m tools.make_gate_table                  what is missing, the table written after every function and reach
    python -m tools.make_gate_table silu --reach 64  anew; heads that were better stay
    python -m tools.make_gate_table --verify         every head proven again, against the bounds in the table

The solver fits heads of many sizes, from its own starts or from the heads for another reach, and by merging two
registers of a larger head; what it finds is rounded to each dtype and proven. A head stays if its proven bound is
smaller than that of every head with fewer registers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import get_args

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.gate import GateHead
from anchorhead.heads.tables.gate_table import NAMES, PATH, GateFrontier, all_gates
from anchorhead.heads.tables.table import read, write
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.heads.gate import prove_gate
from tools.gate_solver import (
    GateFit,
    GateProblem,
    Terms,
    bump,
    level,
    line,
    longer,
    rising,
    shorter,
    switched,
)
from tools.proven_again import failures, larger

REACHES = (64.0, 256.0, 1024.0)
TAME = 3.0  # fits of at most this size round little
SMOOTH = {
    "silu": (
        (3, 1),
        (4, 2),
        (5, 2),
        (6, 3),
        (7, 3),
        (8, 4),
        (9, 4),
        (11, 5),
        (13, 6),
        (16, 8),
        (20, 10),
        (24, 12),
        (28, 12),
    ),
    "gelu": ((3, 2), (4, 2), (5, 3), (6, 4), (7, 4), (8, 4), (10, 4), (10, 6), (12, 6), (14, 6), (16, 6)),
}
SMOOTH["gelu_tanh"] = SMOOTH["gelu"]
ALIKE = ("gelu", "gelu_tanh")
LARGE = 18  # heads from here on are guessed anew for each reach
STEEPEST = {"float32": 2.0**22, "float64": 2.0**42}  # the switch of relu
STEEP = {"silu": (2.0,), "gelu": (2.8, 3.1), "gelu_tanh": (2.8, 3.1)}


def starts(problem: GateProblem, before: Iterable[GateFit], further: bool) -> Iterator[tuple[Terms, ...]]:
    """Where the solver begins: heads for another reach, as they are and `further`, and guesses of several sizes."""
    reach = problem.reach
    if problem.function == "sigmoid":
        yield (Terms(np.array([0.0, -1.0]), np.zeros(2), 1.0),)
    elif problem.function == "relu":
        for registers in range(1, 14):
            for shift in (0.2, 0.8):
                yield rising(registers, reach, 5 / shift, shift), level(shift)
        for slopes in range(12, 48, 3):
            spread = -np.append(0.0, np.geomspace(0.05 / reach, 60.0, slopes))
            yield line(problem, spread, 0.5), level(0.5)
    else:
        known = list(before)
        for fit in known:
            yield fit.terms
            if further:
                yield from (longer(fit.terms), longer(longer(fit.terms)))
        for p, q in SMOOTH[problem.function]:
            if known and p < LARGE:
                continue
            even = 1.4 * np.arange(q + 1) - 0.7 * q
            slopes = np.polynomial.legendre.leggauss(q + 1)[0] if problem.function == "silu" else even
            for steep in STEEP[problem.function]:
                yield rising(p, reach, steep), bump(problem, slopes, steep)


def climb(function: str, reach: float, before: Iterable[GateFit], further: bool) -> list[GateFit]:
    """The best fits for each number of registers, of any size and tame: from all starts, then downwards by merging."""
    problem, before = GateProblem(function, reach), list(before)
    best: dict[tuple[int, bool], GateFit] = {}

    def keep(fit: GateFit) -> None:
        for key in {(fit.registers, fit.size < TAME), (fit.registers, False)}:
            if key not in best or fit.error < best[key].error:
                best[key] = fit

    for terms in starts(problem, before, further):
        keep(problem.fit(terms))
    for registers in range(max(best)[0], 3, -1):
        for fit in {best[key] for key in ((registers, True), (registers, False)) if key in best}:
            known = (registers - 1, fit.size < TAME) in best
            options = list(shorter(fit.terms)) if 0 < fit.error < 1e-2 and not (before and known) else []
            with np.errstate(all="ignore"):
                options.sort(key=lambda terms: np.nan_to_num(np.abs(problem.residual(terms)).max(), nan=np.inf))
            for terms in options[:1]:
                keep(problem.fit(terms, 80))
    return sorted(set(best.values()), key=lambda fit: fit.registers)


def frontier(
    function: str, reach: float, dtype: Dtype, fits: Iterable[GateFit], old: Iterable[GateHead]
) -> GateFrontier:
    """The heads that are proven better than all with fewer registers."""
    model, heads = arithmetic_of(dtype), list(old)
    least = np.inf
    for fit in fits:
        expected = fit.error + 20 * model.unit * fit.size
        if not expected < 0.97 * least:
            continue
        terms = switched(fit.terms, STEEPEST[dtype]) if function == "relu" else fit.terms
        parts = tuple(one.part(dtype) for one in terms)
        if not all(np.isfinite([*part.slopes, *part.offsets, part.factor]).all() for part in parts):
            continue
        bound = prove_gate(function, parts, -reach, reach, model)
        heads.append(GateHead(function, parts, -reach, reach, dtype, bound.exact, bound.rounding))
        least = min(least, heads[-1].bound)
    kept: list[GateHead] = []
    for head in sorted((one for one in heads if one.bound < 1), key=lambda head: (head.registers, head.bound)):
        if not kept or head.bound < 0.97 * kept[-1].bound:
            kept.append(head)
    return GateFrontier(function, reach, dtype, tuple(kept))


def terms_of(head: GateHead) -> GateFit:
    """A head of the table as terms, to start from."""
    terms = []
    for part in head.parts:
        b = np.concatenate([[0.0], part.offsets.astype(np.float64)]) - np.log(abs(part.factor))
        a = np.concatenate([[0.0], part.slopes.astype(np.float64)])
        terms.append(Terms(a, b, float(np.sign(part.factor))))
    return GateFit(tuple(terms), head.exact)


def nearest(function: str, reach: float, held: dict[tuple[str, float, str], GateFrontier]) -> list[GateFrontier]:
    """What is known of the function, or of one like it, for the reach that is closest to this."""
    for like in (function, *(name for name in ALIKE if function in ALIKE)):
        others = {one.reach for one in held.values() if one.function == like}
        if others:
            closest = min(others, key=lambda other: abs(np.log(other / reach)))
            return [one for one in held.values() if (one.function, one.reach) == (like, closest)]
    return []


def known_fits(frontiers: Iterable[GateFrontier]) -> list[GateFit]:
    """Heads of float32, which are tame, and of float64 where those are larger."""
    fits: dict[int, GateFit] = {}
    for one in sorted(frontiers, key=lambda one: one.dtype):
        fits |= {head.registers: terms_of(head) for head in one.heads if head.registers not in fits}
    return list(fits.values())


def make(names: list[str], reaches: list[float], anew: bool) -> None:
    """Solves what is asked for, or missing, and writes the table after each function and reach."""
    models = {dtype: str(arithmetic_of(dtype)) for dtype in get_args(Dtype)}
    start = time.monotonic()
    for function in names:
        for reach in reaches:
            held = known(models)
            if not anew and all((function, reach, dtype) in held for dtype in models):
                continue
            before = nearest(function, reach, held)
            further = any(one.reach < reach for one in before)
            fits = climb(function, reach, known_fits(before), further)
            for dtype in get_args(Dtype):
                one = held.get((function, reach, dtype))
                new = frontier(function, reach, dtype, fits, one.heads if one else ())
                held = known(models) | {new.key: new}
                write(PATH, models, held.values())
                read.cache_clear()
                shown = "  ".join(f"{head.registers}:{head.bound:.1e}" for head in new.heads)
                print(f"{time.monotonic() - start:6.0f} s  {new.key}  {shown}", flush=True)


def known(models: dict[str, str]) -> dict[tuple[str, float, str], GateFrontier]:
    """All that is in the table, if it is about the same models of arithmetic."""
    return {one.key: one for one in all_gates()} if read(PATH)[0] == models else {}


def disagreements(known: GateFrontier) -> list[str]:
    """The heads whose stored bounds a new proof does not confirm."""
    wrong = []
    for head in known.heads:
        again = prove_gate(known.function, head.parts, head.low, head.high, arithmetic_of(known.dtype))
        if larger((again.exact, again.rounding), (head.exact, head.rounding)):
            wrong.append(f"{known.key} with {head.registers} registers: {again}, not {head.exact} and {head.rounding}")
    return wrong


def main() -> int:
    known_names = sorted(set(NAMES.values()))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="functions to solve anew; none: what is missing of all")
    parser.add_argument("--reach", type=float, nargs="*", default=list(REACHES), help="for which |g|")
    parser.add_argument("--jobs", type=int, default=2, help="processes that verify")
    parser.add_argument("--verify", action="store_true", help="prove every head of the table again")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(known_names))
    if unknown:
        parser.error(f"{', '.join(unknown)}: known are {', '.join(known_names)}")
    if given.verify:
        return 1 if failures(all_gates(), disagreements, given.jobs) else 0
    make(given.names or known_names, given.reach, bool(given.names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
