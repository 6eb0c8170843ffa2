"""From truncated linear functions to a network with its certificate: the face of the two head theorems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anchorhead.conditions import Excluded
from anchorhead.constructions.theorems import multi_head, single_head
from anchorhead.decimals import beyond_float64, counted
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, checked_number, numbers, shown
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.lemmas.functions import prove_functions
from anchorhead.lemmas.one_number import OneNumber
from anchorhead.lemmas.output import OutputBound
from anchorhead.network import Attention, Network, Outside
from anchorhead.network.derivation import Derivation, Entry
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, progress_line
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
NARROWEST, WIDEST = 1e-100, 1e100
"""How far the ends of the range may be apart: beta goes with the inverse square."""
SOFTEST, SHARPEST = 2.0**-20, 2.0**20
"""c = beta spacing^2 below which a head is flat, and above which it is a step."""


def truncated_linear(
    w: Any,
    t: Any,
    low: float,
    high: float,
    *,
    anchors: int | None = None,
    heads: int | None = None,
    on: Any = (-10, 10),
    sharpness: float | None = None,
    outputs: Any = None,
    dtype: Any = None,
    outside: Outside = "warn",
    progress: Progress | bool | None = True,
) -> Network:
    """An attention layer whose token i computes min(max(w_i . x_i + t_i, low), high), with its certificate.

    w (tokens, inputs), t (tokens,): the linear functions, one for each token
    anchors    the single-head theorem with so many anchors; by default as many as tokens
    heads      the multi-head theorem with so many heads instead: the tokens' positions are the anchors
    on         the box of inputs that the certificate covers
    sharpness  the paper's beta; by default the one with the smallest proven bound
    outputs    the paper's map G: the output feature of each anchor (of each of the (tokens - 2) heads cells), as a list
               or as a function of the anchor's number; by default one output
    dtype      float32 or float64; by default that of w
    outside    what a call does with inputs outside the box: "warn", "raise", "clip" or "ignore"
    progress   a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   a Network from (..., tokens, inputs) to (..., tokens, outputs), with its certificate

        >>> net = ah.truncated_linear([[1.0, 2.0], [0.5, -1.0]], [0.0, 0.3], low=-1, high=1, anchors=64)
        >>> y = net([[0.1, 0.2], [0.4, 0.1]])  # 0.5 and 0.4, nearly
        >>> bool(abs(y[0, 0] - 0.5) <= net.certificate.bound < 0.01)
        True
    """
    w, t, kind = _linear_functions(w, t, dtype)
    low, high = _range(low, high)
    box = Box.of(on)
    box.broadcast_to(w.shape)
    count = _count(w.shape[0], anchors, heads)
    features = _output_features(outputs, count)
    theorem = single_head if heads is None else multi_head
    target = TruncatedLinear(w, t, low, high, *theorem.switches(low, high, features))
    middle, margin = low + (high - low) / 2, MARGIN if len(target.switches) else 0.0
    scale = Lattice(middle, theorem.spacing(low, high, count), margin)
    _check_resolution(scale, kind)

    def build(c: float) -> Network:
        return theorem.network(target, scale, features, c, kind)

    require_model(kind)
    with progress_line(progress, "looking for the best sharpness"), beyond_float64():
        c = _given_sharpness(sharpness, scale, kind) if sharpness is not None else _best(build, target, box, scale)
        network = build(c)
        bound = prove_functions(network, claim_of(target, scale, kind), box)
        found = _statement(bound, target, scale, c, Term("theorem", (high - low) / count, theorem.NAME))
        if not np.isfinite(found.total):
            raise AnchorheadError(
                f"no finite bound can be proven in {kind} for {count:,} anchors on {box}: use fewer anchors, a smaller "
                f"box or smaller w{', or float64' if kind == 'float32' else ''}"
            )
        heads_of_layer = network.layers[1].heads if isinstance(network.layers[1], Attention) else 1
        what = f"clip(s, {low:g}, {high:g}) at s = w·x + t, even anchors"
        entry = Entry(1, "scalar head", what, heads_of_layer, count if heads is None else w.shape[0], None, found.total)
        known = Derivation("truncated linear", entries=(entry,))
        return network.with_(
            program=program_of(target, box),
            derivation=known,
            certificate=found.certificate(box, kind),
            outside=outside,
        )


def claim_of(target: TruncatedLinear, scale: Lattice, dtype: str, sample: bool = False) -> OneNumber:
    """Range(w_i . x_i + t_i), in the output that its range says; sample: with an estimate for a proof."""
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
    return OneNumber(w, t, lowest, highest, prove, scale.spacing, scale.middle)


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


def _linear_functions(w: Any, t: Any, dtype: Any) -> tuple[np.ndarray, np.ndarray, str]:
    kind = dtype_name(dtype, w)
    arrays = []
    for name, given, dims in (("w", w, 2), ("t", t, 1)):
        array = numbers(given)
        if array is None:
            raise AnchorheadError(f"{name} is {shown(given)}: give an array of real numbers")
        if array.ndim != dims:
            needed = "(tokens, inputs)" if dims == 2 else "(tokens,)"
            raise AnchorheadError(f"{name} has shape {array.shape}: needed is {needed}")
        if not np.isfinite(array).all():
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise AnchorheadError(f"{name} has the entry {array[place]} at {place}: all must be finite")
        arrays.append(array)
    w, t = arrays
    if len(w) != len(t) or not w.size:
        raise AnchorheadError(f"w has shape {w.shape} and t {t.shape}: needed are (tokens, inputs) and (tokens,)")
    return w, t, kind


def _range(low: Any, high: Any) -> tuple[float, float]:
    low, high = (checked_number(name, end, "a finite number") for name, end in (("low", low), ("high", high)))
    if not low < high:
        raise AnchorheadError(f"low={low} and high={high}: low must be below high")
    if not NARROWEST <= high - low <= WIDEST:
        raise AnchorheadError(
            f"low={low} and high={high} are {high - low:.3g} apart: from {NARROWEST:g} to {WIDEST:g} is "
            "allowed; scale w, t, low and high"
        )
    return low, high


def _count(tokens: int, anchors: Any, heads: Any) -> int:
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


def _output_features(outputs: Any, count: int) -> np.ndarray:
    if outputs is None:
        return np.zeros(count, int)
    try:
        features = np.array([outputs(k) for k in range(count)] if callable(outputs) else outputs)
    except (TypeError, ValueError) as error:
        raise AnchorheadError(
            f"outputs={outputs!r}: a list of output features, one an anchor, or a function"
        ) from error
    if features.shape != (count,) or features.dtype.kind not in "iu" or features.min() < 0:
        raise AnchorheadError(
            f"outputs of shape {features.shape} and dtype {features.dtype}: needed is a whole number of 0 or more for "
            f"each of the {count} anchors"
        )
    if features.max() >= count:
        raise AnchorheadError(f"outputs names feature {features.max()}: {count} anchors reach at most {count} features")
    return features.astype(int)


def _check_resolution(scale: Lattice, kind: str) -> None:
    resolution = np.finfo(kind).eps * max(abs(scale.middle), scale.spacing)
    if not scale.spacing > 4 * resolution:
        raise AnchorheadError(
            f"anchors {scale.spacing:.3g} apart around {scale.middle:g} are closer than {kind} can tell apart: use "
            "fewer anchors, a wider range or float64"
        )
