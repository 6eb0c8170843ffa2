"""Values: functions on a box as polynomials in atoms, with an error and ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from flint import arb

from anchorhead.verify.programs.numbers import Range

Monomial = tuple[tuple[int, int], ...]
"""Atoms, in the order of their numbers, and their exponents."""
Terms = Mapping[Monomial, arb]
ONE: Monomial = ()
ZERO, MINUS = Range(arb(0), arb(0)), Range(arb(-1), arb(-1))


@dataclass(frozen=True, eq=False)
class Value:
    """A function on the box. ranges: its values where `source` is in each of a row of cells, or one range for all."""

    terms: Terms
    error: arb
    ranges: tuple[Range, ...]
    source: object = None

    @cached_property
    def range(self) -> Range:
        return reduce(Range.united, self.ranges)

    def ranged(self, rule: Callable[..., Range], *of: Value) -> Value:
        """The same, that stays where the rule takes the ranges of what it is made of; these cell by cell, where all of
        them have the same cells."""
        sources = {one.source for one in of if one.source is not None}
        if len(sources) > 1:
            ranges, source = (rule(*(one.range for one in of)),), object()
        else:
            count = max(len(one.ranges) for one in of)
            rows = [one.ranges * (count if len(one.ranges) == 1 else 1) for one in of]
            ranges, source = tuple(rule(*row) for row in zip(*rows, strict=True)), next(iter(sources), None)
        return Value(self.terms, self.error, tuple(one.within(self.range) for one in ranges), source)

    def off_by(self, error: arb) -> Value:
        """What is at most so far from it."""
        if error.is_zero():
            return self
        return Value(self.terms, self.error + error, tuple(one.wider(error) for one in self.ranges), self.source)


@dataclass(frozen=True, eq=False)
class Atom:
    """kind, and the values that it is a function of; where it stays, and what it is at some points."""

    kind: str
    of: tuple[Value, ...]
    range: Range
    at: np.ndarray


def joined(m: Monomial, n: Monomial) -> dict[int, int]:
    powers = dict(m)
    for atom, k in n:
        powers[atom] = powers.get(atom, 0) + k
    return powers


def in_cells(value: Value, cells: int) -> Value:
    """The value with what it may be cut into so many cells of equal width."""
    low, high = value.range
    ends = [low, *((low + (high - low) * k / cells).mid() for k in range(1, cells)), high]
    return Value(value.terms, value.error, tuple(map(Range, ends, ends[1:])), object())
