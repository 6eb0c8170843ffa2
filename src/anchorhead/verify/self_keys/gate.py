"""Gated neurons phi(g) u as attention: r = sum_j F_j u w_j(g), w_j the weight of the token's own key of logit 0 in a
softmax whose other keys, registers with logits slope g + offset, hold 0.

Claim: for every g of the dtype in [low, high] and every u, |computed r - phi(g) u| <= stated max(1, |g|) |u|, and what
underflows: 4 sum_j (1 + |F_j|) tiny. Since r = u sum_j F_j w_j(g), phi and sum_j F_j w_j are compared as functions of
g, scalar heads whose own key holds F, rounded once, as F u is; all roundings are relative to u. Underflow: u, F u and
its product with the weight may each become 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.rounding import Arithmetic, arithmetic_of
from anchorhead.verify.scalar.cells import Straight
from anchorhead.verify.scalar.softmax import Softmax
from anchorhead.verify.self_keys.self_key import SelfKey, covered, require_room, stored


@dataclass(frozen=True)
class GatePart:
    """One head: the registers' keys, and the factor F of its own value."""

    slopes: Sequence[float]
    offsets: Sequence[float]
    factor: float

    def softmax(self, low: float, high: float, model: Arithmetic) -> Softmax:
        """The own key, of logit 0, last, alone holds anything: F, no multiple of g."""
        slopes, offsets, values = (*self.slopes, 0.0), (*self.offsets, 0.0), (*(0.0 for _ in self.slopes), self.factor)
        require_room(SelfKey(slopes, offsets, values, own=False), low, high, model)
        part = stored(np.array(slopes), np.array(offsets), np.array(values), None, model)
        return Softmax(replace(part, value_error=model.unit * np.abs(part.values)), model, terms=1)


def verify_gate(
    parts: Sequence[GatePart],
    function: Expression,
    low: float,
    high: float,
    dtype: str,
    stated: float,
    lean: float = 0.0,
) -> int:
    """The number of cells that it took; raises NotVerified where the bound does not follow. lean: every part may be
    computed for another g, this far away; what its exact read moves by is left to whoever asks, its rounding is not."""
    require(len(parts) > 0, "a gate of no heads")
    heads = [part.softmax(low, high, arithmetic_of(dtype)) for part in parts]
    if lean:
        heads = [Leaning(replace(one.part, lean=lean), one.model, one.terms) for one in heads]
    return covered(heads, function, (low, high), stated, Straight())


class Leaning(Softmax):
    """One that may be asked with another t, of which only what it rounds by there counts."""

    moves = False


def underflow(parts: Sequence[GatePart], dtype: str) -> float:
    """What tiny u and products with it may lose, whatever g is."""
    return 4 * sum(1 + abs(part.factor) for part in parts) * arithmetic_of(dtype).tiny
