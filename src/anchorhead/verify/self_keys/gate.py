"""Gated neurons phi(g) u as attention: r = sum_j F_j u w_j(g), w_j the weight of the token's own key of logit 0 in a
softmax whose other keys, registers with logits slope g + offset, hold 0.

Claim: for every g of the dtype in [low, high] and every u, |computed r - phi(g) u| <= stated max(1, |g|) |u|, and what
underflows: 4 sum_j (1 + |F_j|) tiny. Since r = u sum_j F_j w_j(g), phi and sum_j F_j w_j are compared as functions of g
by Taylor polynomials, and the rounding of each weight is relative to u (self_key_rounding): cell by cell, as for a head
with its own key. Underflow: u, F u and its product with the weight may each become 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb, arb_series

from anchorhead.verify.balls import precision, size
from anchorhead.verify.errors import require
from anchorhead.verify.programs.expressions import Expression, Undecided
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.self_keys.cover import coefficients, cover, taylor_bound
from anchorhead.verify.self_keys.head import ORDER, Cell, SelfKey
from anchorhead.verify.self_keys.rounding import gate_rounding
from anchorhead.verify.self_keys.self_key import require_room, scales


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
    (name,) = function.variables or ("x",)
    with precision(cap=ORDER + 1):
        mixtures = [head.mixture() for head in heads]

        def gap(s: arb) -> list[arb]:
            f = coefficients(function.series({name: arb_series([s, 1])}), ORDER + 1)
            found = [one.series(s) for one in mixtures]
            return [f[i] - sum((one[i] for one in found), arb(0)) for i in range(ORDER + 1)]

        def bound(a: float, b: float) -> float:
            cell = Cell.of(a, b)
            try:
                exact = taylor_bound(gap, a, b, ORDER)
            except Undecided:
                exact = math.inf
            if not exact < math.inf:
                made = sum((one.enclosure(cell.ball) for one in mixtures), arb(0))
                exact = size(function.ball({name: cell.ball}) - made)
            exact *= (1 + 1e-9) / max(1.0, cell.near)
            if exact > stated:
                return exact
            pairs = zip(heads, mixtures, strict=True)
            return exact + sum(gate_rounding(head, one, cell, len(parts), model) for head, one in pairs)

        return cover(bound, scales(low, high), stated, dtype)


def underflow(parts: Sequence[GatePart], dtype: str) -> float:
    """What tiny u and products with it may lose, whatever g is."""
    return 4 * sum(1 + abs(part.factor) for part in parts) * arithmetic_of(dtype).tiny
