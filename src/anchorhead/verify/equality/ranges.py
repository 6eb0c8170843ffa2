"""Ranges with ends that are exact numbers: a ball's radius has 30 bits, too few for [1e-6, 1e6]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

from flint import arb

from anchorhead.verify.programs.expressions import BALLS


@dataclass(frozen=True)
class Range:
    """Everything from low to high, which are exact; without bounds where they are not finite."""

    low: arb
    high: arb

    def __iter__(self) -> Iterator[arb]:
        return iter((self.low, self.high))

    @staticmethod
    def hull(*balls: arb) -> Range:
        """All that the balls hold."""
        if not all(one.is_finite() for one in balls):
            return UNKNOWN
        return Range(reduce(arb.min, (one.lower() for one in balls)), reduce(arb.max, (one.upper() for one in balls)))

    @property
    def known(self) -> bool:
        return bool(self.low.is_finite() and self.high.is_finite())

    @property
    def sign(self) -> int:
        """1 or -1 if all of it has this sign, else 0."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0

    @property
    def most(self) -> arb:
        """The largest absolute value."""
        return abs(self.low).max(abs(self.high)) if self.known else arb.pos_inf()

    @property
    def least(self) -> arb:
        """The smallest absolute value."""
        return abs(self.low).min(abs(self.high)) if self.sign else arb(0)

    def united(self, other: Range) -> Range:
        return Range.hull(*self, *other)

    def within(self, other: Range) -> Range:
        """What is in both; itself where nothing is, for then nothing was in it."""
        if not (self.known and other.known):
            return self if self.known else other
        both = Range(self.low.max(other.low), self.high.min(other.high))
        return both if both.low <= both.high else self

    def wider(self, by: arb) -> Range:
        return Range.hull(self.low - by, self.high + by)


UNKNOWN = Range(arb.neg_inf(), arb.pos_inf())


def _at_ends(name: str) -> Callable[[Range], Range]:
    """A monotone function."""
    return lambda a: Range.hull(BALLS[name](a.low), BALLS[name](a.high)) if a.known else UNKNOWN


def _power(n: int, a: Range) -> Range:
    if n < 0:
        below = _power(-n, a)
        return Range.hull(1 / below.low, 1 / below.high) if below.sign else UNKNOWN
    ends = [BALLS["integer_power"](n, end) for end in a]
    return Range.hull(*ends, *([arb(0)] if n % 2 == 0 and not a.sign else []))


def _general_power(a: Range, b: Range) -> Range:
    if a.low > 0:
        return RANGES["exp"](RANGES["mul"](b, RANGES["log"](a)))
    return Range.hull(arb(0), *(BALLS["power"](a.high, end) for end in b)) if b.low > 0 and a.high > 0 else UNKNOWN


def _abs(a: Range) -> Range:
    return Range.hull(a.least, a.most)


RANGES: dict[str, Callable[..., Any]] = {
    "add": lambda *all_of: Range.hull(
        sum((one.low for one in all_of), arb(0)), sum((one.high for one in all_of), arb(0))
    ),
    "mul": lambda *all_of: reduce(lambda a, b: Range.hull(*(x * y for x in a for y in b)), all_of),
    "integer_power": _power,
    "power": _general_power,
    "abs": _abs,
    "sqrt": lambda a: Range.hull(*(BALLS["sqrt"](end.max(arb(0))) for end in a)) if a.high >= 0 else UNKNOWN,
    "log": lambda a: Range.hull(a.low.log(), a.high.log()) if a.low > 0 else UNKNOWN,
    "max": lambda *all_of: Range(reduce(arb.max, (a.low for a in all_of)), reduce(arb.max, (a.high for a in all_of))),
    "min": lambda *all_of: Range(reduce(arb.min, (a.low for a in all_of)), reduce(arb.min, (a.high for a in all_of))),
    **{name: lambda a, name=name: Range.hull(BALLS[name](a.low.union(a.high))) for name in ("sin", "cos")},
    "asinh": lambda a: Range.hull(a.low.asinh(), a.high.asinh()) if a.known else UNKNOWN,
    **{name: _at_ends(name) for name in ("exp", "tanh", "sigmoid", "softplus", "erf", "erfc")},
}
"""What functions do to ranges."""
