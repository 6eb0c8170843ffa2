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
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from anchorhead.domain import Box
from anchorhead.heads.atom import Part
from anchorhead.network import Network
from anchorhead.network.direct import DirectModule, Refused, Saturated, lower, saturated
from anchorhead.network.direct.heads import SeriesHead
from anchorhead.network.direct.keys import Keys
from anchorhead.network.direct.steps import Neurons
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer


def evaluated_directly(network: Network, layers: Sequence[Layer], on: Box) -> DirectModule | None:
    """The direct evaluation, where a bound that is proven for layers of neurons, for inputs of a box, covers it."""
    try:
        module = lower(network.layers, network.output, network.dtype, torch.device("cpu"), on)
    except Refused:
        return None
    neurons = [step for step in module.steps if isinstance(step, Neurons)]
    if all(step.weighed for step in neurons):
        return module
    heads = [group.head for step in neurons for group in step.groups]
    used = {head.found for head in heads if isinstance(head, SeriesHead)}
    terms = 16 + sum(layer.neurons * layer.parts for layer in layers) + max(s.width for s in network.streams)
    grow = float(arithmetic_of(network.dtype).gamma(terms))
    shapes = {id(shape): shape for layer in layers for shape in layer.shapes}.values()
    known: set[Saturated] = set()
    for shape in shapes:
        series = [series_of(part, network.dtype) for part in shape.parts]
        found = [one for one in series if one is not None]
        if len(found) not in (0, len(series)) or not granted(shape, found, grow):
            return None
        known |= set(found)
    return module if used <= known else None


def series_of(part: Part, dtype: str) -> Saturated | None:
    """The series by which the direct evaluation computes a part of a head, if it does."""
    slopes, offsets, values = part.astype(np.float64)
    live = Keys(slopes, offsets, values).live()
    return saturated(*live.column(0), dtype)


def granted(shape: ActivationHead, series: Sequence[Saturated], grow: float) -> bool:
    """Whether a shape's series err by no more than its bound grants its heads for rounding."""
    if not series:
        return True
    low, high = shape.queries
    if not all(one.covers(low, high) for one in series):
        return False
    most = [float(np.abs(part.values.astype(float)).max()) for part in shape.parts]
    reach = [min(one, other) + shape.rounding for one, other in zip(shape.reach, most, strict=True)]
    beyond = sum(max(0.0, one.magnitude(low, high) - r) for one, r in zip(series, reach, strict=True))
    return sum(one.error for one in series) + grow * beyond <= shape.rounding * (1 - 1e-9)
