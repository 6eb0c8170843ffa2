"""A softmax in which the token is a key itself: r(s) = skip s + bias + sum_k w_k(s) (v_k + o_k s), on the whole line.

Claim: for every s of the dtype in [low, high], whichever way r is evaluated, |computed r(s) - f(s)| <= stated
max(1, |s|). Both evaluations are scalar heads, each with numbers of its own: the softmax (plain and direct), and the
quotient of polynomials in y = e^(rate t), t = s clipped (`powers`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.rounding import Arithmetic, arithmetic_of
from anchorhead.verify.scalar.cells import Straight, prove
from anchorhead.verify.scalar.part import Claim, Part
from anchorhead.verify.scalar.softmax import Softmax
from anchorhead.verify.self_keys.powers import MAX_KEYS, Powers, Quotient

WIDEST = 2.0**16
"""The ends of a cell that does not begin at 0 are at most this far apart, as a quotient: balls have short radii."""


@dataclass(frozen=True)
class SelfKey:
    """What a head stores: registers and, last if `own`, the token's own key, whose value is s times its number."""

    slopes: Sequence[float]
    offsets: Sequence[float]
    values: Sequence[float]
    own: bool
    skip: float = 0.0
    bias: float = 0.0

    def part(self, model: Arithmetic) -> Part:
        slopes, offsets, values = (np.array(one, np.float64) for one in (self.slopes, self.offsets, self.values))
        mine = np.arange(len(values)) == (len(values) - 1 if self.own else -1)
        return stored(slopes, offsets, np.where(mine, 0.0, values), np.where(mine, values, 0.0), model)


def stored(
    slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, own: np.ndarray | None, model: Arithmetic
) -> Part:
    """Logits of one product and one sum."""
    nothing, sizes = np.zeros(len(slopes)), np.abs(offsets)
    terms = (offsets != 0).astype(int)
    return Part(slopes, offsets, values, sizes, sizes, terms, nothing, nothing, nothing, model, own=own)


def verify_self_key(
    head: SelfKey, quotient: Quotient | None, function: Expression, low: float, high: float, dtype: str, stated: float
) -> int:
    """The number of cells that it took; raises NotVerified where the bound does not follow."""
    model, straight = arithmetic_of(dtype), Straight(head.skip, head.bias)
    require_room(head, low, high, model)
    cells = covered([Softmax(head.part(model), model)], function, (low, high), stated, straight)
    if quotient is not None:
        for a, b, at in quotient.spans(low, high, model):
            powers = Powers(quotient, at, max(abs(a), abs(b)), model)
            cells += covered([powers], function, (a, b), stated, straight)
    return cells


def covered(
    parts: Sequence[Softmax], function: Expression, ends: tuple[float, float], stated: float, straight: Straight
) -> int:
    """The number of cells that it took to show |computed R - f| <= stated max(1, |s|)."""
    claim = Claim(function, 1.0, 0.0, 1.0, 0.0)
    good = stated * (1 - 1e-9)
    found = prove(parts, claim, scales(*ends), parts[0].model, good, straight=straight)
    if not found.total <= stated:
        raise NotVerified(f"a bound of {stated:.6g} does not follow: only {found.total:.6g} can be shown")
    return found.cells


def scales(low: float, high: float) -> list[tuple[float, float]]:
    """Cells of one sign, within or beyond [-1, 1], whose ends are not too far apart."""
    cuts = {low, high, *(x for x in (-1.0, 0.0, 1.0) if low < x < high)}
    x = WIDEST
    while x < max(-low, high):
        cuts |= {y for y in (-x, x) if low < y < high}
        x *= WIDEST
    ends = sorted(cuts)
    return list(pairwise(ends))


def require_room(head: SelfKey, low: float, high: float, model: Arithmetic) -> None:
    """Nothing overflows: |slope s| + |offset| and what is held stay far below the largest number of the dtype."""
    far, lengths = max(abs(low), abs(high)), {len(head.slopes), len(head.offsets), len(head.values)}
    require(low < high and math.isfinite(far), f"a head on [{low}, {high}]")
    require(len(lengths) == 1 and 1 <= min(lengths) <= MAX_KEYS, f"a head of {lengths} keys")
    sizes = [abs(a) * far + abs(g) for a, g in zip(head.slopes, head.offsets, strict=True)]
    held = max(map(abs, head.values)) * max(far, 1.0) + abs(head.skip) * far + abs(head.bias)
    require(max(sizes) < model.largest / 4 and held < model.largest / 4, f"a head overflows in {model.dtype}")
