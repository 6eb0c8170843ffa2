"""Keys that weigh nothing: the one place where it is decided that a logit is out of another's reach.

A softmax takes exp of z - max z, and exp of less than -SILENT is 0 in float32 and float64, however it underflows. What
is compared are logits as the dtype computes them. One that is a sum of n products, in any order, is off by at most

    gamma_n sum |terms| + n tiny,

which is large where large terms cancel: 2^60 - 2^60 - 1000 is no -1000 in float32. So a logit comes with the sum of its
terms' absolute values, and whatever nobody can tell is within reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from anchorhead.network.direct.keys import SILENT
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, Arithmetic
from anchorhead.proof.arithmetic.rounding import sum_error

_UP = 1 + 1e-6  # more than the subtraction of the largest logit rounds by


def rounding_of(size: Any, terms: Any, arithmetic: Arithmetic) -> Float[np.ndarray, "..."]:
    """How far a logit may be from what float64 says here: in the dtype, and by float64's own rounding.

    size    the sum of the absolute values of its terms
    terms   how many there are that are not 0
    """
    size, terms = np.asarray(size, np.float64), np.asarray(terms, np.float64)
    return np.asarray((sum_error(terms, size, arithmetic) + FLOAT64.gamma(terms) * size) * _UP)


def out_of_reach(most: Any, largest: Any) -> Bool[np.ndarray, "..."]:
    """Whether computed logits of at most `most` have the weight 0 beside a computed logit of at least `largest`.

    What is not a number is within reach.
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(largest - most >= SILENT * _UP)


def one_winner(
    logits: Float[np.ndarray, "... keys"], sizes: Float[np.ndarray, "... keys"], terms: Any, arithmetic: Arithmetic
) -> int | None:
    """The key that takes all the weight, from its logits (keys,), the sums of their terms' absolute values and their
    numbers; keys that cannot be seen have the logit -inf. None where no key does, or nobody can tell."""
    winner = int(np.argmax(logits))
    rounded = rounding_of(sizes, terms, arithmetic)
    others = np.delete(logits + rounded, winner)
    return winner if out_of_reach(others, logits[winner] - rounded[winner]).all() else None


def takes_over(
    slopes: Float[np.ndarray, " p"], offsets: Float[np.ndarray, " p"], side: int, start: float, arithmetic: Arithmetic
) -> bool:
    """Whether, for every t beyond `start` on a side (1, or -1: below -start), the steepest key has all the weight.

    With e that key, the gap |a_e - a_k| |t| + g_e - g_k, less what rounding may take off it,
    8 u ((|a_e| + |a_k|) |t| + |g_e| + |g_k|), must be twice out of reach at the start and grow with |t|.
    """
    slopes, offsets = np.asarray(slopes, np.float64), np.asarray(offsets, np.float64)
    top = int(np.argmax(side * slopes))
    others, lost = np.arange(len(slopes)) != top, 8 * arithmetic.unit
    rise = side * (slopes[top] - slopes) - lost * (np.abs(slopes[top]) + np.abs(slopes))
    gap = rise * start + offsets[top] - offsets - lost * (np.abs(offsets[top]) + np.abs(offsets))
    return bool((rise[others] > 0).all() and (gap[others] >= 2 * SILENT).all())
