"""How steep a link is around each of many points: bounds on cells, found once, looked up for whole arrays."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from flint import arb
from jaxtyping import Float

from anchorhead.language.expressions.precision import precision
from anchorhead.language.targets import Expression
from anchorhead.proof.enclosures.balls import lower, upper
from anchorhead.proof.heads.link_heads import PRECISION, LinkFacts

CELLS = 1024
WIDEST = 14.0
"""Cells reach to sinh(14), 600,000, times the width on which the link changes."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """edges (cells + 1,) ascending; least and most (levels, cells): bounds on phi' over 2^level cells from each on."""

    edges: Float[np.ndarray, " edges"]
    least: Float[np.ndarray, "levels cells"]
    most: Float[np.ndarray, "levels cells"]

    def between(
        self, low: Float[np.ndarray, " n"], high: Float[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Bounds from below and above on phi' over [low_i, high_i], cut to where there are cells."""
        last = len(self.edges) - 2
        first = np.clip(np.searchsorted(self.edges, low, side="left") - 1, 0, last)
        after = np.clip(np.searchsorted(self.edges, high, side="right"), first + 1, last + 1)
        level = np.frexp(after - first)[1] - 1
        second = after - (1 << level)
        return (
            np.minimum(self.least[level, first], self.least[level, second]),
            np.maximum(self.most[level, first], self.most[level, second]),
        )


@lru_cache(maxsize=64)
def slopes_of(phi: Expression, facts: LinkFacts) -> Slopes:
    """On all of the range for which the facts are known, cells narrow where phi changes."""
    width = facts.size / facts.steepest if facts.steepest > 0 and facts.size > 0 else 1.0
    biggest = sys.float_info.max
    inner = width * np.sinh(np.linspace(-WIDEST, WIDEST, CELLS + 1))
    outer = inner[-1] * 16.0 ** np.arange(1, 230)
    edges = np.concatenate([-outer[outer < biggest], inner, outer[outer < biggest]])
    low, high = max(facts.low, -biggest), min(facts.high, biggest)
    edges = np.unique(np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]]))
    derivative = phi.derivative("x")
    with precision(PRECISION):
        balls = [derivative.ball({"x": arb(a).union(arb(b))}) for a, b in pairwise(edges.tolist())]
    least = np.maximum([lower(ball) for ball in balls], facts.least)
    most = np.minimum([upper(ball) for ball in balls], facts.slope)
    return Slopes(edges, over_more(least, np.minimum), over_more(most, np.maximum))


def over_more(first: Float[np.ndarray, " cells"], pick: np.ufunc) -> Float[np.ndarray, "levels cells"]:
    """Row l: the extreme over 2^l cells from each one on, as far as there are cells."""
    rows, width = [first], 1
    while 2 * width <= len(first):
        shifted = np.concatenate([rows[-1][width:], np.full(width, rows[-1][-1])])
        rows.append(pick(rows[-1], shifted))
        width *= 2
    return np.stack(rows)
