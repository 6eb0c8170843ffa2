"""A target with kinks as a sum of terms, each of them smooth between gates.

Outwards from a base, the sum of the terms so far continues beyond a kink k with some slope a. The piece
beyond it adds

    g(s) = f(s) - f(k) - a (s - k)   on the piece,   0 on the near side of k.

A straight piece may *extend* g to the end of the domain (a gate at k alone; the slope is then the piece's
own), any piece may hold g at its last value beyond its far end (*ramp*: two gates; the slope stays a), and
a piece that g leaves at 0 costs nothing. The base is a straight piece, continued both ways, or a kink with
slope 0. The cheapest choice is found by recursion: relu is one gated line, hardtanh one ramp, abs a line
and one gated line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from anchorhead.heads.solver.problem import Function, Problem

_CURVED = 3  # anchors that a curved piece is thought to need, when structures are compared
_KINK = -1  # the source of slope 0


@dataclass(frozen=True, eq=False)
class Term:
    """g on [low, high], held at its end values beyond every gate; `slope` is given for a straight g."""

    g: Function
    low: float
    high: float
    left: bool
    right: bool
    slope: Float[np.ndarray, " m"] | None

    @property
    def gates(self) -> int:
        return self.left + self.right


@dataclass(frozen=True, eq=False)
class Split:
    """f = constant + sum of terms."""

    constant: Float[np.ndarray, " m"]
    terms: tuple[Term, ...]

    def same_as(self, other: Split) -> bool:
        """Whether both have the same terms, as far as their ends, gates and slopes tell."""

        def shape(term: Term) -> tuple:
            return (
                term.low,
                term.high,
                term.left,
                term.right,
                None if term.slope is None else tuple(term.slope),
            )

        return [shape(term) for term in self.terms] == [shape(term) for term in other.terms]


def whole_pieces(problem: Problem) -> tuple[Term, ...]:
    """The target itself between one kink and the next."""
    ends = [problem.low, *problem.kinks, problem.high]
    small = 1e-12 * problem.scale / problem.half

    def piece(low: float, high: float) -> Term:
        slope = _slope(problem, low, high)
        if slope is not None and np.abs(slope).max() <= small:
            slope = np.zeros_like(slope)
        return Term(problem.at, low, high, False, False, slope)

    return tuple(piece(low, high) for low, high in pairwise(ends))


def split(problem: Problem, extend: bool = True) -> Split:
    """The cheapest sum of terms for a target with kinks; without `extend` every term stays within its
    piece.
    """
    ends = np.array([problem.low, *problem.kinks, problem.high])
    count = len(ends) - 1
    at_ends = problem.at(ends)
    zero = np.zeros(at_ends.shape[1])
    slopes = {j: _slope(problem, ends[j], ends[j + 1]) for j in range(count)}
    straight = {_KINK: zero, **{j: slope for j, slope in slopes.items() if slope is not None}}
    small = 1e-12 * problem.scale / problem.half

    def options(j: int, source: int, last: bool) -> list[tuple[int, str, int]]:
        """(cost, what, source of the slope beyond) for piece j."""
        own = slopes[j]
        if own is None:
            return [(_CURVED + (1 if last else 2), "ramp", source)]
        if np.abs(own - straight[source]).max() <= small:
            return [(0, "skip", source)]
        if last:
            return [(3, "extend", j)]
        return [(3, "extend", j), (4, "ramp", source)] if extend else [(4, "ramp", source)]

    @cache
    def outward(j: int, source: int, step: int) -> tuple[int, tuple[str, ...]]:
        if not 0 <= j < count:
            return 0, ()
        found = []
        for cost, what, beyond in options(j, source, j + step in (-1, count)):
            rest, plan = outward(j + step, beyond, step)
            found.append((cost + rest, (what, *plan)))
        return min(found, key=lambda option: option[0])

    bases: list[tuple[int, int, int, int]] = []  # cost, source, first piece to the right, first piece to the left
    for j in range(count):
        if j in straight and (extend or np.abs(straight[j]).max() <= small):
            cost = 0 if np.abs(straight[j]).max() <= small else 2
            bases.append((cost + outward(j + 1, j, 1)[0] + outward(j - 1, j, -1)[0], j, j + 1, j - 1))
    for j in range(1, count):
        bases.append((outward(j, _KINK, 1)[0] + outward(j - 1, _KINK, -1)[0], _KINK, j, j - 1))
    cost, source, right, left = min(bases, key=lambda base: base[0])

    terms: list[Term] = []
    base_end = right if right < count else left + 1  # an end of the base where f is read
    slope = straight[source]
    if np.abs(slope).max() > small:
        terms.append(Term(_line(ends[base_end], slope), problem.low, problem.high, False, False, slope))
    for begin, step in ((right, 1), (left, -1)):
        terms += _walk(problem, ends, at_ends, slopes, slope, begin, step, outward(begin, source, step)[1])
    return Split(at_ends[base_end], tuple(terms))


def _walk(
    problem: Problem,
    ends: np.ndarray,
    at_ends: np.ndarray,
    slopes: dict[int, np.ndarray | None],
    slope: np.ndarray,
    begin: int,
    step: int,
    plan: tuple[str, ...],
) -> list[Term]:
    """The terms of one side, following the plan."""
    terms = []
    for number, what in enumerate(plan):
        j = begin + step * number
        near, far = (j, j + 1) if step > 0 else (j + 1, j)
        own = slopes[j]
        more = None if own is None else own - slope
        edge = problem.high if step > 0 else problem.low
        if what == "extend" and more is not None:
            low, high = sorted((float(ends[near]), edge))
            terms.append(Term(_line(ends[near], more), low, high, step > 0, step < 0, more))
            slope = slope + more
        elif what == "ramp":
            low, high = float(ends[j]), float(ends[j + 1])
            inner = float(ends[far]) != edge
            g = _line(ends[near], more) if more is not None else _beyond(problem, ends[near], at_ends[near], slope)
            terms.append(Term(g, low, high, step > 0 or inner, step < 0 or inner, more))
    return terms


def _slope(problem: Problem, low: float, high: float) -> np.ndarray | None:
    """The slope of f between two ends, or None if it is not straight there."""
    s = np.linspace(low, high, 17)
    y = problem.at(s)
    slope = (y[-1] - y[0]) / (high - low)
    off = np.abs(y - y[0] - (s - low)[:, None] * slope).max()
    return slope if off <= 1e-12 * problem.scale + 1e-15 * np.abs(y).max() else None


def _line(place: float, slope: np.ndarray) -> Function:
    return lambda s: (s - place)[:, None] * slope


def _beyond(problem: Problem, place: float, value: np.ndarray, slope: np.ndarray) -> Function:
    return lambda s: problem.at(s) - value - (s - place)[:, None] * slope
