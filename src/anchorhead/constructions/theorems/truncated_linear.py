"""From truncated linear functions to a network with its certificate: the two head theorems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from anchorhead.conditions import Excluded
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.theorems import multi_head, single_head
from anchorhead.decimals import counted
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, checked_number, shown
from anchorhead.language.forms import box_of
from anchorhead.language.program import Program
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.lemmas.one_number import OneNumber
from anchorhead.lemmas.output import OutputBound
from anchorhead.lemmas.prove import prove_functions
from anchorhead.network import Network
from anchorhead.network.derivation import Derivation, Entry
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of, require_model
from anchorhead.proof.arithmetic.overflow import has_room
from anchorhead.proof.arithmetic.readings import Refusal
from anchorhead.proof.heads.cells import Readout
from anchorhead.proof.heads.ramp import Lattice, prove_ramp
from anchorhead.proof.heads.whole_head import WholeHead
from anchorhead.proof.statement import Statement
from anchorhead.terms import Term

MARGIN = 0.1
"""Where the output feature changes, nothing is claimed nearer than this part of a spacing."""

MAX_ANCHORS = 1_000_000
SOFTEST, SHARPEST = 2.0**-20, 2.0**20
"""c = beta spacing^2 below which a head is flat, and above which it is a step."""


def truncated(target: TruncatedLinear, program: Program, request: BuildRequest) -> Network:
    """The layer of one of the two theorems, with its certificate: of so many anchors, or of so many heads."""
    kind, heads = request.dtype, request.heads
    low, high, box = target.low, target.high, box_of(program)
    found = written_out(target, request)
    count, theorem, scale, build = found.count, found.theorem, found.scale, found.build
    beta = request.sharpness
    c = _best(build, target, box, scale) if beta is None else _given_sharpness(beta, scale, kind)
    network = build(c)
    bound = prove_functions(network, claim_of(target, scale, kind, step=program.output), box)
    stated = _statement(bound, target, scale, c, Term("theorem", (high - low) / count, theorem.NAME))
    if not np.isfinite(stated.total):
        raise AnchorheadError(
            f"no finite bound can be proven in {kind} for {count:,} anchors on {box}: use fewer anchors, a smaller "
            f"box or smaller w{', or float64' if kind == 'float32' else ''}"
        )
    what = f"clip(s, {low:g}, {high:g}) at s = w·x + t, even anchors"
    anchors = count if heads is None else len(target.w)
    entry = Entry(1, "scalar head", what, int(heads or 1), anchors, None, stated.total, step=(program.output,))
    return network.with_(
        program=program,
        derivation=Derivation("truncated linear", entries=(entry,), claims=bound.claims),
        certificate=stated.certificate(box, kind),
        outside=request.outside,
    )


@dataclass(frozen=True)
class WrittenOut:
    """How many anchors (or cells) share the range, by which theorem, how far apart, and the layer of any sharpness."""

    count: int
    theorem: ModuleType
    scale: Lattice
    build: Callable[[float], Network]


def written_out(target: TruncatedLinear, request: BuildRequest) -> WrittenOut:
    """What the theorem says, all but the sharpness; refused where the dtype cannot tell anchors apart."""
    kind, low, high = request.dtype, target.low, target.high
    count = count_of(len(target.w), request.anchors, request.heads)
    theorem = single_head if request.heads is None else multi_head
    features = _features(target, theorem, count)
    middle, margin = low + (high - low) / 2, MARGIN if len(target.switches) else 0.0
    scale = Lattice(middle, theorem.spacing(low, high, count), margin)
    _check_resolution(scale, kind)
    require_model(kind)
    return WrittenOut(count, theorem, scale, lambda c: theorem.network(target, scale, features, c, kind))


def _features(target: TruncatedLinear, theorem: ModuleType, count: int) -> np.ndarray:
    """The output feature of each anchor, or cell: that of the range in which it lies."""
    cells = (np.arange(count) + (0.0 if theorem is single_head else 0.5)) / (count - (theorem is single_head))
    places = target.low + (target.high - target.low) * cells
    found = target.features[np.searchsorted(target.switches, places)]
    switches, features = theorem.switches(target.low, target.high, found)
    if not (np.array_equal(switches, target.switches) and np.array_equal(features, target.features)):
        raise AnchorheadError(
            f"the output feature changes at {shown(target.switches.tolist())}, which is not between {count:,} even "
            "anchors: give another number of them"
        )
    return found


def claim_of(
    target: TruncatedLinear, scale: Lattice, dtype: str, sample: bool = False, step: int | None = None
) -> OneNumber:
    """Range(w_i . x_i + t_i), in the output that its range says; sample: with an estimate for a proof; step: of the
    program."""
    model = arithmetic_of(dtype)

    def prove(whole: WholeHead, error: float) -> tuple[float, float]:
        if len(whole.bias) > 1 and whole.bias.any():
            raise Refusal("it has several outputs and a bias")
        heads, readout = [head.merged() for head in whole.heads], Readout(float(whole.bias[0]), whole.roundings)
        return prove_ramp(heads, readout, whole.ends, target, scale, error, model, sample)

    several = target.outputs > 1  # outputs that are not spoken to are 0
    low, high = (min(target.low, 0.0), max(target.high, 0.0)) if several else (target.low, target.high)
    lowest, highest = (np.full(target.outputs, end) for end in (low, high))
    w, t = (array.astype(np.float64) for array in (target.w, target.t))
    return OneNumber(w, t, lowest, highest, prove, scale.spacing, scale.middle, step)


def _statement(bound: OutputBound, target: TruncatedLinear, scale: Lattice, c: float, theirs: Term) -> Statement:
    """What is proven, and nothing where the output feature changes."""
    radius = scale.margin * scale.spacing
    left_out = tuple((float(s) - radius, float(s) + radius) for s in target.switches)
    return Statement(
        total=bound.total,
        terms=bound.terms("every real input", "query and softmax"),
        method=f"anchors {scale.spacing:.4g} apart, c = {c:g} (beta = {c / scale.spacing**2:.4g}); second-order "
        "cells between all crossings, rounding bounded anchor by anchor",
        target=str(target),
        conditions=(Excluded(left_out),) if left_out else (),
        reference=(theirs,),
    )


def _best(build: Callable[[float], Network], target: TruncatedLinear, box: Box, scale: Lattice) -> float:
    """The c with the smallest bound, by a search over a ladder that narrows; of 8 bits, so that keys are exact."""

    def bound(c: float) -> float:
        network = build(c)
        if not has_room(network, box.broadcast_to(target.w.shape)):
            return np.inf
        return prove_functions(network, claim_of(target, scale, network.dtype, sample=True), box).total

    ladder = np.geomspace(0.5, 4096.0 if scale.margin else 64.0, 14)
    known = {float(c): bound(float(c)) for c in ladder}
    for _ in range(4):
        tried = sorted(known)
        best = min(tried, key=lambda c: known[c])
        place = tried.index(best)
        for other in tried[max(place - 1, 0) : place] + tried[place + 1 : place + 2]:
            between = float(np.sqrt(best * other))
            known[between] = bound(between)
    return _few_bits(min(known, key=lambda c: known[c]))


def _few_bits(c: float, bits: int = 8) -> float:
    mantissa, exponent = np.frexp(c)
    return float(np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent))


def _given_sharpness(beta: float, scale: Lattice, kind: str) -> float:
    needed = "the paper's beta, a number above 0, or None to have it chosen"
    beta = checked_number("sharpness", beta, needed, above=0.0)
    with np.errstate(over="ignore"):
        c = float(np.dtype(kind).type(beta * scale.spacing**2))
    if not SOFTEST <= c <= SHARPEST:
        raise AnchorheadError(
            f"sharpness={beta!r} is c = {c:.3g} for anchors {scale.spacing:.3g} apart: from "
            f"{SOFTEST / scale.spacing**2:.3g} to {SHARPEST / scale.spacing**2:.3g} is allowed"
        )
    return c


def count_of(tokens: int, anchors: Any, heads: Any) -> int:
    """How many anchors (or cells) share the range: p, or (n - 2) H."""
    if heads is None:
        count = tokens if anchors is None else anchors
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 2 <= count <= MAX_ANCHORS:
            origin = "as many as there are tokens" if anchors is None else "given"
            raise AnchorheadError(f"anchors={shown(count)} ({origin}): a whole number from 2 to {MAX_ANCHORS:,}")
        return int(count)
    if anchors is not None:
        raise AnchorheadError(
            f"anchors={anchors} and heads={heads}: in the multi-head theorem the tokens' positions are the anchors; "
            "give one of the two"
        )
    heads = checked_count("heads", heads)
    if tokens < 3:
        raise AnchorheadError(
            f"{counted(tokens, 'token')}: the multi-head theorem needs at least 3, for two are only ends"
        )
    cells = (tokens - 2) * heads
    if cells > MAX_ANCHORS:
        raise AnchorheadError(
            f"{counted(tokens, 'token')} and {counted(heads, 'head')} make {cells:,} cells: at most {MAX_ANCHORS:,}"
        )
    return cells


def _check_resolution(scale: Lattice, kind: str) -> None:
    resolution = np.finfo(kind).eps * max(abs(scale.middle), scale.spacing)
    if not scale.spacing > 4 * resolution:
        raise AnchorheadError(
            f"anchors {scale.spacing:.3g} apart around {scale.middle:g} are closer than {kind} can tell apart: use "
            "fewer anchors, a wider range or float64"
        )
