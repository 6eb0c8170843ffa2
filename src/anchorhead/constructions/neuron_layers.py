"""From a target network to layers of neurons that heads can compute: shapes chosen, pre-activations brought to scale.

Neuron r of a layer is read as a_r = scale_r read_r + shift_r. With t_r its query, w and b the target's weights,

    t_r = ((w . (scale read + shift) + b) / 2^k - in_shift) / in_scale,

where read, scale and shift are the layer's before, or the inputs' own: x = (x - middle) + middle. Powers of two and
readings are all that stands between the target's weights and the network's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.compiler.budget import Budget, FeltLayer, sensitivities
from anchorhead.errors import AnchorheadError, NotDefined, NotReached
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.of_targets import step_of
from anchorhead.language.targets.merge import merged
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer

ChooseShape = Callable[[Expression, float, float, float], ActivationHead]
"""A shape for an activation on [low, high], within an error."""


@dataclass(frozen=True, eq=False)
class Neurons:
    """Queries t = weight . before + bias of one layer, which stand for its pre-activations.

    scale, shift  a = phi(z) = scale read + shift
    """

    layer: Layer
    weight: Float[np.ndarray, "neurons before"]
    bias: Float[np.ndarray, " neurons"]
    scale: Float[np.ndarray, " neurons"]
    shift: Float[np.ndarray, " neurons"]

    @property
    def count(self) -> int:
        return len(self.bias)

    @property
    def parts(self) -> int:
        return self.layer.parts

    def shape(self, neuron: int) -> ActivationHead:
        return self.layer.shapes[self.layer.which[neuron]]


@dataclass(frozen=True, eq=False)
class Laid:
    """A target as neurons to lay out: what enters is x - middle, what leaves is weight . read + bias.

    readout  the target's own, of the exact neurons
    """

    middle: Float[np.ndarray, " inputs"]
    neurons: tuple[Neurons, ...]
    weight: Float[np.ndarray, "outputs before"]
    bias: Float[np.ndarray, " outputs"]
    readout: Affine

    @property
    def layers(self) -> list[Layer]:
        """What the neurons are to compute."""
        return [neurons.layer for neurons in self.neurons]

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


GUESSED_TIMES = 32.0
"""For a head of which nothing is known: floats often miss what is asked for by about so much."""


class HeadRefused(AnchorheadError):
    """A head cannot be had: the message says which, on which interval, within which error.

    times  how many times that error the best head errs by, or a guess
    """

    def __init__(self, message: str, times: float) -> None:
        super().__init__(message)
        self.times = times


def shaped(
    target: Mlp, sources: Sources, budget: Budget, margin: float, choose: ChooseShape
) -> tuple[list[Layer], Affine]:
    """The target's layers with a shape for every activation of each, within its share of the budget (of unit scale)."""
    hidden, readout = merged(target)
    layers = []
    reaching = np.zeros(target.inputs)
    for number, one in enumerate(hidden):
        affine, layer = one.affine, one.hidden
        low, high, after = Layer(affine, layer.activations, layer.which).exact(sources)
        moved = np.abs(affine.weight) @ reaching
        room = 1.01 * moved + margin * np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-3)
        shapes = []
        for k in range(len(layer.activations)):
            shapes.append(_shape(layer, k, low - room, high + room, budget.share(number, k), choose))
            budget.spend(number, k, shapes[k].error)
        names = np.stack([np.full(layer.neurons, step_of(one.place)), 0 * one.numbers, one.numbers], axis=1)
        layers.append(Layer(affine, layer.activations, layer.which, tuple(shapes), room, names=names))
        unit_in, unit_out = units(layers[-1], low, high)
        slope, left = (np.array([getattr(s, name) for s in shapes])[layer.which] for name in ("slope", "error"))
        reaching = unit_out * (left + slope * moved / unit_in)
        sources = after
    return layers, readout


def _shape(
    layer: Hidden, k: int, low: np.ndarray, high: np.ndarray, error: float, choose: ChooseShape
) -> ActivationHead:
    own = layer.which == k
    if not own.any():
        own = slice(None)
    activation, ends = layer.activations[k], (float(low[own].min()), float(high[own].max()))
    try:
        return choose(activation, *ends, error)
    except NotDefined as why:
        raise NotDefined(
            f"a part of the function, {activation}, is needed for x in [{ends[0]:.6g}, {ends[1]:.6g}], the bounds on "
            f"its argument with room for errors: {why}"
        ) from why
    except AnchorheadError as why:
        times = why.bound / error if isinstance(why, NotReached) and error > 0 else GUESSED_TIMES
        raise HeadRefused(f"{activation} on [{ends[0]:.6g}, {ends[1]:.6g}] within {error:.3g}: {why}", times) from why


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
        result.append(Neurons(layer, weight, bias, scale, shift))
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


def felt_by_outputs(
    layers: Sequence[Layer], readout: Affine, sources: Sources
) -> list[Float[np.ndarray, "outputs shapes"]]:
    """For each layer and shape, by how much the outputs err at most if the shape errs by 1: see compiler.budget."""
    known = []
    for layer in layers:
        low, high, after = layer.exact(sources)
        unit_in, unit_out = units(layer, low, high)
        slope = np.array([shape.slope for shape in layer.shapes])[layer.which] * unit_out / unit_in
        known.append(FeltLayer(layer.affine.weight, slope, unit_out, layer.which, len(layer.shapes)))
        sources = after
    return sensitivities(known, readout.weight)
