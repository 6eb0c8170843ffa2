"""How far a converted network is from its target: the two followed side by side, layer by layer.

The network's features are kept as affine forms of the target's exact quantities (proof.affine_forms): first of the
inputs, and after every layer of neurons, of the neurons' exact values. What is left at the end, with the readout's own
coefficients taken away, is the error. Everything is read from the stored weights; of shapes only what was proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.domain import Box
from anchorhead.network import Attention, Linear, Network, Softmax
from anchorhead.proof.affine_forms import UNKNOWN, Forms, Sources, after_linear, embedded, mapped, own_error
from anchorhead.proof.arithmetic import Arithmetic, arithmetic_of
from anchorhead.proof.attended import after_copies, asked, carried, matched, require_mask, seen, unreadable
from anchorhead.proof.neurons import Layer, Reads, read
from anchorhead.proof.overflow import require_room
from anchorhead.proof.rounding import exact_factor
from anchorhead.proof.softmaxes import after_softmaxes
from anchorhead.targets.mlp import Merged, Mlp

TERMS = ("anchors: heads in place of activations, in exact arithmetic", "rounding, weights as stored included")


@dataclass(frozen=True, eq=False)
class MlpBound:
    """|network - target| <= approximation + rounding, entry by entry of the output.

    pre_activations  the interval of each neuron's pre-activation, a pair of arrays for each layer
    """

    approximation: Float[np.ndarray, " outputs"]
    rounding: Float[np.ndarray, " outputs"]
    inside: bool

    @property
    def total(self) -> float:
        return float((self.approximation + self.rounding).max()) * (1 + 1e-12)

    def terms(self) -> dict[str, float]:
        worst = int((self.approximation + self.rounding).argmax())
        return dict(zip(TERMS, (float(self.approximation[worst]), float(self.rounding[worst])), strict=True))


def prove_mlp(network: Network, target: Mlp, layers: Sequence[Layer], readout: Merged, on: Box) -> MlpBound:
    """A bound for every input in the box; infinite, or an error, where the weights are not those of the target."""
    if network.output != "input":
        raise unreadable(f"its output is not that of the inputs, but of the {network.output}s")
    _require_shapes(network, target)
    box = on.broadcast_to(target.input_shape)
    require_room(network, box)
    sources = Sources(box.low.reshape(-1).astype(float), box.high.reshape(-1).astype(float))
    follower = _Follower(network, list(layers), sources, arithmetic_of(network.dtype))
    y = follower.run()
    return _compared(y, readout, follower.sources, follower.inside)


def _require_shapes(network: Network, target: Mlp) -> None:
    """The network takes and gives what the target does, token by token."""
    axis, tokens = target.tokens is not None, target.tokens or 1
    last = network.streams[-1]
    given = network.token_axis, (network.embed.tokens, network.embed.inputs), (last.inputs, last.width)
    if given != (axis, (tokens, target.inputs // tokens), (tokens, target.outputs // tokens)):
        raise unreadable(f"it is not one from {target.input_shape} to {target.output_shape}")


class _Follower:
    def __init__(self, network: Network, layers: list[Layer], sources: Sources, arithmetic: Arithmetic) -> None:
        self.sources, self.arithmetic, self.layers = sources, arithmetic, layers
        self.steps = list(network.layers[1:])
        self.inputs, self.registers = embedded(network.embed, sources, arithmetic)
        self.inside = True

    def run(self) -> Forms:
        """The forms of the output tokens, over the last layer's exact neurons."""
        while self.steps:
            match self.steps:
                case [Linear() as before, Softmax() as softmax, Linear() as after, *rest]:
                    self.steps = rest
                    self._softmaxes(before, softmax, after)
                case [Linear() as linear, *rest]:
                    self.steps = rest
                    both = after_linear(linear, self.inputs, self.registers, self.sources, self.arithmetic)
                    self.inputs, self.registers = both
                case [Attention() as attention, *rest]:
                    self.steps = rest
                    self._attention(attention)
                case _:
                    raise unreadable(f"a {type(self.steps[0]).__name__} stands where none does")
        if self.layers:
            raise unreadable("it has fewer layers of neurons than the target")
        return self.inputs

    def _attention(self, layer: Attention) -> None:
        if layer.grid is not None and len(layer.grid) > 1:
            raise unreadable("it has a grid of several axes")
        if layer.skip is not None and layer.skip.bias is not None:
            raise unreadable("a skip has a bias")
        require_mask(layer)
        touched = (layer.query != 0).any(axis=(0, 1)) & self.inputs.varying.any(axis=0)
        if not touched.any() and layer.grid is None and self._copies():
            both = after_copies(layer, self.inputs, self.registers, self.sources, self.arithmetic)
            self.inputs, self.registers = both
            return
        match self.steps:
            case [Linear() as after, *rest] if after.across and layer.grid is None:
                self.steps = rest
                self._neurons_as_tokens(layer, after)
            case _:
                self._neurons_as_heads(layer)

    def _copies(self) -> bool:
        """Whether an attention whose queries are constants copies: more layers are left than neurons need.

        The queries of neurons are constants too, where all their weights are 0.
        """
        left = sum(isinstance(step, Attention | Softmax) for step in self.steps) + 1
        return left > len(self.layers)

    def _next_layer(self) -> Layer:
        if not self.layers:
            raise unreadable("it has more layers of neurons than the target")
        return self.layers.pop(0)

    def _neurons_as_heads(self, layer: Attention) -> None:
        """Every input token asks a head for each neuron and part."""
        neurons = self._next_layer()
        count, parts = neurons.neurons, neurons.parts
        if layer.heads != count * parts:
            raise unreadable(f"{layer.heads} heads for {count} neurons of {parts} parts")
        skip = np.zeros((layer.outputs, layer.width)) if layer.skip is None else layer.skip.on_features()
        results: list[Forms] = []
        exact = self.sources
        for i in range(len(self.inputs.constant)):
            own = self.inputs.token(i)
            found = asked(layer, own, self._seen_by(layer, i), self.sources, self.arithmetic)
            entries = matched(found, neurons.shapes, neurons.assigned, parts)
            reads, exact = read(neurons, _one_query(found.varying, count, parts), self.sources)
            self.inside &= bool(reads.inside.all()) or layer.mask == "causal"
            weight = _same_for_parts(layer.output, entries, neurons)
            kept = mapped(skip, layer.bias, own, self.sources, self.arithmetic)
            if kept.coefficients.any():
                raise unreadable("a skip carries more than constants past a layer of neurons")
            size, terms = kept.size(self.sources)[0], (skip != 0).sum(axis=1) + 1
            others = Forms(np.zeros((1, layer.outputs, count)), *(array for array in kept.arrays[1:]))
            results.append(_with_constants(reads, weight, exact, self.arithmetic, others, terms, size))
        self.registers = carried(layer, self.registers, self.arithmetic)
        self.inputs, self.sources = Forms.joined(results), exact

    def _seen_by(self, layer: Attention, token: int) -> Forms:
        """The tokens that an input token sees."""
        inputs = self.inputs
        if layer.grid is not None:
            return seen(*(Forms(*(array[:count] for array in forms.arrays)) for forms, count in (
                (inputs, 0), (self.registers, layer.points)
            )))  # fmt: skip
        if layer.mask == "causal":
            inputs = Forms(*(array[: token + 1] for array in inputs.arrays))
        return seen(inputs, self.registers)

    def _neurons_as_tokens(self, layer: Attention, after: Linear) -> None:
        """The first tokens are neurons; a head for each part; a map across the sequence mixes what they read."""
        neurons = self._next_layer()
        count, parts = neurons.neurons, neurons.parts
        tokens = len(self.inputs.constant)
        if layer.heads != parts or tokens < count or layer.skip is not None or layer.bias is not None:
            raise unreadable(f"{layer.heads} heads on {tokens} tokens for {count} neurons of {parts} parts")
        if layer.mask is not None or layer.outputs != 1 or after.weight.ndim != 4:
            raise unreadable("neurons that are tokens have a mask or more than one output")
        asking = Forms(*(array[:count] for array in self.inputs.arrays))
        found = asked(layer, asking, seen(self.inputs, self.registers), self.sources, self.arithmetic)
        entries = matched(found, neurons.shapes, neurons.assigned, parts)
        reads, exact = read(neurons, _one_query(found.varying, count, parts), self.sources)
        self.inside &= bool(reads.inside.all())
        heads = np.broadcast_to(layer.output[None], (count, *layer.output.shape)).reshape(count * parts, 1, -1)
        own = _same_for_parts(heads, entries, neurons)[0]
        if not exact_factor(own).all():
            raise unreadable("what a neuron reads is rounded before it is mixed")
        weight = after.weight[..., 0].reshape(-1, after.weight.shape[2]).astype(np.float64)
        if (weight[:, count:] != 0).any():
            raise unreadable("tokens that are no neurons are read")
        outputs = after.weight.shape[:2]
        bias = np.zeros(outputs) if after.bias is None else np.broadcast_to(after.bias, outputs).astype(np.float64)
        others = Forms.constants(bias.reshape(1, -1))
        y = _with_constants(reads, weight[:, :count] * own, exact, self.arithmetic, others, 1, np.abs(bias).reshape(-1))
        self.inputs = Forms(*(array.reshape(*outputs, *array.shape[2:]) for array in y.arrays))
        self.registers = Forms.constants(np.zeros((0, outputs[1])))
        self.sources = exact

    def _softmaxes(self, before: Linear, softmax: Softmax, after: Linear) -> None:
        result = after_softmaxes(
            self._next_layer(), before, softmax, after, self.inputs, self.registers, self.sources, self.arithmetic
        )
        self.inputs, self.sources, inside = result
        self.inside &= inside
        # registers, if the maps leave any, go through the softmax too: nothing is known of what they become
        count = 0 if before.across else len(self.registers.constant)
        zeros = np.zeros((count, self.inputs.constant.shape[1]))
        self.registers = Forms(np.zeros((*zeros.shape, 0)), zeros, zeros, np.full(zeros.shape, UNKNOWN))


