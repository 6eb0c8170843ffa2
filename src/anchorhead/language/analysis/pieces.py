"""Where an expression of one variable is analytic: its kinks on an interval, found without being told.

The interval is cut at the zeros of the arguments of switches until every segment resolves (`resolver`). Each
kink is a ball that contains the switch; in it a neighbouring piece may differ from the function by `jump`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from flint import arb

from anchorhead.errors import AnchorheadError, NotDefined
from anchorhead.language.analysis.range_check import check_range
from anchorhead.language.analysis.resolver import Cut, Resolver, Segment, place, short, undecided
from anchorhead.language.analysis.zeros import PRECISION, Budget, hull, sign
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision

MAX_KINKS = 1_000
# What two sides of `where` may differ by, relative to 1 + |f|: literals are float64, so 3*x and 0.9 do not
# meet exactly at 0.3. Nothing is forgotten by it: the difference is part of `jump`.
_MEET = arb(1e-13)


@dataclass(frozen=True)
class Kink:
    """A place where the function need not be analytic.

    at      a ball that contains it (of radius 0 where it is known exactly)
    jump    within that ball the function differs from either neighbouring piece by at most this
    end     it lies at an end of the domain, where the function has a singularity such as sqrt(0)
    smooth  both neighbours are the same analytic function: a switch that changed nothing, as in max(x**2, 0)
    """

    at: arb
    jump: arb
    end: bool = False
    smooth: bool = False


@dataclass(frozen=True)
class Piece:
    """The functions on [left, right], in core operations without switches, analytic inside."""

    left: arb
    right: arb
    expressions: tuple[Expression, ...]

    @property
    def expression(self) -> Expression:
        return self.expressions[0]


@dataclass(frozen=True)
class Pieces:
    """All pieces from left to right, and the kinks between them (and at singular ends)."""

    variable: str
    pieces: tuple[Piece, ...]
    kinks: tuple[Kink, ...]


def analyse(expression: Expression | Sequence[Expression], low: float, high: float) -> Pieces:
    """The analytic pieces of one expression, or of several jointly, on [low, high].

    Raises where one is undefined, discontinuous or beyond float64, naming the place.
    """
    several = (expression,) if isinstance(expression, Expression) else tuple(expression)
    names = sorted({name for one in several for name in one.variables})
    if len(names) > 1:
        raise AnchorheadError(f"{several[0]} depends on {', '.join(names)}: pieces are found for one variable")
    name = names[0] if names else "x"
    shown = ", ".join(short(one) for one in several)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise AnchorheadError(f"[{low}, {high}] is not a domain: give two finite numbers, the lower one first")
    with precision(PRECISION):
        return _Analysis(several, name, arb(low), arb(high), Budget(shown)).run()


class _Analysis:
    def __init__(self, several: tuple[Expression, ...], name: str, low: arb, high: arb, budget: Budget) -> None:
        self.several, self.name, self.low, self.high, self.budget = several, name, low, high, budget

    def run(self) -> Pieces:
        waiting, done = [Segment(self.low, self.high)], []
        while waiting:
            segment = waiting.pop()
            try:
                resolver = Resolver(self.name, segment, self.budget)
                segment.expressions = tuple(resolver.resolve(one.core) for one in self.several)
                done.append(segment)
            except Cut as cut:
                waiting += self.divide(segment, cut)[::-1]
            if len(waiting) + len(done) > MAX_KINKS:
                raise AnchorheadError(
                    f"{self.budget.subject} has more than {MAX_KINKS:,} kinks on the domain, "
                    f"the first beyond {self.name} = {place(segment.left)}: give a smaller domain"
                )
        kinks = self.kinks(done)
        for segment in done:
            for original, one in zip(self.several, segment.expressions, strict=True):
                check_range(original, one, self.name, segment.left, segment.right)
        pieces = tuple(Piece(one.left, one.right, one.expressions) for one in done)
        return Pieces(self.name, pieces, kinks)

    def divide(self, segment: Segment, cut: Cut) -> list[Segment]:
        ends = [segment.left, *cut.at, segment.right]
        parts = []
        for left, right in pairwise(ends):
            part = Segment(left, right, dict(segment.signs))
            decided = sign(cut.u.ball({self.name: part.middle}))
            if decided is None:
                raise undecided(cut.u, self.name, part.middle)
            part.signs[cut.u] = decided
            parts.append(part)
        return parts

    def kinks(self, done: list[Segment]) -> tuple[Kink, ...]:
        kinks = []
        for end, segment in ((self.low, done[0]), (self.high, done[-1])):
            jump = self.jump(hull(end, segment.left if end is self.low else segment.right), [segment])
            if any(zero.overlaps(end) for zero in segment.singular):
                kinks.append(Kink(end, jump, end=True))
        for before, after in pairwise(done):
            at = hull(before.right, after.left)
            singular = any(zero.overlaps(at) for zero in (*before.singular, *after.singular))
            smooth = before.expressions == after.expressions and not singular
            kinks.append(Kink(at, self.jump(at, [before, after]), smooth=smooth))
        return tuple(sorted(kinks, key=lambda kink: float(kink.at.mid())))

    def jump(self, at: arb, sides: list[Segment]) -> arb:
        """How far the function may be from its neighbouring pieces on a ball; raises unless it is small."""
        here, bound = {self.name: at}, arb(0)
        for index, original in enumerate(self.several):
            truth = original.ball(here)
            near = [side.expressions[index].ball(here) for side in sides]
            pairs = [(near[0], near[-1]), *((value, truth) for value in near)]
            for first, second in pairs:
                size = (first - second).abs_upper()
                if not size <= _MEET * (1 + truth.abs_upper()):
                    raise NotDefined(
                        f"{short(original)} is not continuous at {self.name} = {place(at)}: "
                        f"it jumps by {float(size):.3g}, between {_number(first)} and {_number(second)}; "
                        "heads approximate continuous functions, so keep the place out of the domain, "
                        "or bridge the jump with a steep slope"
                    )
                bound = bound.max(size)
        return bound.upper()


def _number(value: arb) -> str:
    return f"{float(value.mid()):.6g}"
