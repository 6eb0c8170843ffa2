"""Layers of neurons as queries of their heads: pre-activations brought to the scale of the shapes that were chosen.

Neuron r of a layer is read as a_r = scale_r read_r + shift_r. With t_r its query, w and b the target's weights,

    t_r = ((w . (scale read + shift) + b) / 2^k - in_shift) / in_scale,

where read, scale and shift are the layer's before, or the inputs' own: x = (x - middle) + middle. Powers of two and
readings are all that stands between the target's weights and the network's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from anchorhead.language.targets.mlp import Affine
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer


@dataclass(frozen=True, eq=False)
class Queries(Layer):
    """Queries t = weight . before + bias of a layer's heads, which stand for its pre-activations.

    scale, shift  a = phi(z) = scale read + shift
    """

    weight: Float[np.ndarray, "neurons before"] = field(kw_only=True)
    bias: Float[np.ndarray, " neurons"] = field(kw_only=True)
    scale: Float[np.ndarray, " neurons"] = field(kw_only=True)
    shift: Float[np.ndarray, " neurons"] = field(kw_only=True)

    def shape(self, neuron: int) -> ActivationHead:
        return self.shapes[self.which[neuron]]


@dataclass(frozen=True, eq=False)
class Laid:
    """A target as neurons to lay out: what enters is x - middle, what leaves is weight . read + bias.

    readout  the target's own, of the exact neurons
    """

    middle: Float[np.ndarray, " inputs"]
    layers: tuple[Queries, ...]
    weight: Float[np.ndarray, "outputs before"]
    bias: Float[np.ndarray, " outputs"]
    readout: Affine

    @property
    def shapes(self) -> list[ActivationHead]:
        return [shape for layer in self.layers for shape in layer.shapes]

    @property
    def largest_logit(self) -> float:
        """A bound on |a_k t + g_k| for the anchors of any shape and the queries of any other of its layer."""
        return max((_largest_logit(layer.shapes) for layer in self.layers), default=0.0)


def _largest_logit(shapes: Sequence[ActivationHead]) -> float:
    reach = max(abs(end) for shape in shapes for end in shape.queries)
    return max(shape.largest_logit(reach) for shape in shapes)


def laid_out(layers: Sequence[Layer], readout: Affine, sources: Sources, middle: Float[np.ndarray, " inputs"]) -> Laid:
    """The queries of all layers, each in the scale of its shape."""
    scale, shift = np.ones(len(middle)), middle
    result = []
    for layer in layers:
        low, high, after = layer.exact(sources)
        weight, bias = layer.affine.weight * scale, layer.affine.bias + layer.affine.weight @ shift
        unit_in, unit_out = units(layer, low, high)
        in_scale, in_shift, out_scale, out_shift = (
            np.array([getattr(shape, name) for shape in layer.shapes])[layer.which]
            for name in ("in_scale", "in_shift", "out_scale", "out_shift")
        )
        weight = weight / (unit_in * in_scale)[:, None]
        scale, shift = unit_out * out_scale, unit_out * out_shift
        bias = (bias / unit_in - in_shift) / in_scale
        result.append(Queries.extending(layer, weight=weight, bias=bias, scale=scale, shift=shift))
        sources = after
    return Laid(middle, tuple(result), readout.weight * scale, readout.bias + readout.weight @ shift, readout)


def units(layer: Layer, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """2^k and 2^(dk) for every neuron, from the intervals of the exact pre-activations and the room around them."""
    low, high = low - layer.room, high + layer.room
    k = np.zeros(layer.neurons, int)
    degree = np.zeros(layer.neurons)
    for number, shape in enumerate(layer.shapes):
        own = layer.which == number
        k[own] = shape.exponents(low[own], high[own])
        degree[own] = shape.degree or 0.0
    return np.ldexp(1.0, k), np.ldexp(1.0, (degree * k).astype(int))
