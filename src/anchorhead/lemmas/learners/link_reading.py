"""How far what is read of a link's head is from the link: written once, and found once for many prompts.

Logits are sums of products of stored numbers, in any order, so anchor k's errs by at most

    gamma_q (|slope_k| T + |offset_k|),     T >= |w| . |x_i| + |y_i|,     q roundings a term.

A steep anchor's error counts as a move of the argument (proof.heads.head_rounding), so large slopes cost no accuracy.
Values times x are stored with one rounding more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from anchorhead.heads.atom import Part
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.heads.head_rounding import head_rounding
from anchorhead.proof.heads.link_heads import PRECISION, LinkFacts, link_facts, range_of
from anchorhead.targets import Expression
from anchorhead.targets.expressions.parser import parse
from anchorhead.targets.expressions.precision import precision


@dataclass(frozen=True)
class HeadError:
    """What a reading is wrong by at most: in exact arithmetic, and by rounding."""

    exact: float
    rounding: float


@runtime_checkable
class Link(Protocol):
    """A link as a network holds it, for labels up to |y|."""

    def facts(self, y: float) -> LinkFacts:
        """What is proven on the range of arguments that was stated."""
        ...

    def error(self, low: float, high: float, terms: float, y: float, roundings: int, model: Arithmetic) -> HeadError:
        """For arguments in [low, high]; see reading_error."""
        ...

    def slopes(self, low: float, high: float, y: float) -> tuple[float, float]:
        """Bounds on the link's slope by the score, for arguments in [low, high]."""
        ...

    def values(self, arguments: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The link in float64, by its head."""
        ...


@dataclass(frozen=True, eq=False)
class HeadLink:
    """phi by the parts of a head, and, for phi(s) - y, minus the label by parts of its own.

    low, high   the range of arguments that was stated
    """

    phi: Expression
    parts: tuple[Part, ...]
    label: tuple[Part, ...]
    low: float
    high: float

    def facts(self, y: float) -> LinkFacts:
        return facts_of(self.parts, self.phi, self.low, self.high)

    def error(self, low: float, high: float, terms: float, y: float, roundings: int, model: Arithmetic) -> HeadError:
        facts = self.facts(y)
        largest = sum(float(np.abs(part.values).max()) for part in (*self.parts, *self.label))
        exact, size = facts.error, facts.size
        rounding = reading_error(self.parts, low, high, terms, roundings, model)
        if self.label:
            most = outward(0.0, max(y, 2.0**-20))[1]
            minus = [Part(part.slopes, part.offsets, -part.values) for part in self.label]
            exact, size = exact + facts_of(minus, parse("x"), -most, most).error, size + most
            rounding += reading_error(self.label, -most, most, most, roundings, model)
        reads = size + exact + rounding if len(self.parts) == 1 else 1.01 * largest
        added = float(model.gamma(len(self.parts) + len(self.label) - 1)) * reads
        return HeadError(exact * UP, (rounding + 1.01 * model.unit * largest + added) * UP)

    def slopes(self, low: float, high: float, y: float) -> tuple[float, float]:
        return slopes_on(self.phi, low, high)

    def values(self, arguments: np.ndarray, y: np.ndarray) -> np.ndarray:
        read = head_values(self.parts, arguments)
        return read - y if self.label else read


_Frozen = tuple[tuple[str, bytes, bytes, bytes], ...]


def outward(low: float, high: float) -> tuple[float, float]:
    """A slightly larger interval whose ends have few bits, so that what is found for it is found again."""
    return -_up(-low), _up(high)


def _up(number: float) -> float:
    if number == 0:
        return 0.0
    step = 2.0 ** (math.frexp(number)[1] - 4)
    return math.ceil(number / step) * step


def reading_error(
    parts: Sequence[Part], low: float, high: float, terms: float, roundings: int, model: Arithmetic
) -> float:
    """|computed head(x) - head(x)| for arguments x in [low, high], the head's parts being summed.

    terms       T, what the terms of an argument add up to at most, in size
    roundings   q, how many roundings a term of a logit goes through
    """
    return _reading_error(_frozen(parts), low, high, _up(terms), roundings, model)


@lru_cache(maxsize=256)
def _reading_error(frozen: _Frozen, low: float, high: float, terms: float, roundings: int, model: Arithmetic) -> float:
    parts = _thawed(frozen)
    factor = float(model.gamma(roundings))
    wrong = [
        factor * (np.abs(part.slopes.astype(np.float64)) * terms + np.abs(part.offsets.astype(np.float64)))
        for part in parts
    ]
    wide = max(high - low, 2.0**-20)
    return head_rounding(parts, 0.0, np.zeros(1), low, low + wide, model, wrong)


def facts_of(parts: Sequence[Part], phi: Expression, low: float, high: float) -> LinkFacts:
    """link_facts, remembered."""
    return _facts(_frozen(parts), phi, low, high)


@lru_cache(maxsize=256)
def _facts(frozen: _Frozen, phi: Expression, low: float, high: float) -> LinkFacts:
    return link_facts(_thawed(frozen), phi, low, high)


@lru_cache(maxsize=256)
def slopes_on(phi: Expression, low: float, high: float) -> tuple[float, float]:
    """least <= phi' <= slope on [low, high], wherever phi has a slope."""
    with precision(PRECISION):
        return range_of(phi.derivative("x"), {"x": (low, high)})


def head_values(parts: Sequence[Part], x: np.ndarray) -> np.ndarray:
    """The sum of the parts in float64."""
    total = np.zeros(x.shape)
    for part in parts:
        slopes, offsets, values = part.astype(np.float64)
        z = x[..., None] * slopes + offsets
        weights = np.exp(z - z.max(axis=-1, keepdims=True))
        total += (weights / weights.sum(axis=-1, keepdims=True)) @ values[:, 0]
    return total


def _frozen(parts: Sequence[Part]) -> _Frozen:
    arrays = ((part.slopes, part.offsets, part.values) for part in parts)
    return tuple((str(a.dtype), a.tobytes(), b.tobytes(), c.tobytes()) for a, b, c in arrays)


def _thawed(frozen: _Frozen) -> list[Part]:
    return [
        Part(np.frombuffer(a, kind), np.frombuffer(b, kind), np.frombuffer(c, kind)[:, None])
        for kind, a, b, c in frozen
    ]
