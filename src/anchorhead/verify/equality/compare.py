"""That two programs are the same function on a box, up to an error: both as values in one algebra, and compared."""

from __future__ import annotations

from itertools import takewhile

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, below, precision
from anchorhead.verify.equality.algebra import Algebra
from anchorhead.verify.equality.polynomials import Value
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.programs.entries import entries
from anchorhead.verify.programs.expressions import Undecided
from anchorhead.verify.programs.numbers import RANGES, UNKNOWN, Range
from anchorhead.verify.programs.program import Affine, Apply, Input, Program, reads

BITS = 320
"""Of the balls: products of a few float64 are exact, and what cancels leaves next to nothing."""


def difference(written: Program, lowered: Program, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Bounds (tokens, features) on |written - lowered| for inputs (tokens, features) between low and high.

    Lemma. If both are the same up to a quantity v, and read nothing before it later, then they are g(v) and h(v), and
    |g - h| on all that v may be, an interval for each of its entries, bounds their difference."""
    start = _alike(written, lowered)
    with precision(BITS):
        if start:
            box = zip(low.tolist(), high.tolist(), strict=True)
            ranges = [[Range(arb(a), arb(b)) for a, b in zip(*row, strict=True)] for row in box]
            balls = [[one.ball for one in row] for row in entries(written, ranges, _RANGES, of=start)]
            ends = [np.array([[end(one) for one in row] for row in balls]) for end in (below, above)]
            start, low, high = (start, *ends) if np.isfinite(ends).all() else (0, low, high)
        algebra = Algebra(low, high)
        inputs = [algebra.inputs[start : start + low.shape[1]] for start in range(0, low.size, low.shape[1])]
        try:
            one, other = (entries(program, inputs, algebra.rules, start=start) for program in (written, lowered))
        except Undecided as error:
            raise NotVerified(
                f"the program and what it was rewritten as cannot be compared: {error} is not decided"
            ) from error
        shapes = [(len(values), len(values[0])) for values in (one, other)]
        require(shapes[0] == shapes[1], f"the program puts out {shapes[0]}, and what it was rewritten as {shapes[1]}")
        both = zip(one, other, strict=True)
        return np.array([[_bound(algebra, *pair) for pair in zip(*rows, strict=True)] for rows in both])


_RANGES = {
    **RANGES,
    "number": lambda number, radius=0.0: Range.hull(arb(number, radius)),
    "opaque": lambda *_: UNKNOWN,
}


def _alike(written: Program, lowered: Program) -> int:
    """The last place up to which two programs have the same steps, and before which no later one reads."""
    shared = list(takewhile(lambda pair: _same(*pair), zip(written.steps, lowered.steps, strict=False)))
    starts = [
        place
        for place in range(1, len(shared))
        if all(of >= place for one in (written, lowered) for step in one.steps[place + 1 :] for of in reads(step))
        and all(one.outputs[0] >= place for one in (written, lowered))
    ]
    return max(starts, default=0)


def _same(a: object, b: object) -> bool:
    match a, b:
        case Input(), Input():
            return (a.tokens, len(a.features)) == (b.tokens, len(b.features))
        case Affine(), Affine():
            exact = not any(radius is not None for one in (a, b) for radius in (*one.radii, one.bias_radius))
            arrays = zip((*a.weights, a.bias), (*b.weights, b.bias), strict=False)
            return exact and a.of == b.of and all(np.array_equal(*pair) for pair in arrays)
        case Apply(), Apply():
            same = (a.functions, a.of, a.arguments) == (b.functions, b.of, b.arguments)
            return same and np.array_equal(a.which, b.which)
    return False


def _bound(algebra: Algebra, a: Value, b: Value) -> float:
    return above(algebra.bound(algebra.minus(a, b), arb(2) ** -60 * a.range.most))
