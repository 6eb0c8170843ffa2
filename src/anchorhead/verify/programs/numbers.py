"""Operations on numbers of two kinds: balls, for what is nearly a point, and ranges, for what is a whole interval.

    POINTS   arb: the result holds f(x) for every x of the balls; tight where they are narrow.
    RANGES   Range: the same, from the ends, so that wide ones stay tight; ends are exact numbers, for a ball's radius
             has 30 bits, too few for [1e-6, 1e6], and [0, 0.3] as a ball is no longer at least 0.
    BALLS    arb, by ranges.

What may not be defined somewhere is nowhere finite: no number of a range is taken for one that has no root, logarithm
or power, and whatever is made of one without bounds has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from flint import arb


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
    def ball(self) -> arb:
        return self.low.union(self.high) if self.known else arb.nan()

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


def decided(relation: str, a: arb, b: arb) -> bool | None:
    """Whether a < b (or a <= b) for all numbers of two balls; None where it is not the same for all."""
    if relation == "<":
        return True if a < b else False if a >= b else None
    return True if a <= b else False if a > b else None


def _switched(relation: str, a: arb, b: arb, then: arb, other: arb) -> arb:
    side = decided(relation, a, b)
    return then.union(other) if side is None else then if side else other


MONOTONE = ("exp", "expm1", "log", "log1p", "sqrt", "tanh", "erf", "erfc", "asinh")
POINTS: dict[str, Callable[..., arb]] = {
    "pi": arb.pi,
    "e": arb.const_e,
    "add": lambda *terms: reduce(lambda a, b: a + b, terms),
    "mul": lambda *factors: reduce(lambda a, b: a * b, factors),
    "neg": lambda a: -a,
    "div": lambda a, b: a / b,
    "integer_power": lambda n, a: a ** arb(n),
    "power": lambda a, b: a**b,
    **{name: getattr(arb, name) for name in (*MONOTONE, "sin", "cos")},
    "sigmoid": lambda a: 1 / (1 + (-a).exp()),
    "softplus": lambda a: a.exp().log1p(),
    "abs": arb.__abs__,
    "min": lambda *args: reduce(arb.min, args),
    "max": lambda *args: reduce(arb.max, args),
    "where": _switched,
}


def _monotone(name: str, a: Range) -> Range:
    """Which is defined everywhere between two ends where it is."""
    return Range.hull(*(POINTS[name](end) for end in a)) if a.known else UNKNOWN


def _wave(name: str, slope: str, a: Range) -> Range:
    """At the ends, where it is monotone."""
    turns = POINTS[slope](a.ball).contains(0)
    return Range.hull(*(POINTS[name](one) for one in ((a.ball,) if turns else a)))


def _integer_power(n: int, a: Range) -> Range:
    if n < 0:
        below = _integer_power(-n, a)
        return Range.hull(1 / below.low, 1 / below.high) if below.sign else UNKNOWN
    ends = [POINTS["integer_power"](n, end) for end in a]
    return Range.hull(*ends, *([arb(0)] if n and n % 2 == 0 and not a.sign else []))


def _power(a: Range, b: Range) -> Range:
    """Of a positive base, of 0 with a positive exponent, and of any base where the exponent is a whole number."""
    if b.low == b.high and b.low.is_integer():
        return _integer_power(int(b.low.unique_fmpz()), a)  # type: ignore[arg-type]
    if a.low > 0:
        return RANGES["exp"](RANGES["mul"](b, RANGES["log"](a)))
    return Range.hull(arb(0), *(POINTS["power"](a.high, end) for end in b)) if a.low >= 0 and b.low > 0 else UNKNOWN


def _extreme(of: Callable[[arb, arb], arb], *args: Range) -> Range:
    ends = (reduce(of, (getattr(a, end) for a in args)) for end in ("low", "high"))
    return Range(*ends) if all(a.known for a in args) else UNKNOWN


def _where(relation: str, a: Range, b: Range, then: Range, other: Range) -> Range:
    if not (a.known and b.known):
        return UNKNOWN
    always, never = decided(relation, a.high, b.low), not decided(relation, a.low, b.high)
    return then if always else other if never else then.united(other)


def _of_ranges(rule: Callable[..., Range]) -> Callable[..., Range]:
    return lambda *args: rule(*(Range.hull(one) if isinstance(one, arb) else one for one in args))


def _of_balls(rule: Callable[..., Range]) -> Callable[..., arb]:
    return lambda *args: rule(*args).ball


RANGES: dict[str, Callable[..., Any]] = {op: _of_ranges(rule) for op, rule in {
    "pi": lambda: Range.hull(arb.pi()),
    "e": lambda: Range.hull(arb.const_e()),
    "add": lambda *args: Range.hull(*(sum((getattr(a, end) for a in args), arb(0)) for end in ("low", "high"))),
    "mul": lambda *args: reduce(lambda a, b: Range.hull(*(x * y for x in a for y in b)), args),
    "neg": lambda a: Range.hull(-a.low, -a.high),
    "div": lambda a, b: RANGES["mul"](a, _integer_power(-1, b)),
    "integer_power": _integer_power,
    "power": _power,
    "sin": partial(_wave, "sin", "cos"),
    "cos": partial(_wave, "cos", "sin"),
    "abs": lambda a: Range.hull(a.least, a.most),
    "min": partial(_extreme, arb.min),
    "max": partial(_extreme, arb.max),
    "where": _where,
    **{name: partial(_monotone, name) for name in (*MONOTONE, "sigmoid", "softplus")},
}.items()}  # fmt: skip
BALLS: dict[str, Callable[..., arb]] = {op: _of_balls(rule) for op, rule in RANGES.items()}
