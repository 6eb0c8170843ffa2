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
`ways` says which and how much.

Other heads have series where their queries are known to stay within an interval (proof.heads.smooth, pieces). These
follow the head to within what it rounds by, and SHARE of its own error; where heads turn, they may be further off, if
the head is closer to its function there than elsewhere by as much (`_turns_within`). `smoothed` gives layers that say
so: shapes on the narrow intervals that neurons need, whose rounding is what their series err by, where that is more. A
bound that is proven for such layers is one for this evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from anchorhead.domain import Box
from anchorhead.heads.atom import Part
from anchorhead.language.targets.scalar import ScalarTarget
from anchorhead.network.direct import DirectModule, Series, TwoKeys, saturated
from anchorhead.network.direct.bent import BentHead
from anchorhead.network.direct.heads import SeriesHead, SoftmaxHead
from anchorhead.network.direct.steps import Neurons
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.head import prove_exact
from anchorhead.proof.heads.neurons import Layer
from anchorhead.proof.heads.pieces import pieces
from anchorhead.proof.heads.smooth import magnitude, smooth
from anchorhead.proof.heads.two_keys import two_keys
from anchorhead.proof.heads.ways import Anchors, Ways, named

SHARE = 0.005
"""Of what a head errs by: so much more it may as a series."""
WIDER = 0.02
"""Of the interval that neurons need: so much more of it series are for."""
ROOM = 0.9
"""Of what is allowed: what series may err by, for all else."""
MANY, FEW = 32, 24
"""Neurons that share a head, and keys that it has, at least and at most, for a series to be looked for."""


def evaluated_directly(
    ways: Ways, layers: Sequence[Layer], known: Mapping[Anchors, Series] | None = None
) -> DirectModule | None:
    """The direct evaluation, where a bound that is proven for layers of neurons covers it.

    known   series of smooth heads, which the layers allow for (`smoothed`)"""
    smooths, shapes = known or {}, _used(layers)
    sigmoids, softmaxes = _sigmoids(shapes, ways), set[Anchors]()

    def find(slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, dtype: str) -> Series | TwoKeys | None:
        name = named((slopes, offsets, values))
        if name in softmaxes:
            return None
        return smooths.get(name) or saturated(slopes, offsets, values, dtype) or sigmoids.get(name)

    softmaxes |= _not_granted(shapes, find, ways)
    module = ways.planned.module(torch.device("cpu"), find)
    groups = [group for step in module.steps if isinstance(step, Neurons) for group in step.groups]
    if not ways.sums.softmaxes and not all(isinstance(group.head, SeriesHead | BentHead) for group in groups):
        return None
    used = {group.head.found for group in groups if not isinstance(group.head, SoftmaxHead)}
    return module if used <= {find(*way.keys, ways.dtype) for shape in shapes for way in ways.through(shape)} else None


def _used(layers: Sequence[Layer]) -> list[ActivationHead]:
    """Every shape that some neuron has, once."""
    return list({id(layer.shapes[k]): layer.shapes[k] for layer in layers for k in np.unique(layer.which)}.values())


def _not_granted(
    shapes: Iterable[ActivationHead], find: Callable[..., Series | TwoKeys | None], ways: Ways
) -> set[Anchors]:
    """Heads that run as softmaxes: their series err by more than their bound grants, or some of their parts have none;
    and so for all shapes that share a part with one of these."""
    refused: set[Anchors] = set()
    before = -1
    while len(refused) > before:
        before = len(refused)
        for shape in shapes:
            through = ways.through(shape)
            series = [None if way.name in refused else find(*way.keys, ways.dtype) for way in through]
            found = [one for one in series if isinstance(one, Series)]
            if len(found) not in (0, len(series)) or not granted(shape, found, ways):
                refused |= {way.name for way in through}
    return refused


def _sigmoids(shapes: Iterable[ActivationHead], ways: Ways) -> dict[Anchors, TwoKeys]:
    """Those of heads of two keys that err by no more than every bound grants them for rounding."""
    found: dict[Anchors, TwoKeys] = {}
    wrong: set[Anchors] = set()
    for shape in shapes:
        through, reach = ways.through(shape), max(map(abs, shape.queries))
        pairs = [two_keys(way.keys, reach, ways.dtype) for way in through]
        errors = [np.inf if one is None else one[1] / way.factor for one, way in zip(pairs, through, strict=True)]
        if sum(errors) * shape.out_scale * (1 + ways.sums.heads) <= shape.rounding * (1 - 1e-9):
            found |= {way.name: one[0] for way, one in zip(through, pairs, strict=True) if one is not None}
        else:
            wrong |= {way.name for way in through}
    return {name: one for name, one in found.items() if name not in wrong}


