"""Neurons as softmaxes over features: a linear map to logits, a softmax in groups, a linear map of the weights.

Neuron r, part p is group number r parts + p. Its logits are a_k t + g_k; the map that follows gives its weights the
values C v_k for each output, C being what that output takes of the neuron. With

    S >= sum_k w_k |v_k|,      |V_k - C v_k| <= rho |C v_k|      for the stored values V_k,

an output errs by |C| (|r - phi| + rounding of the softmax + rho S), and its sum of n terms by gamma_n sum |C| S.

Where all logits of a group share one computed t, all is as in an attention head. Where each logit is a dot product of
its own with the whole sequence, what they do not share is handed to the proof of the rounding, anchor by anchor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from anchorhead.heads.atom import Part
from anchorhead.network import Linear, Softmax
from anchorhead.proof.affine_forms import Forms, Sources, after_linear
from anchorhead.proof.analytic import range_bound
from anchorhead.proof.arithmetic import FLOAT64, Arithmetic
from anchorhead.proof.attended import Keys, underflows, unreadable
from anchorhead.proof.head_rounding import head_rounding
from anchorhead.proof.neurons import Layer, Reads, read
from anchorhead.proof.shape import Shape
from anchorhead.proof.silence import one_winner, out_of_reach

STEEP = 100.0
"""Slopes that many times those before them are set apart."""
MANY = 40
"""Of more anchors than these the largest value will do: such values differ little, and sharper bounds take long."""


def after_softmaxes(
    neurons: Layer,
    before: Linear,
    softmax: Softmax,
    after: Linear,
    inputs: Forms,
    registers: Forms,
    sources: Sources,
    arithmetic: Arithmetic,
) -> tuple[Forms, Sources, bool]:
    """The forms of the outputs over the neurons' exact values, these, and whether all queries are inside."""
    if len(set(softmax.groups)) != 1 or before.across != after.across:
        raise unreadable("groups of a softmax differ in size, or only one of the maps around it mixes tokens")
    size = softmax.groups[0]
    if before.across:
        return _across(neurons, before, size, after, inputs, registers, sources, arithmetic)
    nothing = [[np.zeros(len(part)) for part in shape.parts] for shape in neurons.shapes]
    sums = [weight_sums(shape, arithmetic, own) for shape, own in zip(neurons.shapes, nothing, strict=True)]
    weight = after.on_features().astype(np.float64).reshape(after.outputs, -1, size)
    bias = np.zeros(after.outputs) if after.bias is None else after.bias.astype(np.float64)
    results, inside, exact = [], True, sources
    for i in range(len(inputs.constant)):
        reads, place, exact, chosen = _within(neurons, before, size, inputs.token(i), sources, arithmetic)
        groups = place.shape[0] * place.shape[1]
        constants = [bias] if chosen is None else [bias, weight[:, groups, chosen]]
        taken = _taken(neurons, weight[:, :groups].reshape(after.outputs, *place.shape[:2], size), place, sums)
        results.append(taken.outputs(reads, exact, constants, arithmetic))
        inside &= bool(reads.inside.all())
    return Forms.joined(results), exact, inside


def weight_sums(shape: Shape, arithmetic: Arithmetic, errors: list[np.ndarray]) -> list[float]:
    """For each part a bound on sum_k w_k |v_k| as computed, with logits that err by `errors` beyond their rounding.

    Anchors much steeper than the others are set apart: whatever weight they take, the sum is at most the larger of
    their values and the sum over the others alone, whose logits err little.
    """
    return [
        _weight_sum(part, wrong, shape.queries, arithmetic) for part, wrong in zip(shape.parts, errors, strict=True)
    ]


