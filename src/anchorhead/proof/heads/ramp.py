"""The error of a network that computes truncated linear functions with heads on one scalar.

With s = w . x + t and q the query that the dtype computes, Range(s) = T((s - middle) / spacing) for the piecewise
linear T(q) = Range(middle + spacing q), which moves by at most spacing |dq|. So

    |output - Range(s)| <= |dtype - heads|(q) + |heads - T|(q) + spacing |q - (s - middle) / spacing|:

rounding of the head, approximation, and rounding of the query, each bounded on its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from anchorhead.conditions import Excluded
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, UP, Arithmetic, arithmetic_of
from anchorhead.proof.arithmetic.overflow import has_room, require_room
from anchorhead.proof.arithmetic.rounding import affine_error
from anchorhead.proof.heads.scalar import sup_error
from anchorhead.proof.heads.scalar_form import ScalarForm, scalar_form
from anchorhead.proof.heads.scalar_head import Piece
from anchorhead.proof.statement import Statement
from anchorhead.targets.ramp import TruncatedLinear

Theorem = Literal["single-head", "multi-head"]
MARGIN = 0.1
"""Where the output feature changes, nothing is claimed nearer than this part of a spacing."""


@dataclass(frozen=True)
class Lattice:
    """The scale of the query: s = middle + spacing q. Nearer to a switch than `margin` spacings nothing is claimed."""

    middle: float
    spacing: float
    margin: float = 0.0


@dataclass(frozen=True)
class RampBound:
    """The three parts of the bound."""

    approximation: float
    head_rounding: float
    query_rounding: float

    @property
    def total(self) -> float:
        parts = self.approximation + self.head_rounding + self.query_rounding
        return parts * (1 + 4 * FLOAT64.unit)

    def terms(self) -> dict[str, float]:
        return {
            "approximation, in exact arithmetic, for every real input": self.approximation,
            "rounding of the softmax and its sums": self.head_rounding,
            "rounding of w·x + t": self.query_rounding,
        }


def lattice_of(theorem: Theorem, target: TruncatedLinear, anchors: int, heads: int = 1) -> Lattice:
    """Anchors at both ends of the range and evenly between; or cells of equal width that fill the range, anchors - 2
    of them for each head."""
    cells = anchors - 1 if theorem == "single-head" else (anchors - 2) * heads
    if cells < 1:
        raise AnchorheadError(f"{anchors} anchors: the {theorem} theorem needs more")
    middle = target.low + (target.high - target.low) / 2
    return Lattice(middle, (target.high - target.low) / cells, MARGIN if len(target.switches) else 0.0)


def ramp_statement(network: Network, target: TruncatedLinear, on: Box, theorem: Theorem) -> Statement:
    """What is proven of a network of one of the theorems, all of it read from its weights."""
    form = scalar_form(network)
    anchors, heads = len(form.heads[0].slopes), len(form.heads)
    lattice = lattice_of(theorem, target, anchors, heads)
    bound = prove_ramp(network, target, on, lattice)
    c = float(form.heads[0].slopes[1] - form.heads[0].slopes[0]) / 2
    count, formula = (anchors, "p") if theorem == "single-head" else ((anchors - 2) * heads, "((n - 2) H)")
    radius = lattice.margin * lattice.spacing
    left_out = tuple((float(s) - radius, float(s) + radius) for s in target.switches)
    return Statement(
        total=bound.total,
        terms=bound.terms(),
        method=f"anchors {lattice.spacing:.4g} apart, c = {c:g} (beta = {c / lattice.spacing**2:.4g}); second-order "
        "cells between all crossings, rounding bounded anchor by anchor",
        target=str(target),
        conditions=(Excluded(left_out),) if left_out else (),
        reference={
            f"the {theorem} theorem's (b - a)/{formula}, without its softmax term": (target.high - target.low) / count
        },
    )


def prove_ramp(network: Network, target: TruncatedLinear, on: Box, lattice: Lattice, sample: bool = False) -> RampBound:
    """A bound that holds for every input in the box; with `sample`, an estimate from the places where it is decided."""
    arithmetic = arithmetic_of(network.dtype)
    form = scalar_form(network)
    box = on.broadcast_to(target.w.shape)
    if not sample:
        require_room(network, box)
    elif not has_room(network, box):
        return RampBound(np.inf, np.inf, np.inf)
    query_rounding = _query_rounding(form, target, box.magnitude, lattice, arithmetic)
    pieces = _pieces(target, lattice, query_rounding / lattice.spacing)
    if sample:
        pieces = _deciding(pieces, [head.crossings[end] for head in form.heads for end in (0, -1)])
    found = sup_error(form.heads, pieces, form.readout, arithmetic, form.queries(box.low, box.high))
    scale_slack = 16 * FLOAT64.unit * (abs(target.low) + abs(target.high))
    return RampBound(found.exact + scale_slack, found.rounding, query_rounding)


def _query_rounding(
    form: ScalarForm, target: TruncatedLinear, size: np.ndarray, lattice: Lattice, arithmetic: Arithmetic
) -> float:
    """spacing |q - (s - middle) / spacing|, over the box: stored weights, the input's own cast, and the dot product."""
    weight, bias = form.weight * lattice.spacing, form.bias * lattice.spacing
    stored = (np.abs(weight - target.w) * size).sum(axis=1) + np.abs(bias + lattice.middle - target.t)
    reach = (np.abs(weight) * size).sum(axis=1)
    computed = lattice.spacing * affine_error(form.weight[:, None], form.bias[:, None], size, arithmetic)[:, 0]
    cast = arithmetic.unit * reach + arithmetic.tiny * np.abs(weight).sum(axis=1)
    ends = abs(target.low) + abs(target.high)
    own_noise = 8 * FLOAT64.unit * (reach + np.abs(bias) + ends + np.abs(target.t))
    return float((stored + computed * (1 + 1e-6) + cast + own_noise).max() * UP)


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
