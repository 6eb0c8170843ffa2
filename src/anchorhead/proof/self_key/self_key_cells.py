"""What both ways to evaluate a head with its own key need on a cell of s: its softmax, and what is added to it."""

from __future__ import annotations

import numpy as np

from anchorhead.heads.atom import Part
from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.arithmetic.rounding import dot_error, exact_factor
from anchorhead.proof.enclosures.analytic import cover_slope
from anchorhead.proof.enclosures.supremum import Supremum
from anchorhead.proof.heads.head_rounding import first_cells
from anchorhead.proof.heads.on_cells import Cells, OnCells, softmax_on_cells
from anchorhead.proof.self_key.self_key_balls import ball_head


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


def scale_of(left: Cells, right: Cells) -> Cells:
    """max(1, |s|) on each cell, from below."""
    return np.maximum(np.minimum(np.abs(left), np.abs(right)) * (left * right > 0), 1.0)


def added_rounding(head: SelfKeyHead, size: Cells, part: Cells, arithmetic: Arithmetic) -> Cells:
    """The rounding of skip s + bias + R for |s| <= size and |computed R| <= part."""
    terms = np.stack(np.broadcast_arrays(abs(head.skip) * size, abs(head.bias), part), axis=-1)
    exact = np.array([bool(exact_factor(head.skip)), True, True])
    return dot_error(terms, exact, terms.sum(axis=-1), arithmetic) + 4 * arithmetic.tiny * (1 + abs(head.skip))
