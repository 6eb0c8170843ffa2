"""Heads on one number against a truncated linear function of it, over the whole line.

With s = w . x + t and q the query that the dtype computes, Range(s) = T((s - middle) / spacing) for the piecewise
linear T(q) = Range(middle + spacing q), which moves by at most spacing |dq|. So

    |output - Range(s)| <= |dtype - heads|(q) + |heads - T|(q) + spacing |q - (s - middle) / spacing|:

rounding of the head, approximation, and the error of the query, each bounded on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, Arithmetic
from anchorhead.proof.heads.cells import Piece, Readout
from anchorhead.proof.heads.scalar import sup_error
from anchorhead.proof.heads.whole_head import ScalarHead


@dataclass(frozen=True)
class Lattice:
    """The scale of the query: s = middle + spacing q. Nearer to a switch than `margin` spacings nothing is claimed."""

    middle: float
    spacing: float
    margin: float = 0.0


def prove_ramp(
    heads: Sequence[ScalarHead],
    readout: Readout,
    queries: tuple[float, float],
    target: TruncatedLinear,
    lattice: Lattice,
    error: float,
    arithmetic: Arithmetic,
    sample: bool = False,
) -> tuple[float, float]:
    """Bounds on |heads - Range(s)| in exact arithmetic for every s, and on what rounding adds for these queries.

    error    how far middle + spacing q may be from s
    sample   an estimate, from the places where it is decided
    """
    pieces = _pieces(target, lattice, error / lattice.spacing)
    if sample:
        pieces = _deciding(pieces, [head.crossings[end] for head in heads for end in (0, -1)])
    exact, rounding = sup_error(heads, pieces, readout, arithmetic, queries)
    return exact + 16 * FLOAT64.unit * (abs(target.low) + abs(target.high)), rounding + error


def _pieces(target: TruncatedLinear, lattice: Lattice, query_error: float) -> list[Piece]:
    """T in the scale of the query, cut at low, high and the switches, without the neighbourhoods of the switches."""
    corners = (np.array([target.low, target.high]) - lattice.middle) / lattice.spacing
    switches = (target.switches - lattice.middle) / lattice.spacing
    gap = lattice.margin - query_error
    if len(switches) and gap <= 0:
        raise AnchorheadError(
            f"w·x + t rounds by {query_error:.3g} spacings of {lattice.spacing:.3g}, no less than the margin of "
            f"{lattice.margin:.3g} around the switches: use fewer anchors, a smaller box or float64"
        )
    pieces = []
    edges = np.concatenate([[-np.inf], switches, [np.inf]])
    for start, end, feature in zip(edges[:-1], edges[1:], target.features, strict=True):
        start, end = (start + gap if np.isfinite(start) else start), (end - gap if np.isfinite(end) else end)
        cuts = [start, *(corner for corner in corners if start < corner < end), end]
        for low, high in pairwise(cuts):
            if low < high:
                pieces.append(_piece(low, high, corners, target, lattice, int(feature)))
    return pieces


def _piece(
    low: float, high: float, corners: np.ndarray, target: TruncatedLinear, lattice: Lattice, feature: int
) -> Piece:
    if high <= corners[0]:
        return Piece(low, high, target.low, 0.0, feature)
    if low >= corners[1]:
        return Piece(low, high, target.high, 0.0, feature)
    return Piece(low, high, lattice.middle, lattice.spacing, feature)


def _deciding(pieces: list[Piece], hand_overs: list[float]) -> list[Piece]:
    """The parts of the pieces around their ends, the middle, and the places where one head takes over from another."""
    finite = [end for piece in pieces for end in (piece.low, piece.high) if np.isfinite(end)]
    places = np.unique([0.0, min(finite), max(finite), *finite[:4], *finite[-4:], *hand_overs[:4], *hand_overs[-4:]])
    parts = []
    for place in places:
        for piece in pieces:
            low, high = max(piece.low, place - 2), min(piece.high, place + 2)
            if low < high:
                parts.append(replace(piece, low=low, high=high))
    return parts