def _weight_sum(part: Part, wrong: np.ndarray, queries: tuple[float, float], arithmetic: Arithmetic) -> float:
    slopes, offsets, values = part.astype(np.float64)
    size, reach = np.abs(values[:, 0]), max(map(abs, queries))
    if len(part) > MANY:
        return float(size.max()) * (1 + float(arithmetic.gamma(2 * len(part) + 2))) * (1 + 1e-9)
    order = np.argsort(np.abs(slopes))
    steps = np.abs(slopes[order][1:]) / np.maximum(np.abs(slopes[order][:-1]), 1e-3 / reach)
    few = len(slopes) if not len(steps) or steps.max() < STEEP else int(steps.argmax()) + 1
    gentle, steep = order[:few], order[few:]
    rest = Part.of(slopes[gentle], offsets[gentle], size[gentle], "float64")
    _, most = range_bound([rest], 0.0, np.zeros(1), *queries, rtol=0.02)
    logits = np.abs(slopes[gentle]) * reach + np.abs(offsets[gentle])
    log_error = (wrong[gentle] + 5 * arithmetic.unit * logits.max()).max() + 2 * arithmetic.exp_error
    bound = max(float(most[0]) * float(np.exp(2 * log_error)), float(size[steep].max(initial=0.0)))
    return min(bound, float(size.max())) * (1 + float(arithmetic.gamma(2 * len(part) + 2))) * (1 + 1e-9)


def _within(
    neurons: Layer, before: Linear, size: int, own: Forms, sources: Sources, arithmetic: Arithmetic
) -> tuple[Reads, Int[np.ndarray, "neurons parts anchors"], Sources, int | None]:
    """The groups of one token: what is read, which of a group's features each anchor is, and the position, if told."""
    if before.weight.ndim != 3 or before.weight.shape[1] != size or before.bias is None:
        raise unreadable("the map before a softmax is not a block a group")
    blocks, _, width = before.weight.shape
    weight, bias = before.weight.astype(np.float64), before.bias.astype(np.float64).reshape(blocks, size)
    constant, varying = own.constant[0].reshape(blocks, width), own.varying[0].reshape(blocks, width)
    groups = neurons.neurons * neurons.parts
    if blocks not in (groups, groups + 1) or varying[:, 1:].any():
        raise unreadable(f"{blocks} groups for {neurons.neurons} neurons of {neurons.parts} parts")
    fixed = weight[:, :, 1:] * constant[:, None, 1:]
    if underflows(fixed, arithmetic):
        raise unreadable("a constant of a logit underflows")
    offsets = _Offsets(
        bias + fixed.sum(axis=2),
        np.abs(bias) + np.abs(fixed).sum(axis=2),
        (bias != 0) + (fixed != 0).sum(axis=2),
    )
    queries = Forms(*(array[0].reshape(blocks, width, *array.shape[2:])[None, :groups, 0] for array in own.arrays))
    slopes = weight[:groups, :, 0]
    reads, place, exact = _grouped(neurons, slopes, offsets.only(slice(groups)), queries, sources, arithmetic)
    if blocks == groups:
        return reads, place, exact, None
    return reads, place, exact, _winner(weight[-1], offsets.only(slice(groups, None)), arithmetic)


@dataclass(frozen=True, eq=False)
class _Offsets:
    """What logits add to slope times t: constants, the sums of their terms' absolute values, and how many these are."""

    values: Float[np.ndarray, "groups size"]
    sizes: Float[np.ndarray, "groups size"]
    terms: Int[np.ndarray, "groups size"]

    def only(self, groups: slice) -> _Offsets:
        return _Offsets(self.values[groups], self.sizes[groups], self.terms[groups])


def _grouped(
    neurons: Layer,
    slopes: Float[np.ndarray, "groups size"],
    offsets: _Offsets,
    queries: Forms,
    sources: Sources,
    arithmetic: Arithmetic,
) -> tuple[Reads, Int[np.ndarray, "neurons parts anchors"], Sources]:
    """Groups whose logits slopes_k t + offsets_k share one computed t: what is read, and where each anchor is."""
    size = slopes.shape[1]
    labels = np.concatenate([slopes, offsets.values, offsets.terms + (slopes != 0), offsets.sizes], axis=1)
    unique, kind = np.unique(labels, axis=0, return_inverse=True)
    rows = [row.reshape(4, size) for row in unique]
    keys = [Keys(a, g, np.zeros((size, 1)), n.astype(int), sizes, arithmetic) for a, g, n, sizes in rows]
    place = _places(neurons, keys, kind.reshape(neurons.neurons, neurons.parts))
    split = [array[0].reshape(neurons.neurons, neurons.parts, *array.shape[2:]) for array in queries.arrays]
    if any((array != array[:, :1]).any() for array in split):
        raise unreadable("the groups of one neuron ask different things")
    reads, exact = read(neurons, Forms(*(array[None, :, 0] for array in split)), sources)
    return reads, place, exact