def smoothed(ways: Ways, layers: Sequence[Layer], on: Box) -> tuple[list[Layer], dict[Anchors, Series]] | None:
    """The layers with shapes that allow for series of smooth heads, and these, for inputs of a box of the network's
    shape; None where there are none."""
    sources = Sources.in_box(on)
    narrow: list[Layer] = []
    for layer in layers:
        low, high, _ = layer.exact(sources)
        narrow.append(replace(layer, shapes=tuple(_narrowed(layer, k, low, high) for k in range(len(layer.shapes)))))
        sources = layer.after(sources)
    asked: dict[Anchors, list[tuple[int, float, float, float]]] = {}
    for layer in narrow:
        for shape, neurons in zip(layer.shapes, np.bincount(layer.which, minlength=len(layer.shapes)), strict=True):
            for way in ways.through(shape) if neurons else ():
                most = allowed(shape) * way.factor
                asked.setdefault(way.name, []).append((int(neurons), *shape.queries, most))
    found: dict[Anchors, Series] = {}
    sigmoids = _sigmoids(_used(layers), ways)
    for anchors, rows in asked.items():
        slopes, offsets, values = map(np.array, anchors)
        neurons, lows, highs, most = zip(*rows, strict=True)
        known = anchors in sigmoids or saturated(slopes, offsets, values, ways.dtype) is not None
        if sum(neurons) >= MANY and len(slopes) <= FEW and not known:
            asks = (slopes, offsets, values), min(lows), max(highs), min(most), ways.dtype
            series = smooth(*asks) or pieces(*asks)
            found |= {} if series is None else {anchors: series}
    for shape in _used(narrow):
        names = [way.name for way in ways.through(shape)]
        if not _turns_within(shape, [found[name] for name in names if name in found], ways):
            found = {name: one for name, one in found.items() if name not in names}
    allowing = {shape: _allowing(shape, found, ways) for shape in _used(narrow)}
    if not found:
        return None
    return [replace(layer, shapes=tuple(allowing.get(one, one) for one in layer.shapes)) for layer in narrow], found


def _turns_within(shape: ActivationHead, series: Sequence[Series], ways: Ways) -> bool:
    """Whether heads are so close to their function where series turn that these may err by more there."""
    turns = [turn for one in series for turn in one.turns]
    if not turns:
        return True
    if shape.in_scale != 1 or len(series) != len(shape.parts):
        return False
    worst = [replace(one, error=max([one.error, *(error for _, _, error in one.turns)])) for one in series]
    most = _needed(shape, worst, ways) * (1 + 1e-6)
    parts = [Part(part.slopes, part.offsets, part.values * shape.out_scale) for part in shape.parts]
    for start, end, _ in turns:
        low, high = max(start + shape.in_shift, shape.low), min(end + shape.in_shift, shape.high)
        if low >= high:
            continue
        target = ScalarTarget((shape.activation,), low, high)
        room = shape.exact + shape.rounding - most
        if room <= 0 or prove_exact(parts, shape.in_shift, np.array([shape.out_shift]), target, room / 2).bound > room:
            return False
    return True


def _narrowed(layer: Layer, number: int, low: np.ndarray, high: np.ndarray) -> ActivationHead:
    """A shape on no more than its neurons need, with room; one that scales is on what it is proven for."""
    shape, own = layer.shapes[number], layer.which == number
    if shape.degree is not None or not own.any():
        return shape
    ends = float((low - layer.room)[own].min()), float((high + layer.room)[own].max())
    more = WIDER * (ends[1] - ends[0])
    return replace(shape, low=max(shape.low, ends[0] - more), high=min(shape.high, ends[1] + more))


def allowed(shape: ActivationHead) -> float:
    """What the series of each of its parts may err by, with room for longer sums."""
    return ROOM * (shape.rounding + SHARE * shape.exact) / (shape.out_scale * len(shape.parts))


def _allowing(shape: ActivationHead, found: Mapping[Anchors, Series], ways: Ways) -> ActivationHead:
    """The shape with the rounding of its series, where that is larger."""
    series = [found.get(way.name) for way in ways.through(shape)]
    if None in series:
        return shape
    needed = _needed(shape, [one for one in series if one is not None], ways)
    return replace(shape, rounding=max(shape.rounding, needed * (1 + 1e-6)))


def granted(shape: ActivationHead, series: Sequence[Series], ways: Ways) -> bool:
    """Whether a shape's series err by no more than its bound grants its heads for rounding."""
    covered = all(one.fitted or one.covers(*shape.queries) for one in series)
    return covered and _needed(shape, series, ways) <= shape.rounding * (1 - 1e-9)


def _needed(shape: ActivationHead, series: Sequence[Series], ways: Ways) -> float:
    """What a shape's series err by, and sums of them by more than those of what heads read."""
    if not series:
        return 0.0
    total, (low, high) = 0.0, shape.queries
    for one, way in zip(series, ways.through(shape), strict=True):
        size = magnitude(one, low, high, ways.dtype) if one.fitted else one.magnitude(low, high)
        total += one.error / way.factor + ways.sums.beyond(size / way.factor, way.reach)
    return total * shape.out_scale
