"""Gated neurons phi(g) u as attention: r = sum_j F_j u w_j(g), w_j the weight of the token's own key of logit 0 in a
softmax whose other keys, registers with logits slope g + offset, hold 0.

Claim: for every g of the dtype in [low, high] and every u, |computed r - phi(g) u| <= stated max(1, |g|) |u|, and what
underflows: 4 sum_j (1 + |F_j|) tiny. Since r = u sum_j F_j w_j(g), phi and sum_j F_j w_j are compared as functions of g
by Taylor polynomials, and the rounding of each weight is relative to u (self_key_rounding): cell by cell, as for a head
with its own key. Underflow: u, F u and its product with the weight may each become 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anchorhead.verify.balls import precision
from anchorhead.verify.errors import require
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.self_keys.head import ORDER, Cell, SelfKey
from anchorhead.verify.self_keys.rounding import gate_rounding
from anchorhead.verify.self_keys.self_key import covered, require_room


@dataclass(frozen=True)
class GatePart:
    """One head: the registers' keys, and the factor F of its own value."""

    slopes: Sequence[float]
    offsets: Sequence[float]
    factor: float

    def head(self) -> SelfKey:
        """The own key, of logit 0, last; held are F and 0, no multiples of g."""
        values = (*(0.0 for _ in self.slopes), self.factor)
        return SelfKey((*self.slopes, 0.0), (*self.offsets, 0.0), values, own=False)


def verify_gate(
    parts: Sequence[GatePart], function: Expression, low: float, high: float, dtype: str, stated: float
) -> int:
    """The number of cells that it took; raises NotVerified where the bound does not follow."""
    model = arithmetic_of(dtype)
    require(len(parts) > 0, "a gate of no heads")
    heads = [part.head() for part in parts]
    for head in heads:
        require_room(head, low, high, model)
    with precision(cap=ORDER + 1):
        mixtures = [head.mixture() for head in heads]

        def rounding(cell: Cell) -> float:
            pairs = zip(heads, mixtures, strict=True)
            return sum(gate_rounding(head, one, cell, len(parts), model) for head, one in pairs)

        return covered(mixtures, function, (low, high), stated, rounding, model)


def underflow(parts: Sequence[GatePart], dtype: str) -> float:
    """What tiny u and products with it may lose, whatever g is."""
    return 4 * sum(1 + abs(part.factor) for part in parts) * arithmetic_of(dtype).tiny