def _winner(weight: Float[np.ndarray, "size width"], offsets: _Offsets, arithmetic: Arithmetic) -> int:
    """The feature of a group of constants that takes all the weight."""
    winner = one_winner(offsets.values[0], offsets.sizes[0], offsets.terms[0], arithmetic)
    if weight[:, 0].any() or winner is None:
        raise unreadable("the group that tells the position does not tell one")
    return winner


def _places(
    neurons: Layer, keys: list[Keys], kinds: Int[np.ndarray, "neurons parts"]
) -> Int[np.ndarray, "neurons parts anchors"]:
    """The feature within its group that each anchor of each neuron and part is; -1 where it is out of reach."""
    most = max(len(part) for shape in neurons.shapes for part in shape.parts)
    result = np.full((*kinds.shape, most), -1)
    for part in range(neurons.parts):
        for group, number in {(int(k), int(s)) for k, s in zip(kinds[:, part], neurons.assigned, strict=True)}:
            shape = neurons.shapes[number]
            if part >= len(shape.parts):
                continue
            pairs = keys[group].anchors(shape.parts[part], shape.queries)
            if pairs is None:
                raise unreadable("the logits of a group are not those of the shape that it is said to have")
            row = np.full(most, -1)
            row[pairs[1]] = pairs[0]
            result[(kinds[:, part] == group) & (neurons.assigned == number), part] = row
    return result


@dataclass(frozen=True, eq=False)
class _Taken:
    """What each output takes of each neuron, by how much stored values are off it, and the sizes and numbers of terms.

    For neuron r the stored values are V_k = C_r v_k (1 + e_k): `off` adds up |C_r| max |e_k| S, `reach` |C_r| S.
    """

    takes: Float[np.ndarray, "outputs neurons"]
    off: Float[np.ndarray, " outputs"]
    reach: Float[np.ndarray, " outputs"]
    terms: Float[np.ndarray, " outputs"]

    def outputs(self, reads: Reads, exact: Sources, constants: list[np.ndarray], arithmetic: Arithmetic) -> Forms:
        whole = Reads(
            reads.scale, reads.shift, reads.approximation, reads.rounding, np.zeros_like(reads.reach), reads.inside
        )
        mixed = whole.combined(self.takes, exact, arithmetic)
        size = self.reach + sum(np.abs(one) for one in constants)
        summed = arithmetic.gamma(self.terms + len(constants)) * size + self.terms * arithmetic.tiny
        rounding = mixed.rounding[0] + (self.off + summed) * (1 + 1e-9) + 8 * FLOAT64.unit * size
        return Forms(mixed.coefficients, mixed.constant + sum(constants), mixed.approximation, rounding[None])