def _one_query(varying: Forms, neurons: int, parts: int) -> Forms:
    """A query for each neuron, which all of its parts must share."""
    split = [array[0].reshape(neurons, parts, *array.shape[2:]) for array in varying.arrays]
    if any((array != array[:, :1]).any() for array in split):
        raise unreadable("the heads of one neuron ask different things")
    return Forms(*(array[None, :, 0] for array in split))


def _same_for_parts(
    output: Float[np.ndarray, "heads outputs entries"], entries: np.ndarray, neurons: Layer
) -> Float[np.ndarray, "outputs neurons"]:
    """The weight with which each neuron's reading goes into each output, the same for all of its parts."""
    count, parts = entries.shape
    split = output.reshape(count, parts, *output.shape[1:]).astype(np.float64)
    weight = split[np.arange(count), 0, :, entries[:, 0]]
    for part in range(1, parts):
        real = np.array([part < len(neurons.shapes[k].parts) for k in neurons.assigned])
        if (split[np.arange(count), part, :, entries[:, part]] != weight)[real].any():
            raise unreadable("the parts of one neuron do not add up")
    return weight.T


def _with_constants(
    reads: Reads,
    weight: np.ndarray,
    exact: Sources,
    arithmetic: Arithmetic,
    others: Forms,
    terms: int | np.ndarray,
    size: np.ndarray,
) -> Forms:
    """The forms of outputs; those to which nothing is added stay as exact as they were."""
    mixed = reads.combined(weight, exact, arithmetic, others, terms, size)
    untouched = ~(weight != 0).any(axis=1)
    rounding = np.where(untouched, others.rounding, mixed.rounding)
    return Forms(mixed.coefficients, mixed.constant, mixed.approximation, rounding)


def _compared(y: Forms, readout: Merged, sources: Sources, inside: bool) -> MlpBound:
    """The forms of the output against the target's readout."""
    weight, bias = readout.affine.weight, readout.affine.bias
    flat = [array.reshape(len(bias), *array.shape[2:]) for array in y.arrays]
    coefficients, constant, approximation, rounding = flat
    difference = coefficients - weight
    left = np.abs(difference @ sources.middle + constant - bias) + np.abs(difference) @ sources.radius
    left += readout.weight_error @ sources.size + readout.bias_error
    noise = own_error(8) * (np.abs(weight) @ sources.size + np.abs(bias))
    noise += own_error(weight.shape[1]) * (np.abs(difference) @ sources.size)
    rounding = np.where(rounding < UNKNOWN, rounding + left + noise, np.inf)
    return MlpBound(approximation, rounding, inside)
