"""A table of heads proven again: what all of the tables' makers do for --verify."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any


def larger(again: tuple[float, float], stored: tuple[float, float]) -> bool:
    """Whether new bounds, in exact arithmetic and of rounding, do not confirm those of the table."""
    return any(one > known * (1 + 1e-9) for one, known in zip(again, stored, strict=True))


def failures(known: Sequence[Any], disagreements: Callable[[Any], list[str]], jobs: int) -> int:
    """Prints what new proofs of all frontiers' heads do not confirm; the number of those heads."""
    start = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        wrong = [text for texts in pool.map(disagreements, known) for text in texts]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    heads = sum(len(one.heads) for one in known)
    print(f"{heads - len(wrong)} of {heads} heads proven again in {time.monotonic() - start:.0f} s")
    return len(wrong)
