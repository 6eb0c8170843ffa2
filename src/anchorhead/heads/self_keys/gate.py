"""Heads for gated neurons phi(g) u: in each softmax the token's own key carries u, registers carry 0.

    phi(g) u ~ sum_j factor_j u / (1 + sum_k e^(slopes_jk g + offsets_jk))

The own key has logit 0 (a gauge), so its weight is the reciprocal of a sum of exponentials with positive coefficients.
A weight is right to a few units in the last place however small it is. So phi is written as a difference of two
functions that are positive and nowhere much larger than |phi|, or than 1: each a reciprocal of such a sum. A line g is
one on any interval [1, G], because 1/g is the integral of e^(-g t); a bump is one, because its reciprocal grows to both
sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Dtype
from anchorhead.network.dtypes import stored
from anchorhead.read_only import ReadOnly, read_only


@dataclass(frozen=True, eq=False)
class GatePart(ReadOnly):
    """One attention head: the own key of logit 0 and value factor u, and p registers of value 0."""

    slopes: Float[np.ndarray, " p"]
    offsets: Float[np.ndarray, " p"]
    factor: float

    @classmethod
    def of(cls, slopes: Any, offsets: Any, factor: float, dtype: Dtype) -> GatePart:
        """A part with its weights rounded once to the dtype."""
        columns = [read_only(stored(np.asarray(column, np.float64), dtype)) for column in (slopes, offsets)]
        return cls(columns[0], columns[1], float(stored(factor, dtype)))


@dataclass(frozen=True, eq=False)
class GateHead:
    """The heads that make up phi(g) u, for every g in [low, high] and every u whose product with each factor the dtype
    holds: where factor u overflows, so does the result.

    exact, rounding   proven bounds on |phi u - r| and |computed r - r|, divided by max(1, |g|) |u|;
                      products with u that underflow come on top (`underflow`)
    """

    function: str
    parts: tuple[GatePart, ...]
    low: float
    high: float
    dtype: Dtype
    exact: float
    rounding: float

    @property
    def registers(self) -> int:
        """How many registers the parts need in all: each has keys of its own."""
        return sum(len(part.slopes) for part in self.parts)

    @property
    def bound(self) -> float:
        """|phi(g) u - computed r| <= bound max(1, |g|) |u| + underflow."""
        return (self.exact + self.rounding) * (1 + 1e-15)

    @property
    def underflow(self) -> float:
        """What a tiny u and products with it may lose, whatever g is."""
        return gate_underflow([part.factor for part in self.parts], self.dtype)

    def __call__(self, g: Any) -> Float[np.ndarray, "..."]:
        """phi(g) as the heads make it up, in float64: for study and tests."""
        g = np.asarray(g, np.float64)[..., None]
        total = np.zeros(g.shape[:-1])
        for part in self.parts:
            logits = g * part.slopes.astype(np.float64) + part.offsets.astype(np.float64)
            top = np.maximum(logits.max(axis=-1), 0.0)
            total += part.factor * np.exp(-top) / (np.exp(-top) + np.exp(logits - top[..., None]).sum(axis=-1))
        return total


def gate_underflow(factors: Sequence[float], dtype: str) -> float:
    """What products with a tiny u may lose: the smallest normal number, thrice a part, and once times the factor."""
    return 4 * sum(1 + abs(factor) for factor in factors) * float(np.finfo(dtype).tiny)
