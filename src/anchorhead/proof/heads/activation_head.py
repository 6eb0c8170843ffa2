"""The shape of a neuron: a head on a scalar, in the units of its query, and what is proven of it.

A neuron a = phi(z) is read from softmaxes whose query t it shares:

    s = in_scale t + in_shift,      r(s) = out_scale sum over parts of sum_k v_k softmax_k(a_k t + g_k) + out_shift,

and |r(s) - phi(s)|, as the dtype computes it, is bounded for every s in [low, high]. Where phi is homogeneous,
phi(2^k s) = 2^(dk) phi(s), the same shape serves z in 2^k [low, high]: powers of two round nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Part
from anchorhead.language.analysis.pieces import analyse
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.analytic import lipschitz_bound, range_bound
from anchorhead.proof.enclosures.balls import lower, upper

HOMOGENEOUS = {"relu": 1.0, "leaky_relu": 1.0, "abs": 1.0, "square": 2.0}


@dataclass(frozen=True, eq=False)
class ActivationHead:
    """exact: |r - phi| in exact arithmetic; rounding: |computed r - r|; degree: d if phi is homogeneous, else None."""

    activation: Expression
    low: float
    high: float
    parts: tuple[Part, ...]
    exact: float
    rounding: float
    in_scale: float = 1.0
    in_shift: float = 0.0
    out_scale: float = 1.0
    out_shift: float = 0.0
    degree: float | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many anchors each part has."""
        return tuple(len(part) for part in self.parts)

    @property
    def anchors(self) -> int:
        return sum(self.lengths)

    @property
    def error(self) -> float:
        return self.exact + self.rounding

    @property
    def queries(self) -> tuple[float, float]:
        """The interval of t, a little widened."""
        ends = sorted((end - self.in_shift) / self.in_scale for end in (self.low, self.high))
        slack = 1e-12 * (abs(ends[0]) + abs(ends[1]) + abs(self.in_shift / self.in_scale))
        return ends[0] - slack, ends[1] + slack

    def largest_logit(self, reach: float) -> float:
        """A bound on |a_k t + g_k| for |t| <= reach."""
        return max(
            float((np.abs(part.slopes.astype(float)) * reach + np.abs(part.offsets.astype(float))).max())
            for part in self.parts
        )

    def exponents(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """k such that [low, high] lies in 2^k [self.low, self.high]; 0 where phi does not scale."""
        if self.degree is None:
            return np.zeros(len(low), int)
        need = np.maximum(high / self.high if self.high > 0 else 0, low / self.low if self.low < 0 else 0)
        mantissa, exponent = np.frexp(np.maximum(need, 2.0**-60))
        return np.where(mantissa == 0.5, exponent - 1, exponent)

    @cached_property
    def slope(self) -> float:
        """A bound on |phi'| on [low, high]."""
        return slope_bound(self.activation, self.low, self.high)

    @cached_property
    def jump(self) -> float:
        """How much phi may jump by in all on [low, high]: the two sides of a `where` meet up to rounding only."""
        pieces = analyse(self.activation, self.low, self.high)
        with precision(64):
            return float(sum(upper(abs(kink.jump)) for kink in pieces.kinks)) * UP

    @cached_property
    def reach(self) -> tuple[float, ...]:
        """For each part, a bound on |sum_k v_k w_k|."""
        if len(self.parts) == 1:
            ends = range_of(self.activation, np.array([self.low]), np.array([self.high]))
            most = float(np.abs(ends).max()) + self.exact + abs(self.out_shift)
            return (most / abs(self.out_scale) * UP,)
        return tuple(self._sup(part, part.values) for part in self.parts)

    def moved(self, apart: Float[np.ndarray, " neurons"]) -> Float[np.ndarray, " neurons"]:
        """What parts add that ask so far apart in t, in all but the one that would move furthest."""
        if len(self.parts) == 1 or not apart.any():
            return np.zeros(len(apart))
        most = [np.minimum(speed * apart, float(np.ptp(part.values.astype(float)))) for speed, part in self._speeds]
        return self.out_scale * (np.sum(most, axis=0) - np.max(most, axis=0)) * UP

    @cached_property
    def _speeds(self) -> tuple[tuple[float, Part], ...]:
        """Of each part a bound on |dr/dt|."""
        return tuple((lipschitz_bound([part], *self.queries), part) for part in self.parts)

    def _sup(self, part: Part, values: np.ndarray) -> float:
        low, high = range_bound([Part(part.slopes, part.offsets, values)], 0.0, np.zeros(1), *self.queries, rtol=0.05)
        return float(max(abs(low[0]), abs(high[0]))) * UP

    def record(self, number: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The shape as data and arrays, to be stored beside a target: a checker proves it again."""
        data = {
            "activation": self.activation.to_json(),
            **{name: getattr(self, name) for name in ("low", "high", "degree")},
            **{name: getattr(self, name) for name in ("in_scale", "in_shift", "out_scale", "out_shift")},
            "parts": len(self.parts),
        }
        arrays = {
            f"shape.{number}.{place}.{name}": getattr(part, name)
            for place, part in enumerate(self.parts)
            for name in ("slopes", "offsets", "values")
        }
        return data, arrays

    @classmethod
    def from_record(cls, number: int, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ActivationHead:
        """The stored shape, of which nothing is known yet."""
        try:
            parts = tuple(
                Part(*(arrays[f"shape.{number}.{place}.{name}"] for name in ("slopes", "offsets", "values")))
                for place in range(int(data["parts"]))
            )
            numbers = {name: float(data[name]) for name in ("in_scale", "in_shift", "out_scale", "out_shift")}
            degree = None if data["degree"] is None else float(data["degree"])
            activation = Expression.from_json(data["activation"])
            low, high = float(data["low"]), float(data["high"])
            shape = cls(activation, low, high, parts, np.inf, np.inf, **numbers, degree=degree)
        except (KeyError, TypeError, ValueError) as error:
            raise AnchorheadError(f"a stored head is damaged: {error!r}") from error
        if not parts or not low < high or shape.in_scale <= 0 or shape.out_scale <= 0:
            raise AnchorheadError("a stored head is damaged: it has no parts, no interval or no scale")
        return shape


def degree_of(activation: Expression) -> float | None:
    """d with phi(2^k x) = 2^(dk) phi(x) on all of the line, if it is known to be so."""
    if activation.op == "variable":
        return 1.0
    return HOMOGENEOUS.get(activation.op) if activation.args and activation.args[0].op == "variable" else None


@lru_cache(maxsize=256)
def slope_bound(activation: Expression, low: float, high: float, most: int = 4000) -> float:
    """L >= |phi'| on [low, high]: enclosures on cells, halved where they are loose."""
    bound, found = 0.0, 0.0
    with precision(96):
        pieces = analyse(activation, low, high)
        for piece in pieces.pieces:
            slope = piece.expression.derivative(pieces.variable)
            pending = [(piece.left, piece.right)]
            spent = 0
            while pending:
                left, right = pending.pop()
                centre = ((left + right) / 2).mid()
                found = max(found, _finite(slope, pieces.variable, centre))
                size = _finite(slope, pieces.variable, left.union(right))
                spent += 1
                if size <= 1.01 * found or spent > most:
                    bound = max(bound, size)
                else:
                    pending += [(left, centre), (centre, right)]
    if not np.isfinite(bound):
        raise AnchorheadError(f"the slope of {activation} is not bounded on [{low:g}, {high:g}]: choose another domain")
    return bound * UP


def _finite(expression: Expression, variable: str, at: arb) -> float:
    size = abs(expression.ball({variable: at}))
    return upper(size) if size.is_finite() else np.inf


def range_of(activation: Expression, low: np.ndarray, high: np.ndarray, cells: int = 1024) -> tuple[np.ndarray, ...]:
    """For each interval [low_i, high_i] ends that phi does not leave there.

    Enclosures on cells that all share; where an interval is shorter than a few of them, one on itself as well. What was
    asked for before is remembered: conversions try many heads on the same intervals.
    """
    least, most = _ranges(activation, np.asarray(low, float).tobytes(), np.asarray(high, float).tobytes(), cells)
    return least.copy(), most.copy()


@lru_cache(maxsize=64)
def _ranges(activation: Expression, lows: bytes, highs: bytes, cells: int) -> tuple[np.ndarray, ...]:
    low, high = np.frombuffer(lows), np.frombuffer(highs)
    cuts = np.linspace(float(low.min()), float(high.max()), cells + 1)
    short = np.flatnonzero(high - low < 4 * (cuts[-1] - cuts[0]) / cells)
    least, most = _enclosed(activation, cuts[:-1], cuts[1:])
    first = np.clip(np.searchsorted(cuts, low, "right") - 1, 0, cells - 1)
    last = np.clip(np.searchsorted(cuts, high, "left"), first + 1, cells)
    pairs = list(zip(first.tolist(), last.tolist(), strict=True))
    least, most = np.array([least[a:b].min() for a, b in pairs]), np.array([most[a:b].max() for a, b in pairs])
    bottom, top = _enclosed(activation, low[short], high[short])
    least[short], most[short] = np.maximum(least[short], bottom), np.minimum(most[short], top)
    return least, most


def _enclosed(activation: Expression, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The two ends of an enclosure of phi on each interval."""
    variable = (activation.variables or ("x",))[0]
    with precision(64):
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        values = [activation.ball({variable: arb(a).union(arb(b))}) for a, b in pairs]
    return np.array([_ends(value) for value in values]).reshape(-1, 2).T


def _ends(value: arb) -> tuple[float, float]:
    return lower(value), upper(value)
