"""Scalar heads where every logit is a dot product of its own with the features: no number t is computed at all.

t is then the target's own, exact, and each logit a_k t + g_k + c with an error, anchor by anchor, that is handed to the
proof of the softmax's rounding; any c is the same to a softmax.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from anchorhead.heads.atom import Part
from anchorhead.lemmas import scalar_head
from anchorhead.lemmas.scalar_head import Reads
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, distance
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.readings import Refusal
from anchorhead.proof.arithmetic.silence import out_of_reach
from anchorhead.proof.heads.head_rounding import head_rounding
from anchorhead.proof.heads.neurons import Layer


def read(
    neurons: Layer, logits: Forms, sources: Sources
) -> tuple[Forms, Int[np.ndarray, "neurons parts anchors"], list[list[np.ndarray]]]:
    """For logits (groups, size): the queries, which feature each anchor is, and for each shape, part and anchor how far
    off logits may be."""
    size = logits.constant.shape[1]
    query = _exact_queries(neurons, logits)
    errors = [[np.zeros(len(part)) for part in shape.parts] for shape in neurons.shapes]
    place = np.full((neurons.neurons, neurons.parts, size), -1)
    split = Forms(*(a.reshape(neurons.neurons, neurons.parts, size, *a.shape[2:]) for a in logits.arrays))
    for number, shape in enumerate(neurons.shapes):
        own = np.flatnonzero(neurons.which == number)
        for number_of_part, part in enumerate(shape.parts):
            wrong = _logit_errors(split, own, number_of_part, part, query, sources)
            errors[number][number_of_part] = wrong.max(axis=0, initial=0.0)
            _require_silence(split, own, number_of_part, part, sources)
            place[own, number_of_part, : len(part)] = np.arange(len(part))
    return query, place, errors


def bound(
    neurons: Layer, query: Forms, errors: list[list[np.ndarray]], sources: Sources, arithmetic: Arithmetic
) -> tuple[Reads, Sources]:
    """What the neurons' heads give, with such errors of their logits. As far off as shapes say they may be computed
    otherwise (proof.heads.direct): then these errors come on top of that."""
    rounding = [
        shape.rounding + shape.out_scale * head_rounding(shape.parts, 0.0, np.zeros(1), *shape.queries, arithmetic, own)
        for shape, own in zip(neurons.shapes, errors, strict=True)
    ]
    return scalar_head.bound(neurons, query, sources, rounding=rounding)


def _exact_queries(neurons: Layer, logits: Forms) -> Forms:
    """t as the target has it, t = (z / 2^k - in_shift) / in_scale: what the logits are measured against."""
    weight, bias = neurons.affine.weight, neurons.affine.bias
    tokens = logits.coefficients.reshape(neurons.neurons, neurons.parts, *logits.coefficients.shape[1:])
    steep = np.array([int(np.abs(neurons.shapes[k].parts[0].slopes).argmax()) for k in neurons.which])
    slope = np.array([float(neurons.shapes[k].parts[0].slopes[i]) for k, i in zip(neurons.which, steep, strict=True)])
    rows = tokens[np.arange(neurons.neurons), 0, steep]
    slope = np.where(slope == 0, 1.0, slope)
    unit = np.ldexp(1.0, scalar_head.exponents(neurons, rows / slope[:, None], np.zeros(neurons.neurons)))
    in_scale, in_shift = neurons.of_shapes("in_scale", "in_shift")
    nothing = np.zeros((1, neurons.neurons))
    return Forms(
        (weight / (unit * in_scale)[:, None])[None], ((bias / unit - in_shift) / in_scale)[None], nothing, nothing
    )


def _logit_errors(
    logits: Forms, own: np.ndarray, number: int, part: Part, query: Forms, sources: Sources
) -> Float[np.ndarray, "neurons anchors"]:
    """|computed logit - (a_k t + g_k + c)| for the neurons `own`, over all inputs; any c is the same to a softmax."""
    coefficients, constant, approximation, rounded = (a[own, number, : len(part)] for a in logits.arrays)
    slopes, offsets = part.slopes.astype(np.float64), part.offsets.astype(np.float64)
    t, c = query.coefficients[0, own], query.constant[0, own]
    difference = coefficients - slopes[:, None] * t[:, None, :]
    off = constant - slopes * c[:, None] - offsets
    common = np.median(off, axis=1, keepdims=True)
    off = off - common
    size = np.abs(slopes) * (np.abs(t) @ sources.size + np.abs(c))[:, None] + np.abs(offsets) + np.abs(common)
    return (distance(difference, off, size, sources, 16.0) + approximation + rounded) * UP


def _require_silence(logits: Forms, own: np.ndarray, number: int, part: Part, sources: Sources) -> None:
    """Features of a group beyond the part's anchors must be out of reach of the largest of these, always."""
    rest, anchors = (
        Forms(*(a[own, number, some] for a in logits.arrays)) for some in (slice(len(part), None), slice(len(part)))
    )
    if not rest.constant.size:
        return
    (least, _), (_, most) = anchors.ends(sources), rest.ends(sources)
    if not out_of_reach(most, least.max(axis=1, keepdims=True)).all():
        raise Refusal("a feature that is no anchor is within reach")