def _taken(
    neurons: Layer,
    values: Float[np.ndarray, "outputs neurons parts size"],
    place: Int[np.ndarray, "neurons parts anchors"],
    sums: list[list[float]],
) -> _Taken:
    outputs = len(values)
    takes = np.zeros((outputs, neurons.neurons))
    off, reach, terms = (np.zeros(outputs) for _ in range(3))
    for number, shape in enumerate(neurons.shapes):
        own = neurons.assigned == number
        if not own.any():
            continue
        stored = np.take_along_axis(values[:, own], np.maximum(place[own], 0)[None], axis=3)
        if values[:, own, len(shape.parts) :].any():
            raise unreadable("a group that belongs to no part has values")
        largest = max(range(len(shape.parts)), key=lambda p: float(np.abs(shape.parts[p].values).max()))
        best = int(np.abs(shape.parts[largest].values[:, 0]).argmax())
        # where all values are 0, so is what is read, and what is taken of it does not matter
        take = stored[:, :, largest, best] / (float(shape.parts[largest].values[best, 0]) or 1.0)
        takes[:, own] = take
        for number_of_part, part in enumerate(shape.parts):
            v = part.values[:, 0].astype(np.float64)
            here = place[own, number_of_part, : len(part)] >= 0
            V = np.where(here, stored[:, :, number_of_part, : len(part)], take[..., None] * v)
            zero = v == 0
            if V[..., zero].any():
                raise unreadable("an anchor of value 0 has one")
            ratio = V[..., ~zero] / v[~zero]
            total = sums[number][number_of_part]
            wrong = np.abs(ratio - take[..., None]).max(axis=2, initial=0.0) + 4 * FLOAT64.unit * np.abs(take)
            off += wrong.sum(axis=1) * total
            reach += np.abs(ratio).max(axis=2, initial=0.0).sum(axis=1) * total
            terms += (V != 0).sum(axis=(1, 2))
    return _Taken(takes, off, reach, terms)


def _across(
    neurons: Layer,
    before: Linear,
    size: int,
    after: Linear,
    inputs: Forms,
    registers: Forms,
    sources: Sources,
    arithmetic: Arithmetic,
) -> tuple[Forms, Sources, bool]:
    """Tokens are neurons (and their parts), each with the logits of one group."""
    tokens = neurons.neurons * neurons.parts
    if before.weight.ndim != 4 or after.weight.ndim != 4 or registers.constant.size:
        raise unreadable("the maps around a softmax are not dense, or registers stand beside the inputs")
    if before.weight.shape[:2] != (tokens, size):
        raise unreadable(f"{before.weight.shape[0]} tokens for {neurons.neurons} neurons of {neurons.parts} parts")
    flat = before.weight.reshape(tokens, size, -1)
    if ((flat != 0).any(axis=1).sum(axis=1) <= 1).all():
        errors = [[np.zeros(len(part)) for part in shape.parts] for shape in neurons.shapes]
        reads, place, exact = _dealt(neurons, before, flat.astype(np.float64), inputs, sources, arithmetic)
    else:
        reads, place, exact, errors = _mixed(neurons, before, size, inputs, registers, sources, arithmetic)
    sums = [weight_sums(shape, arithmetic, own) for shape, own in zip(neurons.shapes, errors, strict=True)]
    outputs = after.weight.shape[:2]
    values = after.weight.astype(np.float64).reshape(-1, neurons.neurons, neurons.parts, size)
    bias = np.zeros(outputs) if after.bias is None else np.broadcast_to(after.bias, outputs).astype(np.float64)
    y = _taken(neurons, values, place, sums).outputs(reads, exact, [bias.reshape(-1)], arithmetic)
    result = Forms(*(array.reshape(*outputs, *array.shape[2:]) for array in y.arrays))
    return result, exact, bool(reads.inside.all())


def _dealt(
    neurons: Layer,
    before: Linear,
    flat: Float[np.ndarray, "tokens size entries"],
    inputs: Forms,
    sources: Sources,
    arithmetic: Arithmetic,
) -> tuple[Reads, Int[np.ndarray, "neurons parts anchors"], Sources]:
    """Every token gets one feature of the sequence as its query: its logits share what the dtype has computed."""
    tokens, size, _ = flat.shape
    asked = (flat != 0).any(axis=1)
    entry = asked.argmax(axis=1).reshape(neurons.neurons, neurons.parts)
    # logits without slopes ask for nothing: as well for what the neuron's first part does
    entry = np.where(asked.any(axis=1).reshape(entry.shape), entry, entry[:, :1]).reshape(-1)
    queries = Forms(*(array.reshape(1, -1, *array.shape[2:])[:, entry] for array in inputs.arrays))
    slopes = flat[np.arange(tokens), :, entry]
    bias = np.zeros((tokens, size)) if before.bias is None else np.broadcast_to(before.bias, (tokens, size))
    bias = bias.astype(np.float64)
    offsets = _Offsets(bias, np.abs(bias), (bias != 0).astype(int))
    return _grouped(neurons, slopes, offsets, queries, sources, arithmetic)


