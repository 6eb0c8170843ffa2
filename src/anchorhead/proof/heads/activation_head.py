"""The shape of a neuron: a head on a scalar, in the units of its query, and what is proven of it.

A neuron a = phi(z) is read from softmaxes whose query t it shares:

    s = in_scale t + in_shift,      r(s) = out_scale sum over parts of sum_k v_k softmax_k(a_k t + g_k) + out_shift,

and |r(s) - phi(s)|, as the dtype computes it, is bounded for every s in [low, high]. Where phi is homogeneous,
phi(2^k s) = 2^(dk) phi(s), the same shape serves z in 2^k [low, high]: powers of two round nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Part
from anchorhead.language.analysis.pieces import analyse
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.precision import precision
from anchorhead.proof.arithmetic.arithmetic import UP
from anchorhead.proof.enclosures.analytic import lipschitz_bound, size_bound
from anchorhead.proof.enclosures.balls import upper
from anchorhead.proof.enclosures.ranges import moves_bounds, range_of

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
        """A bound on |phi'| on [low, high]; where there is none, on most of it."""
        pairs = self.pairs
        return pairs[min(1, len(pairs) - 1)][0]

    @property
    def pairs(self) -> tuple[tuple[float, float], ...]:
        """(L, J), any of which bounds what phi moves by: L |x - y| + J, beside its jumps."""
        return moves_bounds(self.activation, self.low, self.high)

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
        return tuple(size_bound(part, *self.queries) * UP for part in self.parts)

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


def degree_of(activation: Expression) -> float | None:
    """d with phi(2^k x) = 2^(dk) phi(x) on all of the line, if it is known to be so."""
    if activation.op == "variable":
        return 1.0
    return HOMOGENEOUS.get(activation.op) if activation.args and activation.args[0].op == "variable" else None
