"""A softmax that copies: constant logits of which one is so far above the others that it takes all the weight.

The others' exponentials are 0 in the dtype (proof.arithmetic.silence), the winner's is 1, and what is read is its
value, exactly: the bound is that of the value itself.
"""

from __future__ import annotations

import numpy as np

from anchorhead.proof.arithmetic.affine_forms import Forms, Sources
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.arithmetic.readings import Readings
from anchorhead.proof.arithmetic.silence import one_winner


def read(readings: Readings) -> list[int | None]:
    """For each that asks the key that it copies; None where none takes all the weight, or nobody can tell."""
    moves, numbers = readings.t.varying[0].tolist(), readings.t.constant[0].tolist()
    known: dict[tuple[int, float], int | None] = {}
    found: list[int | None] = []
    for kind, t, moved in zip(readings.kinds.tolist(), numbers, moves, strict=True):
        keys = readings.keys[kind]
        if moved and not keys.still:
            found.append(None)
            continue
        name = (kind, 0.0 if keys.still else t)
        if name not in known:
            logits, sizes = keys.slopes * name[1] + keys.offsets, np.abs(keys.slopes * name[1]) + keys.sizes
            wrong = keys.slope_error * abs(name[1]) + keys.offset_error
            known[name] = None if wrong.any() else one_winner(logits, sizes, keys.terms, keys.arithmetic)
        found.append(known[name])
    return found


def of_head(winner: int, values: Forms, sources: Sources, arithmetic: Arithmetic) -> Forms:
    """What a head reads of tokens whose values are these forms: those of the key that it copies."""
    return values.token(winner)