def _mixed(
    neurons: Layer,
    before: Linear,
    size: int,
    inputs: Forms,
    registers: Forms,
    sources: Sources,
    arithmetic: Arithmetic,
) -> tuple[Reads, Int[np.ndarray, "neurons parts anchors"], Sources, list[list[np.ndarray]]]:
    """Each logit is a dot product of its own with the whole sequence."""
    logits, _ = after_linear(before, inputs, registers, sources, arithmetic)
    query = exact_queries(neurons, logits)
    errors = [[np.zeros(len(part)) for part in shape.parts] for shape in neurons.shapes]
    place = np.full((neurons.neurons, neurons.parts, size), -1)
    split = Forms(*(a.reshape(neurons.neurons, neurons.parts, size, *a.shape[2:]) for a in logits.arrays))
    for number, shape in enumerate(neurons.shapes):
        own = np.flatnonzero(neurons.assigned == number)
        for number_of_part, part in enumerate(shape.parts):
            wrong = _logit_errors(split, own, number_of_part, part, query, sources)
            errors[number][number_of_part] = wrong.max(axis=0, initial=0.0)
            _require_silence(split, own, number_of_part, part, sources)
            place[own, number_of_part, : len(part)] = np.arange(len(part))
    rounding = [
        shape.out_scale * head_rounding(shape.parts, 0.0, np.zeros(1), *shape.queries, arithmetic, own)
        for shape, own in zip(neurons.shapes, errors, strict=True)
    ]
    reads, exact = read(neurons, query, sources, rounding)
    return reads, place, exact, errors


def exact_queries(neurons: Layer, logits: Forms) -> Forms:
    """t as the target has it, t = (z / 2^k - in_shift) / in_scale: what the logits are measured against."""
    weight, bias = neurons.merged.affine.weight, neurons.merged.affine.bias
    tokens = logits.coefficients.reshape(neurons.neurons, neurons.parts, *logits.coefficients.shape[1:])
    steep = np.array([int(np.abs(neurons.shapes[k].parts[0].slopes).argmax()) for k in neurons.assigned])
    slope = np.array(
        [float(neurons.shapes[k].parts[0].slopes[i]) for k, i in zip(neurons.assigned, steep, strict=True)]
    )
    rows = tokens[np.arange(neurons.neurons), 0, steep]
    in_scale, in_shift = (
        np.array([getattr(shape, name) for shape in neurons.shapes])[neurons.assigned]
        for name in ("in_scale", "in_shift")
    )
    scales = np.array([shape.degree is not None for shape in neurons.shapes])[neurons.assigned]
    ours = np.abs(rows).max(axis=1) / np.where(slope == 0, 1.0, np.abs(slope))
    theirs = np.abs(weight).max(axis=1)
    known = scales & (ours > 0) & (theirs > 0)
    k = np.where(known, np.rint(np.log2(np.where(known, theirs / np.where(ours > 0, ours, 1) / in_scale, 1.0))), 0)
    unit = np.ldexp(1.0, k.astype(int))
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
    error = np.abs(difference @ sources.middle + off) + np.abs(difference) @ sources.radius
    return (error + approximation + rounded + 32 * FLOAT64.unit * size) * (1 + 1e-9)


def _require_silence(logits: Forms, own: np.ndarray, number: int, part: Part, sources: Sources) -> None:
    """Features of a group beyond the part's anchors must be out of reach of the largest of these, always."""
    rest, anchors = (
        Forms(*(a[own, number, some] for a in logits.arrays)) for some in (slice(len(part), None), slice(len(part)))
    )
    if not rest.constant.size:
        return
    (least, _), (_, most) = anchors.ends(sources), rest.ends(sources)
    if not out_of_reach(most, least.max(axis=1, keepdims=True)).all():
        raise unreadable("a feature that is no anchor is within reach")
