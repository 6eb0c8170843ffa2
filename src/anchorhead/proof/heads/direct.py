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
`error` allows for. Groups of a Softmax are heads only where that errs by no more than the sum of all their weights is
granted, which the weights tell (network.direct.weighed).

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
from anchorhead.heads.atom import Part
from anchorhead.network import Network
from anchorhead.network.direct import DirectModule, Refused, Series, TwoKeys, lower, saturated
from anchorhead.network.direct.heads import SoftmaxHead
from anchorhead.network.direct.keys import Keys
from anchorhead.network.direct.steps import Neurons
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.heads.activation_head import ActivationHead
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
Anchors = tuple[tuple[float, ...], ...]
"""Slopes, offsets and values."""


def evaluated_directly(
    network: Network, layers: Sequence[Layer], on: Box, known: Mapping[Anchors, Series] | None = None
) -> DirectModule | None:
    """The direct evaluation, where a bound that is proven for layers of neurons, for inputs of a box, covers it.

    known   series that follow functions (`following`)"""
    known, shapes = known or {}, {id(shape): shape for layer in layers for shape in layer.shapes}.values()
    sigmoids, softmaxes = _sigmoids(shapes, network.dtype), set[Anchors]()

    def find(slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, dtype: str) -> Series | TwoKeys | None:
        name = _named((slopes, offsets, values))
        if name in softmaxes:
            return None
        return known.get(name) or saturated(slopes, offsets, values, dtype) or sigmoids.get(name)

    def lowered() -> DirectModule:
        return lower(network.layers, network.output, network.dtype, torch.device("cpu"), on, find)

    try:
        module = lowered()
        if all(step.weighed for step in module.steps if isinstance(step, Neurons)):
            return module
        softmaxes |= _not_granted(shapes, find, _grow(network, layers), network.dtype)
        module = lowered() if softmaxes else module
    except Refused:
        return None
    groups = [group for step in module.steps if isinstance(step, Neurons) for group in step.groups]
    used = {group.head.found for group in groups if not isinstance(group.head, SoftmaxHead)}
    return module if used <= {find(*_keys(part), network.dtype) for shape in shapes for part in shape.parts} else None


def _not_granted(
    shapes: Iterable[ActivationHead], find: Callable[..., Series | TwoKeys | None], grow: float, dtype: str
) -> set[Anchors]:
    """Heads that run as softmaxes: their series err by more than their bound grants, or some of their parts have none;
    and so for all shapes that share a part with one of these."""
    refused: set[Anchors] = set()
    before = -1
    while len(refused) > before:
        before = len(refused)
        for shape in shapes:
            names = [_named(_keys(part)) for part in shape.parts]
            series = [None if name in refused else find(*_keys(part), dtype)
                      for name, part in zip(names, shape.parts, strict=True)]  # fmt: skip
            found = [one for one in series if isinstance(one, Series)]
            if len(found) not in (0, len(series)) or not granted(shape, found, grow, dtype):
                refused |= set(names)
    return refused


def _sigmoids(shapes: Iterable[ActivationHead], dtype: str) -> dict[Anchors, TwoKeys]:
    """Those of heads of two keys that err by no more than every bound grants them for rounding."""
    found: dict[Anchors, TwoKeys] = {}
    wrong: set[Anchors] = set()
    for shape in shapes:
        keys, reach = [_keys(part) for part in shape.parts], max(map(abs, shape.queries))
        pairs = [two_keys(one, reach, dtype) for one in keys]
        error = sum(np.inf if one is None else one[1] for one in pairs) * shape.out_scale
        if error <= shape.rounding * (1 - 1e-9):
            found |= {_named(name): one[0] for name, one in zip(keys, pairs, strict=True) if one is not None}
        else:
            wrong |= {_named(name) for name in keys}
    return {name: one for name, one in found.items() if name not in wrong}


