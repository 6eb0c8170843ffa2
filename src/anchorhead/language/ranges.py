"""Ranges: an enclosure of every quantity of a program over the box of its inputs.

Balls are carried through the steps, a representative token standing for any number of them: the mean of tokens lies
where one of them may lie, and so does a softmax mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import FLOAT64_BITS, precision
from anchorhead.language.interpret import computed, repeated
from anchorhead.language.numbers import Balls
from anchorhead.language.program import Program
from anchorhead.language.steps import Apply, Attend, Input, Normalise, Opaque, Repeat, Step

CELLS = 64
MAX_ROUNDS = 64
"""A Repeat of more rounds is not followed: nothing is said of what it carries."""


@dataclass(frozen=True)
class Range:
    """low <= q <= high, entry by entry; infinite where nothing is known."""

    low: Float[np.ndarray, "tokens features"]
    high: Float[np.ndarray, "tokens features"]

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())


def ranges(program: Program) -> tuple[Range, ...]:
    """A range for every quantity; NotDefined functions leave theirs infinite."""
    with precision(FLOAT64_BITS + 11):
        return tuple(_ends(ball) for ball in _balls(program, [_box(program, place) for place in program.inputs]))


def _balls(program: Program, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    given = iter(inputs)
    found: list[np.ndarray] = []
    for place, step in enumerate(program.steps):
        of = [found[use] for use in step.uses]
        found.append(next(given) if isinstance(step, Input) else _enclosed(step, of, program, place))
    return found


def _enclosed(step: Step, of: list[np.ndarray], program: Program, place: int) -> np.ndarray:
    tokens, width = program.shapes[place].tokens or 1, program.shapes[place].width
    unknown = np.full((tokens, width), arb(0, float("inf")), dtype=object)
    match step:
        case Attend():
            hull = _hull_of_tokens(of[0])
            return np.repeat(hull, tokens, axis=0)
        case Normalise():
            bound = arb(0, float(np.nextafter(np.sqrt(width), np.inf)))
            return np.full((tokens, width), bound, dtype=object)
        case Apply() if any(isinstance(one, Opaque) for one in step.functions):
            return unknown
        case Repeat():
            return unknown if step.times > MAX_ROUNDS else repeated(step, of, _balls)
        case Apply():
            return computed(step, of, CutBalls(), {})
        case _:
            return computed(step, of, Balls(), {})


class CutBalls(Balls):
    """Balls that are cut into cells where a function of one variable has no bounds on the whole of one: 1 + r - x with
    r = sqrt(1 + x^2) is positive, which the ball of all x does not show."""

    def function(self, expression: Expression, at: Mapping[str, np.ndarray]) -> np.ndarray:
        found = super().function(expression, at)
        if len(expression.variables) == 1:
            arguments = np.broadcast_to(at[expression.variables[0]], found.shape)
            for (place, ball), (_, argument) in zip(np.ndenumerate(found), np.ndenumerate(arguments), strict=True):
                if not ball.is_finite() and argument.is_finite():
                    found[place] = _in_cells(expression, argument)
        return found


def _in_cells(expression: Expression, argument: arb) -> arb:
    low, high = argument.lower(), argument.upper()
    ends = [low + (high - low) * k / CELLS for k in range(CELLS + 1)]
    cells = (a.union(b) for a, b in pairwise(ends))
    return reduce(arb.union, (expression.ball({expression.variables[0]: cell}) for cell in cells))


def _hull_of_tokens(q: np.ndarray) -> np.ndarray:
    hull = q[0].copy()
    for token in q[1:]:
        hull = np.array([a.union(b) for a, b in zip(hull, token, strict=True)], dtype=object)
    return hull[None]


def _box(program: Program, place: int) -> np.ndarray:
    step = program.steps[place]
    if not isinstance(step, Input) or step.low is None or step.high is None:
        raise AnchorheadError("ranges of a program whose inputs have no box: give on=")
    pairs = zip(step.low.ravel(), step.high.ravel(), strict=True)
    return np.array([arb(float(a)).union(arb(float(b))) for a, b in pairs], dtype=object).reshape(step.low.shape)


def _ends(balls: np.ndarray) -> Range:
    low, high = np.empty(balls.shape), np.empty(balls.shape)
    for place, ball in np.ndenumerate(balls):
        known = ball.is_finite()
        low[place] = np.nextafter(float(ball.lower()), -np.inf) if known else -np.inf
        high[place] = np.nextafter(float(ball.upper()), np.inf) if known else np.inf
    return Range(low, high)
