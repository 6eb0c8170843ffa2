"""Ways to tamper with a saved network, drawn at random: its weights, its structure, and what its header says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import structure, weights, words
from .file import File, Random, file_of


def tampered(name: str, rng: Random) -> tuple[File, str] | None:
    """The file of a network after one to three changes, and what they were; None where one has nothing to change."""
    file, said = file_of(name), []
    for _ in range(int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))):
        kind = str(rng.choice(list(CHANGES), p=WEIGHTS))
        with np.errstate(all="ignore"):
            try:
                changed = CHANGES[kind](file, rng)
            except (KeyError, TypeError):
                if not said:
                    raise
                return None  # the change before has taken away what this one edits
        if not changed:
            return None
        said.append(kind)
    return file, ", ".join(said)


CHANGES: dict[str, Callable[[File, Random], bool]] = {
    change.__name__.replace("_", " "): change
    for change in (
        weights.one_weight, weights.swapped, weights.pair, weights.shifted, weights.balanced, weights.silenced,
        weights.drowned, weights.there_and_back, weights.opposed,
        structure.mask, structure.moved_token, structure.output, structure.more_tokens, structure.fewer_tokens,
        structure.other_order, structure.skip, structure.bias, structure.grid, structure.heads, structure.layers,
        structure.source,
        words.program, words.derivation, words.claims, words.entries, words.bound, words.box, words.certificate,
        words.conditions, words.dtype, words.axes,
    )
}  # fmt: skip
OFTEN = {
    "one weight": 6,
    "pair": 3,
    "shifted": 3,
    "balanced": 3,
    "silenced": 2,
    "mask": 2,
    "drowned": 2,
    "box": 2,
    "claims": 2,
}
WEIGHTS = np.array([OFTEN.get(name, 1) for name in CHANGES], float)
WEIGHTS /= WEIGHTS.sum()