def narrowed(network: Network, layers: Sequence[Layer], on: Box) -> list[Layer]:
    """The layers with shapes on the intervals that their neurons need."""
    sources = Sources.in_box(on.broadcast_to((network.embed.tokens or 1, network.embed.inputs)))
    narrow: list[Layer] = []
    for layer in layers:
        low, high, _ = layer.exact(sources)
        shapes = tuple(_narrowed(layer, k, low, high) for k in range(len(layer.shapes)))
        narrow.append(layer if shapes == layer.shapes else replace(layer, shapes=shapes))
        sources = layer.after(sources)
    return narrow


def following(network: Network, layers: Sequence[Layer]) -> dict[Anchors, Series]:
    """Series of heads that follow the functions of layers on their intervals, for heads that many neurons have, where
    these are worth it."""
    sigmoids = _sigmoids((shape for layer in layers for shape in layer.shapes), network.dtype)
    asked: dict[tuple[Anchors, ...], list[tuple[int, ActivationHead]]] = {}
    for layer in layers:
        for shape, neurons in zip(layer.shapes, np.bincount(layer.which, minlength=len(layer.shapes)), strict=True):
            names = tuple(_named(_keys(part)) for part in shape.parts)
            if neurons:
                asked.setdefault(names, []).append((int(neurons), shape))
    found: dict[Anchors, Series] = {}
    grow = _grow(network, layers)
    shared = Counter(name for names in asked for name in names)
    for names, rows in asked.items():
        neurons, shapes = zip(*rows, strict=True)
        one = {tuple(getattr(shape, name) for name in _FUNCTION) for shape in shapes}
        if sum(neurons) < MANY or len(one) > 1 or any(shared[name] > 1 for name in names):
            continue
        hull = replace(shapes[0], low=min(shape.low for shape in shapes), high=max(shape.high for shape in shapes))
        keys, most = [_keys(part) for part in hull.parts], len(names) if sigmoids.keys() >= set(names) else hull.anchors
        for shifted in (False, True):
            series = followed(hull, keys[0], min(map(allowed, shapes)), WORTH * most, network.dtype, shifted)
            every = [] if series is None else [series, *map(nothing, keys[1:])]
            if every and all(granted(shape, every, grow, network.dtype) for shape in shapes):
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


def _grow(network: Network, layers: Sequence[Layer]) -> float:
    """The relative error of the longest sum of reads."""
    terms = 16 + sum(layer.neurons * layer.parts for layer in layers) + max(s.width for s in network.streams)
    return float(arithmetic_of(network.dtype).gamma(terms))


def _keys(part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Those of a part of a head that the direct evaluation keeps."""
    slopes, offsets, values = part.astype(np.float64)
    return Keys(slopes, offsets, values).live().column(0)


def _named(keys: Sequence[np.ndarray]) -> Anchors:
    return tuple(tuple(np.asarray(one, np.float64).tolist()) for one in keys)


def granted(shape: ActivationHead, series: Sequence[Series], grow: float, dtype: str) -> bool:
    """Whether a shape's series err by no more than its bound grants its heads: for rounding, or, where they follow the
    function itself, in all."""
    follows = any(one.fitted for one in series)
    covered = all(one.fitted == follows and (follows or one.covers(*shape.queries)) for one in series)
    most = shape.error if follows else shape.rounding
    return covered and _needed(shape, series, grow, dtype) <= most * (1 - 1e-9)


def _needed(shape: ActivationHead, series: Sequence[Series], grow: float, dtype: str) -> float:
    """What a shape's series err by, and sums of them by more than those of what heads read."""
    if not series:
        return 0.0
    most = [float(np.abs(part.values.astype(float)).max()) for part in shape.parts]
    reach = [min(one, other) + shape.rounding for one, other in zip(shape.reach, most, strict=True)]
    low, high = shape.queries
    sizes = [magnitude(one, low, high, dtype) if one.fitted else one.magnitude(low, high) for one in series]
    beyond = sum(max(0.0, size - r) for size, r in zip(sizes, reach, strict=True))
    return (sum(one.error for one in series) + grow * beyond) * shape.out_scale
