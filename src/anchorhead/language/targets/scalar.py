"""What a head approximates: one or several functions of one variable on an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.given import number, pair, shown
from anchorhead.language.analysis.pieces import Pieces, analyse
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.text import short_text
from anchorhead.read_only import ReadOnly

NARROWEST = float(np.finfo(np.float64).tiny)
"""Of an interval: below this, numbers have fewer digits, and an interval cannot be divided as others are."""


@dataclass(frozen=True)
class ScalarTarget(ReadOnly):
    """The functions x -> (f_1(x), ..., f_m(x)) on [low, high], known as expressions.

    Raises when it is made if one of them is undefined, discontinuous or beyond float64 somewhere on the
    interval.
    """

    expressions: tuple[Expression, ...]
    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = interval((self.low, self.high))
        if not self.expressions:
            raise AnchorheadError("a target without expressions: give at least one")
        for name, value in (("expressions", tuple(self.expressions)), ("low", low), ("high", high)):
            object.__setattr__(self, name, value)
        _ = self.pieces

    @cached_property
    def pieces(self) -> Pieces:
        """Where all of them are analytic together."""
        return analyse(self.expressions, self.low, self.high)

    @property
    def variable(self) -> str:
        return self.pieces.variable

    @property
    def outputs(self) -> int:
        return len(self.expressions)

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where one of them need not be smooth, to the nearest float64; ends only if singular there."""
        return tuple(float(kink.at.mid()) for kink in self.pieces.kinks if not kink.smooth)

    @property
    def name(self) -> str:
        """ "gelu" for gelu(x); else the text."""
        names = [short_text(expression) for expression in self.expressions]
        return names[0] if len(names) == 1 else f"[{', '.join(names)}]"

    def values(self, x: Any) -> Float[np.ndarray, "... m"]:
        """f_k(x) in float64, for an array of points of any shape."""
        at = {self.variable: np.asarray(x, dtype=np.float64)}
        return np.stack([expression.values(at) for expression in self.expressions], axis=-1)

    def ball(self, x: arb) -> tuple[arb, ...]:
        """Enclosures of all f_k over a ball of points."""
        return tuple(expression.ball({self.variable: x}) for expression in self.expressions)

    def __str__(self) -> str:
        return self.name


def interval(on: Any) -> tuple[float, float]:
    """The two ends of a domain, checked: finite, the lower one first."""
    ends = pair(on)
    if ends is None or any(isinstance(end, str | bool) or not hasattr(end, "__float__") for end in ends):
        raise AnchorheadError(f"on={shown(on)} is not a domain: give the two ends, as in on=(-10, 10)")
    low, high = number(ends[0]), number(ends[1])
    if not (math.isfinite(low) and math.isfinite(high)):
        raise AnchorheadError(f"on={shown(on)} is not bounded: give two finite ends, as in on=(-10, 10)")
    if low >= high:
        empty = "is a single point" if low == high else "has its lower end above its upper end"
        raise AnchorheadError(f"on={shown(on)} {empty}: give the lower end first, as in on=(-10, 10)")
    if high - low < NARROWEST:
        raise AnchorheadError(
            f"on={shown(on)} is narrower than {NARROWEST:.3g}, where float64 has fewer digits: rescale"
        )
    if not math.isfinite(high - low):
        raise AnchorheadError(f"on={shown(on)} is wider than float64 can hold: give a smaller domain")
    return low, high
