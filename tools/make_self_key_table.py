"""Makes the table of heads with their own key that ships with the package, or proves again every head that is in it.

    python -m tools.make_self_key_table             every function that is missing
    python -m tools.make_self_key_table gelu mish   these functions anew; heads that were better stay
    python -m tools.make_self_key_table --verify    every head proven again, against the bounds in the table

Smooth activations are solved for with ever more registers, those made of lines and exponentials are in closed form.
What is found is proven, and a head stays if its proven bound is smaller than that of every head with fewer registers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import get_args

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.self_keys.self_key_closed import closed
from anchorhead.heads.tables.self_key_table import PATH, SelfKeyFrontier, self_key_frontiers
from anchorhead.heads.tables.table import read, write
from anchorhead.language.expressions.activation_names import activation_of
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.self_key.self_key import prove_self_key, proven
from tools.proven_again import failures, larger
from tools.self_key_glued import glued_heads
from tools.self_key_solver import STEPS, Problem, fits, head_of

# how far out each one differs from its lines by more than float64 rounds
SOLVED: dict[str, float] = {"gelu": 13.0, "gelu_tanh": 11.0, "mish": 42.0, "softplus": 42.0}
GLUED = ("hardswish",)
CLOSED = (
    "relu", "leaky_relu", "abs", "relu6", "hardtanh", "hardsigmoid", "soft_threshold", "silu", "quick_gelu", "tanh",
    "sigmoid", "elu", "selu", "celu", "linear",
)  # fmt: skip
MOST: dict[str, int] = {"float32": 13, "float64": 26}
SPREAD = (1.5, 19.0)  # all slopes together span this much where a fit is any good
TRIED = 4  # fits of one number of registers that are proven
WORST = 0.05  # a bound beyond which a head is of no use
BEST = {"float32": 1.5e-6, "float64": 4e-15}  # about what rounding costs: no fit is of use far below it


Task = tuple[str, int]


def candidates(name: str, registers: int) -> Iterator[SelfKeyHead]:
    """Heads with so many registers that are worth a proof, in both dtypes."""
    _, function = activation_of(name)
    problem = Problem.of(lambda s: function.values({"x": s}), SOLVED[name], 1.0, 0.0)
    found = fits(problem, registers, [step for step in STEPS if SPREAD[0] <= step * registers <= SPREAD[1]])
    for dtype in get_args(Dtype):
        # rounding is about inverse to the step
        promising = sorted(found, key=lambda fit: fit.error + BEST[dtype] / fit.step)
        if registers <= MOST[dtype]:
            yield from (head_of(fit, problem, name, dtype) for fit in promising[:TRIED])


def unproven(task: Task) -> Iterator[SelfKeyHead]:
    name, registers = task
    shown, function = activation_of(name)
    if name in SOLVED:
        yield from candidates(name, registers)
        return
    for dtype in get_args(Dtype):
        if name in GLUED:
            yield from glued_heads(shown, dtype, registers)
        elif (head := closed(function, shown, dtype)) is not None:
            yield head


def solved(task: Task) -> list[SelfKeyHead]:
    """The proven heads of one task; those that cannot be proven are left out."""
    done = []
    for head in unproven(task):
        try:
            done.append(proven(head, activation_of(task[0])[1]))
        except AnchorheadError as error:
            print(f"{task[0]} {head.dtype} {task[1]}: {error}", flush=True)
    return [head for head in done if head.bound <= WORST]


def better(heads: Iterable[SelfKeyHead]) -> tuple[SelfKeyHead, ...]:
    """The heads that are better than all with fewer registers."""
    kept: list[SelfKeyHead] = []
    for head in sorted(heads, key=lambda head: (head.registers, head.bound)):
        if np.isfinite(head.bound) and (not kept or head.bound < kept[-1].bound):
            kept.append(head)
    return tuple(kept)


def tasks(name: str, counts: range) -> list[Task]:
    if name in CLOSED:
        return [(name, 0)]
    sensible = range(3, 12) if name in GLUED else range(2, max(MOST.values()) + 1)
    return [(name, count) for count in counts if count in sensible]


def make(names: list[str], jobs: int, counts: range) -> None:
    models = {dtype: str(arithmetic_of(dtype)) for dtype in get_args(Dtype)}
    held = {one.key: one for one in self_key_frontiers()} if read(PATH)[0] == models else {}
    known = {key[0] for key in held}
    wanted = names or [name for name in (*CLOSED, *SOLVED, *GLUED) if activation_of(name)[0] not in known]
    start = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        for name in wanted:
            shown, _ = activation_of(name)
            for heads in pool.map(solved, tasks(name, counts)):
                for head in heads:
                    key = shown, head.dtype
                    known_heads = held[key].heads if key in held else ()
                    held[key] = SelfKeyFrontier(shown, head.dtype, better((*known_heads, head)))
            write(PATH, models, held.values())
            read.cache_clear()
            for dtype in get_args(Dtype):
                heads = held[shown, dtype].heads if (shown, dtype) in held else ()
                listed = "  ".join(f"{head.registers}:{head.bound:.2e}" for head in heads)
                print(f"{time.monotonic() - start:6.0f} s  {name} {dtype}  {listed}", flush=True)


def disagreements(known: SelfKeyFrontier) -> list[str]:
    """The heads whose stored bounds a new proof does not confirm."""
    wrong = []
    _, function = activation_of(known.function)
    for head in known.heads:
        exact, rounding = prove_self_key(head, function)
        if larger((exact, rounding), (head.exact, head.rounding)):
            wrong.append(f"{known.key} with {head.registers} registers: {exact:.6g} and {rounding:.6g}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="functions to solve anew; none: what is missing")
    parser.add_argument("--fewest", type=int, default=2, help="registers to begin with")
    parser.add_argument("--most", type=int, default=max(MOST.values()), help="registers to end with")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--verify", action="store_true", help="prove every head of the table again")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - {*CLOSED, *SOLVED, *GLUED})
    if unknown:
        parser.error(f"{', '.join(unknown)}: known are {', '.join((*CLOSED, *SOLVED, *GLUED))}")
    if given.verify:
        return 1 if failures(self_key_frontiers(), disagreements, given.jobs) else 0
    make(given.names, given.jobs, range(given.fewest, given.most + 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
