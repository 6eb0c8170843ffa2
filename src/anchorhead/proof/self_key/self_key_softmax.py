"""The softmax of a head with its own key: in balls, on cells of s, and where it is one key alone, up to a little.

    R(s) = sum_k w_k(s) V_k(s),   V_k = v_k for a register, V = value s for the own key
    r(s) = skip s + bias + R(s)

Far out the key of the largest slope (on the right; of the least on the left) has all the weight: with a_top its slope,

    w_k(s) <= e^(-gap_k(s)),   gap_k(s) = |a_top - a_k| |s| + g_top - g_k,

which falls with |s|, and |V_k| <= size_k max(1, |s|) with size_k = |v_k| / max(1, T) for |s| >= T, or |value|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Part
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.rounding import dot_error, exact_factor
from anchorhead.proof.enclosures.analytic import cover_slope
from anchorhead.proof.enclosures.balls import BallHead, BallSoftmax
from anchorhead.proof.enclosures.supremum import Supremum
from anchorhead.proof.heads.head_rounding import first_cells
from anchorhead.proof.heads.on_cells import Cells, OnCells, softmax_on_cells


def ball_head(head: SelfKeyHead, skip: bool = True) -> BallHead:
    """r on balls, or R, without what passes by."""
    slopes, offsets, values = head.keys
    own = np.arange(len(slopes)) == head.registers
    softmax = BallSoftmax(slopes, offsets, np.where(own, 0.0, values), np.where(own, values, 0.0))
    return BallHead([softmax], 0.0, head.bias, head.skip) if skip else BallHead([softmax], 0.0, 0.0)


def speed_bound(head: SelfKeyHead, low: float, high: float) -> float:
    """A bound on |R'(s)| for s in [low, high]."""
    sup = Supremum(0.05)
    cover_slope(sup, ball_head(head, skip=False), low, high)
    return sup.bound


def cells_of(head: SelfKeyHead, low: float, high: float) -> tuple[Cells, Cells]:
    """Cells that narrow towards the crossings of neighbouring keys, cut at -1, 0 and 1 too."""
    slopes, offsets, values = head.keys
    left, right = first_cells([Part.of(slopes, offsets, values, "float64")], low, high)
    cuts = np.unique(np.concatenate([left, right, np.clip([-1.0, 0.0, 1.0], low, high)]))
    return cuts[:-1], cuts[1:]


def on_cells(head: SelfKeyHead, speed: float, left: Cells, right: Cells, stray: Cells | float = 0.0) -> OnCells:
    """The softmax of all keys, the own one's value s among theirs."""
    slopes, offsets, stored = head.keys
    own = (np.arange(len(slopes)) == head.registers).astype(float) * stored
    return softmax_on_cells(slopes, offsets, np.where(own != 0, 0.0, stored), speed, left, right, own, stray)


def added_rounding(head: SelfKeyHead, size: Cells, part: Cells, arithmetic: Arithmetic) -> Cells:
    """The rounding of skip s + bias + R for |s| <= size and |computed R| <= part."""
    terms = np.stack(np.broadcast_arrays(abs(head.skip) * size, abs(head.bias), part), axis=-1)
    exact = np.array([bool(exact_factor(head.skip)), True, True])
    return dot_error(terms, exact, terms.sum(axis=-1), arithmetic) + 4 * arithmetic.tiny * (1 + abs(head.skip))


@dataclass(frozen=True, eq=False)
class Tail:
    """One side from |s| = start on: the key `top` has all the weight, the others at most `weights` each.

    gaps     gap_k at the start; infinite for the top key itself       falls   |a_top - a_k|
    sizes    |V_k| <= sizes_k max(1, |s|)
    """

    start: float
    top: int
    gaps: Float[np.ndarray, " keys"]
    falls: Float[np.ndarray, " keys"]
    sizes: Float[np.ndarray, " keys"]

    @property
    def weights(self) -> Float[np.ndarray, " keys"]:
        return np.exp(np.minimum(-self.gaps, 300.0))

    @property
    def left_over(self) -> float:
        """|R - V_top| <= left_over max(1, |s|) on the whole tail: sum_k w_k (|V_k| + |V_top|)."""
        return float((self.weights * (self.sizes + self.sizes[self.top])).sum()) * UP + 1e-300


def tail_of(head: SelfKeyHead, side: int, start: float) -> Tail | None:
    """The tail from |s| = start on, on the side -1 or 1; None if two keys share the largest slope there."""
    slopes, offsets, values = head.keys
    top = int((side * slopes).argmax())
    falls = np.abs(slopes - slopes[top])
    others = np.arange(len(slopes)) != top
    if (falls[others] == 0).any():
        return None
    # rounded down by more than these few operations lose
    lost = 1e-15 * (falls * start + np.abs(offsets) + abs(offsets[top]))
    gaps = np.where(others, falls * start + offsets[top] - offsets - 4 * lost, np.inf)
    sizes = np.abs(values) / max(1.0, start)
    if head.own is not None:
        sizes[-1] = abs(values[-1])
    return Tail(start, top, gaps, falls, sizes)


def settled(head: SelfKeyHead, side: int, share: float) -> float:
    """The distance from 0 at which the other keys leave at most `share` on this side, rounded up to a few bits."""
    for distance in (2.0**power * part / 32 for power in range(-29, 41) for part in range(17, 33)):
        tail = tail_of(head, side, distance)
        if tail is not None and tail.left_over <= share:
            return distance
    return math.inf
