"""Which evaluations of a converted network its bound covers: "plain" always, "direct" where that errs by no more.

The direct evaluation (network.direct) computes the same affine maps from the same products. Heads of few keys are the
same softmax, in another order, and keys that never weigh anything are left out: the bound's own model of arithmetic.
Heads with a series (network.direct.saturated) err by at most `error` from the softmax mean in exact arithmetic, for
queries that the series covers. They are covered if, for every shape of the network,

    sum over parts of error + gamma (magnitude - reach)^+  <=  the rounding that the bound grants the shape's heads,

where gamma is that of the longest sum of reads, and `reach` is what the bound takes for the size of a read: the series
hands on q, with its scale in the weights and its shift in the bias of the sum of reads behind it, and |scale q| +
|shift| may be larger. A bias that is a sum of shifts is rounded once; the bound grants it a rounding, for a product
that it does not have. Where no such sum is behind heads, reads are handed on as they are: two more roundings, which
`error` allows for. Where parts are groups of a Softmax, other keys run than theirs, and sums are granted otherwise:
`evaluated_keys` says which and how much.

Heads that compute a function have other series where their queries are known to stay within an interval
(proof.heads.followed): these follow the function itself, and not the heads. They are covered where they err by no more
than the bound grants the heads in all, against that function and for rounding. A neuron of several heads is computed by
the series of the first; the others are 0. Which intervals neurons need is seen by a walk with shapes on no more than
these (`narrowed`): a bound that is proven for such layers is one for this evaluation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from anchorhead.domain import Box
from anchorhead.network.direct import DirectModule, Series, TwoKeys, saturated
from anchorhead.network.direct.heads import SeriesHead, SoftmaxHead
from anchorhead.network.direct.steps import Neurons
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.evaluated_keys import Anchors, DirectHeads, named
from anchorhead.proof.heads.followed import followed, nothing
from anchorhead.proof.heads.neurons import Layer
from anchorhead.proof.heads.quotients import magnitude
from anchorhead.proof.heads.two_keys import two_keys

WIDER = 0.02
"""Of the interval that neurons need: so much more of it series are for."""
ROOM = 0.9
"""Of what is allowed: what series may err by, for all else."""
WORTH = 8
"""Coefficients that take as long as the exponential of one key, and as a sigmoid."""
MANY = 32
"""Neurons that share a head, at least, for a series to be looked for."""


def evaluated_directly(
    heads: DirectHeads, layers: Sequence[Layer], known: Mapping[Anchors, Series] | None = None
) -> DirectModule | None:
    """The direct evaluation, where a bound that is proven for layers of neurons covers it.

    known   series that follow functions (`following`)"""
    known, shapes = known or {}, _used(layers)
    sigmoids, softmaxes = _sigmoids(shapes, heads), set[Anchors]()

    def find(slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, dtype: str) -> Series | TwoKeys | None:
        name = named((slopes, offsets, values))
        if name in softmaxes:
            return None
        return known.get(name) or saturated(slopes, offsets, values, dtype) or sigmoids.get(name)

    softmaxes |= _not_granted(shapes, find, heads)
    module = heads.planned.module(torch.device("cpu"), find)
    groups = [group for step in module.steps if isinstance(step, Neurons) for group in step.groups]
    if not heads.sums.softmaxes and not all(isinstance(group.head, SeriesHead) for group in groups):
        return None
    used = {group.head.found for group in groups if not isinstance(group.head, SoftmaxHead)}
    return (
        module if used <= {find(*part.keys, heads.dtype) for shape in shapes for part in heads.through(shape)} else None
    )


def _used(layers: Sequence[Layer]) -> list[ActivationHead]:
    """Every shape that some neuron has, once."""
    return list({id(layer.shapes[k]): layer.shapes[k] for layer in layers for k in np.unique(layer.which)}.values())


def _not_granted(
    shapes: Iterable[ActivationHead], find: Callable[..., Series | TwoKeys | None], heads: DirectHeads
) -> set[Anchors]:
    """Heads that run as softmaxes: their series err by more than their bound grants, or some of their parts have none;
    and so for all shapes that share a part with one of these."""
    refused: set[Anchors] = set()
    before = -1
    while len(refused) > before:
        before = len(refused)
        for shape in shapes:
            through = heads.through(shape)
            series = [None if part.name in refused else find(*part.keys, heads.dtype) for part in through]
            found = [one for one in series if isinstance(one, Series)]
            if len(found) not in (0, len(series)) or not granted(shape, found, heads):
                refused |= {part.name for part in through}
    return refused


def _sigmoids(shapes: Iterable[ActivationHead], heads: DirectHeads) -> dict[Anchors, TwoKeys]:
    """Those of heads of two keys that err by no more than every bound grants them for rounding."""
    found: dict[Anchors, TwoKeys] = {}
    wrong: set[Anchors] = set()
    for shape in shapes:
        through, reach = heads.through(shape), max(map(abs, shape.queries))
        pairs = [two_keys(part.keys, reach, heads.dtype) for part in through]
        errors = [np.inf if one is None else one[1] / part.factor for one, part in zip(pairs, through, strict=True)]
        if sum(errors) * shape.out_scale * (1 + heads.sums.heads) <= shape.rounding * (1 - 1e-9):
            found |= {part.name: one[0] for part, one in zip(through, pairs, strict=True) if one is not None}
        else:
            wrong |= {part.name for part in through}
    return {name: one for name, one in found.items() if name not in wrong}


def narrowed(layers: Sequence[Layer], on: Box) -> list[Layer]:
    """The layers with shapes on the intervals that their neurons need, for inputs of a box of the network's shape."""
    sources = Sources.in_box(on)
    narrow: list[Layer] = []
    for layer in layers:
        low, high, _ = layer.exact(sources)
        shapes = tuple(_narrowed(layer, k, low, high) for k in range(len(layer.shapes)))
        narrow.append(layer if shapes == layer.shapes else replace(layer, shapes=shapes))
        sources = layer.after(sources)
    return narrow


