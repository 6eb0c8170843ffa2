"""Sums of softmax heads on one scalar, compared with a piecewise linear target over the whole real line.

A head with slopes a_k (ascending), offsets g_k and values v_k computes, at a query q,

    r(q) = sum_k w_k v_k,   w = softmax_k(a_k (q - origin) + g_k).

What it does on a cell, its second derivative included, is proof.heads.on_cells. On a cell of width h around c whose
target is linear, with g = sum of heads - target,

    |g| <= max |g(c) ± g'(c) h/2| + sup |r''| h^2 / 8.

Cells end at every crossing of neighbouring anchors and at every corner of the target, and are spaced by the logit
distance to the nearest crossing, so that they are narrow where a head moves and wide where it is flat. Cells whose
bound is not yet close to the largest error found are halved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.arithmetic.readings import Refusal
from anchorhead.proof.heads.cells import Cells, Piece, Readout
from anchorhead.proof.heads.whole_head import NEGLIGIBLE, ScalarHead

ROUNDS, LOOSE = 12, 0.004
"""How often cells are halved, and how far a bound may be above the largest error found."""


def sup_error(
    heads: Sequence[ScalarHead],
    pieces: Sequence[Piece],
    readout: Readout,
    arithmetic: Arithmetic,
    queries: tuple[float, float],
) -> tuple[float, float]:
    """How far the heads are from the target, and how far the dtype is from the heads at the queries of the box.

    Between pieces nothing is claimed. A piece that reaches to infinity is constant there.
    """
    for head in heads:
        if len(head.slopes) < 2 or (np.diff(head.slopes) <= 0).any() or (np.diff(head.crossings) < 0).any():
            raise Refusal("a head's anchors are not in order: there must be two, slopes and crossings must ascend")
    exact = found = max(_at_infinity(heads, piece, readout) for piece in pieces)
    rounding = 0.0
    cells = Cells.of(pieces, _nodes(heads, queries))
    for last in (*(False,) * ROUNDS, True):
        for head in heads:
            cells.add(head, arithmetic)
        bound = cells.exact(readout)
        found = max(found, cells.found(readout))
        good = (bound <= (1 + LOOSE) * found) | last
        exact = max(exact, bound[good].max(initial=0.0))
        rounding = max(rounding, cells.rounding(readout, arithmetic, queries)[good].max(initial=0.0))
        cells = cells.halved(~good)
        if not len(cells.left):
            break
    return float(exact), float(rounding)


def _at_infinity(heads: Sequence[ScalarHead], piece: Piece, readout: Readout) -> float:
    """The error beyond all nodes, where each head has settled on its first or last anchor."""
    settled = 0 if np.isneginf(piece.low) else -1 if np.isposinf(piece.high) else None
    if settled is None:
        return 0.0
    ends = [(head.levels[settled], head.groups[settled]) for head in heads]
    own = sum(value for value, group in ends if group == piece.group)
    other = sum(abs(value) for value, group in ends if group != piece.group)
    spread = sum(head.unseen_weight * np.ptp(head.levels) for head in heads)
    return float(max(abs(own + readout.bias - piece.level), other) + spread)


def _nodes(heads: Sequence[ScalarHead], queries: tuple[float, float]) -> Float[np.ndarray, " n"]:
    """Cell ends, at logit distances 0, 1/4, ... from each crossing, ever wider, up to the middle between crossings;
    beyond the outermost crossings, doubling distances up to the ends of the box."""
    ladder = [0.0]
    while ladder[-1] < NEGLIGIBLE:
        ladder.append(ladder[-1] + 0.25 * float(np.exp(ladder[-1] / 4)))
    nodes = [np.array(queries)]
    for head in heads:
        x, step = head.crossings, np.diff(head.slopes)
        half, outer = np.diff(x) / 2, NEGLIGIBLE / step
        reach = np.array(ladder) / step[:, None]
        nodes.append((x[:, None] - np.minimum(reach, np.append(outer[:1], half)[:, None])).ravel())
        nodes.append((x[:, None] + np.minimum(reach, np.append(half, outer[-1:])[:, None])).ravel())
    lowest, highest = min(head.crossings[0] for head in heads), max(head.crossings[-1] for head in heads)
    for start, end, sign in ((lowest, queries[0], -1), (highest, queries[1], 1)):
        distance = NEGLIGIBLE / min(np.diff(head.slopes)[0 if sign < 0 else -1] for head in heads)
        while distance < (end - start) * sign:
            nodes.append(np.array([start + sign * distance]))
            distance *= 2
    return np.unique(np.concatenate(nodes))
