"""That two programs are the same function on a box, up to an error: both as values in one algebra, and compared."""

from __future__ import annotations

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, precision
from anchorhead.verify.equality.algebra import Algebra
from anchorhead.verify.equality.polynomials import Value
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.programs.entries import entries
from anchorhead.verify.programs.expressions import Undecided
from anchorhead.verify.programs.program import Program

BITS = 320
"""Of the balls: products of a few float64 are exact, and what cancels leaves next to nothing."""


def difference(written: Program, lowered: Program, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Bounds (tokens, features) on |written - lowered| for inputs (tokens, features) between low and high."""
    with precision(BITS):
        algebra = Algebra(low, high)
        inputs = [algebra.inputs[start : start + low.shape[1]] for start in range(0, low.size, low.shape[1])]
        try:
            one, other = (entries(program, inputs, algebra.rules) for program in (written, lowered))
        except Undecided as error:
            raise NotVerified(
                f"the program and what it was rewritten as cannot be compared: {error} is not decided"
            ) from error
        shapes = [(len(values), len(values[0])) for values in (one, other)]
        require(shapes[0] == shapes[1], f"the program puts out {shapes[0]}, and what it was rewritten as {shapes[1]}")
        both = zip(one, other, strict=True)
        return np.array([[_bound(algebra, *pair) for pair in zip(*rows, strict=True)] for rows in both])


def _bound(algebra: Algebra, a: Value, b: Value) -> float:
    return above(algebra.bound(algebra.minus(a, b), arb(2) ** -60 * a.range.most))