def following(heads: DirectHeads, layers: Sequence[Layer]) -> dict[Anchors, Series]:
    """Series of heads that follow the functions of layers on their intervals, for heads that many neurons have, where
    these are worth it."""
    sigmoids = _sigmoids(_used(layers), heads)
    asked: dict[tuple[Anchors, ...], list[tuple[int, ActivationHead]]] = {}
    for layer in layers:
        for shape, neurons in zip(layer.shapes, np.bincount(layer.which, minlength=len(layer.shapes)), strict=True):
            if neurons:
                asked.setdefault(tuple(part.name for part in heads.through(shape)), []).append((int(neurons), shape))
    found: dict[Anchors, Series] = {}
    shared = Counter(name for names in asked for name in names)
    for names, rows in asked.items():
        neurons, shapes = zip(*rows, strict=True)
        one = {tuple(getattr(shape, name) for name in _FUNCTION) for shape in shapes}
        first, *others = heads.through(shapes[0])
        if sum(neurons) < MANY or len(one) > 1 or any(shared[name] > 1 for name in names) or first.times < 0:
            continue
        low, high = min(shape.low for shape in shapes), max(shape.high for shape in shapes)
        hull = replace(shapes[0], low=low, high=high, out_scale=shapes[0].out_scale / first.times)
        most = len(names) if sigmoids.keys() >= set(names) else hull.anchors
        within = min(map(allowed, shapes)) * first.factor
        for shifted in (False, True):
            series = followed(hull, first.keys, within, WORTH * most, heads.dtype, shifted)
            every = [] if series is None else [series, *(nothing(part.keys) for part in others)]
            if every and all(granted(shape, every, heads) for shape in shapes):
                found |= dict(zip(names, every, strict=True))
                break
    return found


_FUNCTION = "activation", "in_scale", "in_shift", "out_scale", "out_shift"


def _narrowed(layer: Layer, number: int, low: np.ndarray, high: np.ndarray) -> ActivationHead:
    """A shape on no more than its neurons need, with room; one that scales is on what it is proven for."""
    shape, own = layer.shapes[number], layer.which == number
    if shape.degree is not None or not own.any():
        return shape
    ends = float((low - layer.room)[own].min()), float((high + layer.room)[own].max())
    more = WIDER * (ends[1] - ends[0])
    return replace(shape, low=max(shape.low, ends[0] - more), high=min(shape.high, ends[1] + more))


def allowed(shape: ActivationHead) -> float:
    """What a series that follows the function may err by, with room for longer sums."""
    return ROOM * shape.error / shape.out_scale


def granted(shape: ActivationHead, series: Sequence[Series], heads: DirectHeads) -> bool:
    """Whether a shape's series err by no more than its bound grants its heads: for rounding, or, where they follow the
    function itself, in all."""
    follows = any(one.fitted for one in series)
    covered = all(one.fitted == follows and (follows or one.covers(*shape.queries)) for one in series)
    most = shape.error if follows else shape.rounding
    return covered and _needed(shape, series, heads) <= most * (1 - 1e-9)


def _needed(shape: ActivationHead, series: Sequence[Series], heads: DirectHeads) -> float:
    """What a shape's series err by, and sums of them by more than those of what heads read."""
    if not series:
        return 0.0
    total, (low, high) = 0.0, shape.queries
    for one, part in zip(series, heads.through(shape), strict=True):
        size = magnitude(one, low, high, heads.dtype) if one.fitted else one.magnitude(low, high)
        total += one.error / part.factor + heads.sums.beyond(size / part.factor, part.reach)
    return total * shape.out_scale
