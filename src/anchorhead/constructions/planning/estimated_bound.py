"""What a proof will find, before anything is built: its steps, taken on the neurons instead of on a network.

The layouts keep sequences in tokens, registers and heads, but their numbers are those of a few affine maps: inputs are
centred, asked for, read and mixed. `lemmas.walk` follows the stored weights; here the same maps are followed as if they
were stored, with the same counts of terms, and the result is rounded up by a little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.build_options import BuildOptions
from anchorhead.constructions.layouts.sequence_layout import best_gauge
from anchorhead.constructions.neuron_layers import Laid, Neurons
from anchorhead.constructions.planning.sizes import dealt, width_of
from anchorhead.constructions.planning.uniform_estimates import UniformEstimate, lattice_rounding, lengths
from anchorhead.heads.atom import Part
from anchorhead.lemmas import scalar_head
from anchorhead.lemmas.group_values import weight_sums
from anchorhead.lemmas.scalar_head import Reads
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, own_error
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, Arithmetic, arithmetic_of
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.head_rounding import head_rounding
from anchorhead.proof.heads.neurons import Layer
from anchorhead.targets.mlp import Affine

UP = 1 + 1e-5
"""For what is counted here in another order than there."""


@dataclass(frozen=True, eq=False)
class Carried:
    """Features v_i with |v_i - (factor_i source_i + constant_i)| <= approximation_i + rounding_i."""

    factor: Float[np.ndarray, " sources"]
    constant: Float[np.ndarray, " sources"]
    approximation: Float[np.ndarray, " sources"]
    rounding: Float[np.ndarray, " sources"]

    def size(self, sources: Sources) -> Float[np.ndarray, " sources"]:
        """A bound on |v| as computed."""
        middle = np.abs(self.factor * sources.middle + self.constant)
        slack = own_error(len(self.factor)) * (np.abs(self.factor) * sources.size + middle)
        return middle + np.abs(self.factor) * sources.radius + self.approximation + self.rounding + slack


@np.errstate(over="ignore", invalid="ignore")  # of heads of which nothing is known all bounds are infinite
def estimated_bound(
    layers: Sequence[Layer], readout: Affine, laid: Laid, sources: Sources, tokens: int, options: BuildOptions
) -> float:
    """A bound on what `lemmas.mlp.prove_mlp` will find for the network that would be built in this way."""
    work = _Work(laid, tokens, options, arithmetic_of(options.dtype))
    x = work.centred(sources)
    if not layers:
        y = work.asked(work.stored(laid.weight), work.stored(laid.bias), x, sources, work.width)
        return _compared(y, readout, sources)
    if options.form == "attention-softmax":
        y, sources = work.softmaxes(layers[0], x, sources)
    elif options.layout == "sequence":
        y, sources = work.across(layers, x, sources)
    else:
        y, sources = work.heads(layers, x, sources)
    return _compared(y, readout, sources)


@dataclass(frozen=True, eq=False)
class _Work:
    laid: Laid
    tokens: int
    options: BuildOptions
    arithmetic: Arithmetic

    @property
    def width(self) -> int:
        return width_of(self.laid, self.tokens, self.options)

    def stored(self, array: np.ndarray) -> np.ndarray:
        """The numbers that the dtype holds, in float64."""
        return array.astype(self.options.dtype).astype(np.float64)

    def centred(self, sources: Sources) -> Carried:
        """x - middle, of inputs that are first rounded to the dtype."""
        u, tiny, middle = self.arithmetic.unit, self.arithmetic.tiny, self.laid.middle
        given = u * sources.size + tiny
        # one subtraction, of which no product rounds
        left = np.abs(sources.middle - middle) + sources.radius + given
        left = left + own_error(len(middle)) * (sources.size + np.abs(middle))
        rounding = given + np.where(middle == 0, 0.0, u * left * UP + 2 * tiny)
        return Carried(np.ones(len(middle)), -middle, np.zeros(len(middle)), rounding)

    def asked(self, weight: np.ndarray, bias: np.ndarray, x: Carried, sources: Sources, columns: int) -> Forms:
        """Queries weight . x + bias, in any order; `columns` counts zeros, too."""
        absolute, coefficients = np.abs(weight), weight * x.factor
        reach = absolute @ x.size(sources) + np.abs(bias)
        terms = (weight != 0).sum(axis=1) + (bias != 0)
        rounding = absolute @ x.rounding + self.arithmetic.gamma(terms) * reach + terms * self.arithmetic.tiny
        rounding += own_error(columns) * (np.abs(coefficients) @ sources.size + reach)
        arrays = coefficients, weight @ x.constant + bias, absolute @ x.approximation, rounding
        return Forms(*(array[None] for array in arrays))

    def heads(self, layers: Sequence[Layer], x: Carried, sources: Sources) -> tuple[Forms, Sources]:
        """Neurons are heads of every token: the transformer layout."""
        width = self.width
        *before, last = zip(layers, self.laid.neurons, strict=True)
        for layer, neurons in before:
            reads, sources = scalar_head.bound(layer, self.queries(neurons, x, sources, width), sources)
            x = self.written(reads, sources)
            width += neurons.count - neurons.weight.shape[1]
        reads, sources = scalar_head.bound(last[0], self.queries(last[1], x, sources, width), sources)
        y = reads.combined(self.stored(self.laid.weight), sources, self.arithmetic, None, 1, 0.0)
        return self.with_positions(y, sources), sources

    def queries(self, neurons: Neurons, x: Carried, sources: Sources, columns: int) -> Forms:
        return self.asked(self.stored(neurons.weight), self.stored(neurons.bias), x, sources, columns)

    def written(self, reads: Reads, exact: Sources) -> Carried:
        """Every neuron's reading as a feature, its parts added up."""
        scale, parts = np.abs(reads.scale), reads.reach.shape[1]
        summed = self.arithmetic.gamma(parts + 1) * reads.reach.sum(axis=1) + (parts + 1) * self.arithmetic.tiny
        noise = own_error(len(scale)) * (exact.size + np.abs(reads.shift)) / scale
        rounding = reads.rounding / scale + summed + noise
        return Carried(1 / reads.scale, -reads.shift / reads.scale, reads.approximation / scale, rounding * UP)

    def with_positions(self, y: Forms, exact: Sources) -> Forms:
        """The bias of each token's position is added; the dot product runs over those of all positions."""
        bias = self.stored(self.laid.bias)
        used = (bias.reshape(self.tokens, -1) != 0).sum(axis=0)
        terms = 1 + np.tile(used, self.tokens)
        reach = y.size(exact)[0] + np.abs(bias)
        noise = own_error(len(used) + self.tokens) * (np.abs(y.coefficients[0]) @ exact.size + reach)
        added = np.where(terms <= 1, 0.0, self.arithmetic.gamma(terms) * reach + terms * self.arithmetic.tiny + noise)
        return Forms(y.coefficients, y.constant + bias, y.approximation, y.rounding + added)

    def across(self, layers: Sequence[Layer], x: Carried, sources: Sources) -> tuple[Forms, Sources]:
        """Neurons are tokens, and maps across the sequence mix what they read: the sequence layout."""
        query = self.queries(self.laid.neurons[0], x, sources, self.width)
        maps = [(neurons.weight, neurons.bias) for neurons in self.laid.neurons[1:]]
        for layer, (weight, bias) in zip(layers, [*maps, (self.laid.weight, self.laid.bias)], strict=True):
            reads, sources = scalar_head.bound(layer, query, sources)
            stored = self.stored(bias)
            nothing = np.zeros((1, len(stored)))
            others = Forms(nothing[..., None], stored[None], nothing, nothing)
            query = reads.combined(self.stored(weight), sources, self.arithmetic, others, 1, np.abs(stored))
        return query, sources

    def softmaxes(self, layer: Layer, x: Carried, sources: Sources) -> tuple[Forms, Sources]:
        """Neurons are groups of a softmax within a token."""
        (neurons,) = self.laid.neurons
        errors = [[np.zeros(len(part)) for part in shape.parts] for shape in neurons.shapes]
        rounding = None
        if self.options.layout == "sequence" and not dealt(self.laid, self.tokens):
            errors = [self.logit_errors(neurons, number, x, sources) for number in range(len(neurons.shapes))]
            rounding = [self.mixed_rounding(*pair) for pair in zip(neurons.shapes, errors, strict=True)]
            nothing = np.zeros((1, neurons.count))
            constant = neurons.bias - neurons.weight @ self.laid.middle
            query = Forms(neurons.weight[None], constant[None], nothing, nothing)
        else:
            query = self.queries(neurons, x, sources, self.width)
        reads, exact = scalar_head.bound(layer, query, sources, rounding)
        sums = [self.value_sum(*pair) for pair in zip(neurons.shapes, errors, strict=True)]
        return self.taken(neurons, reads, np.array(sums)[neurons.assigned], exact), exact

    def value_sum(self, shape: ActivationHead, errors: list[np.ndarray]) -> float:
        """A bound on sum_k w_k |v_k|, all parts together."""
        if isinstance(shape, UniformEstimate):
            largest = float(np.abs(shape.parts[0].values).max())
            return largest * (1 + float(self.arithmetic.gamma(2 * min(shape.count, 10**6) + 2))) * UP
        return sum(weight_sums(shape, self.arithmetic, errors))

    def taken(self, neurons: Neurons, reads: Reads, sums: np.ndarray, exact: Sources) -> Forms:
        """What outputs take of weights w_k: values C v_k, stored, with C the readout's weight of the neuron."""
        u, weight, bias = self.arithmetic.unit, self.laid.weight, self.stored(self.laid.bias)
        takes = np.zeros_like(weight)
        anchors = np.zeros(neurons.count)
        for number, shape in enumerate(neurons.shapes):
            own = neurons.assigned == number
            largest = max((part.values[:, 0].astype(np.float64) for part in shape.parts), key=_size)
            value = float(largest[np.abs(largest).argmax()])
            takes[:, own] = self.stored(weight[:, own] * value) / (value or 1.0)
            anchors[own] = sum(lengths(shape))
        terms = (weight != 0) @ anchors
        constants = 2 if self.options.layout == "transformer" and self.tokens > 1 else 1
        reach = (np.abs(weight) @ sums) * (1 + 4 * u) + terms * self.arithmetic.tiny
        size = reach + np.abs(bias)
        gamma = (terms + constants) * u / np.maximum(1 - (terms + constants) * u, 1e-3)
        own_rounding = (2.1 * u + 5 * FLOAT64.unit) * reach + gamma * size + terms * self.arithmetic.tiny
        whole = Reads(
            reads.scale, reads.shift, reads.approximation, reads.rounding, np.zeros_like(reads.reach), reads.inside
        )
        mixed = whole.combined(takes, exact, self.arithmetic)
        rounding = mixed.rounding[0] + own_rounding * UP + 8 * FLOAT64.unit * size
        return Forms(mixed.coefficients, mixed.constant + bias, mixed.approximation, rounding[None])

    def logit_errors(self, neurons: Neurons, number: int, x: Carried, sources: Sources) -> list[np.ndarray]:
        """For each part and anchor, how far a logit that is a dot product of its own may be off, any neuron.

        The logit a_k t + g_k has the weights a_k W and the bias a_k b + g_k - gauge, each stored with a rounding; the
        proof compares offsets with their median, which errs by no more than the median of their errors.
        """
        shape, u = neurons.shapes[number], self.arithmetic.unit
        own = neurons.assigned == number
        if not own.any():
            return [np.zeros(len(part)) for part in shape.parts]
        weight, bias = np.abs(neurons.weight[own]), np.abs(neurons.bias[own])
        given, asked, whole = (
            weight @ x.rounding,
            weight @ x.size(sources),
            weight @ (sources.size + np.abs(x.constant)),
        )
        terms = (weight != 0).sum(axis=1) + 1
        result = []
        for part in shape.parts:
            slopes, offsets, _ = (np.abs(array) for array in part.astype(np.float64))
            gauge = 0.0 if isinstance(shape, UniformEstimate) else abs(best_gauge(*_signed(part), shape.queries))
            offset = offsets + gauge + slopes * bias[:, None]
            stored = (u + 8 * FLOAT64.unit) * (slopes * whole[:, None] + offset) + self.arithmetic.tiny
            summed = np.asarray(self.arithmetic.gamma(terms))[:, None] * (slopes * asked[:, None] + offset)
            noise = (32 * FLOAT64.unit + 3 * own_error(weight.shape[1])) * (slopes * whole[:, None] + offset)
            error = slopes * given[:, None] + summed + stored + noise + np.median(stored, axis=1, keepdims=True)
            result.append(error.max(axis=0) * (1 + 4 * u) * UP + terms.max() * self.arithmetic.tiny)
        return result

    def mixed_rounding(self, shape: ActivationHead, errors: list[np.ndarray]) -> float:
        if not isinstance(shape, UniformEstimate):
            found = head_rounding(shape.parts, 0.0, np.zeros(1), *shape.queries, self.arithmetic, errors)
            return shape.out_scale * found * UP
        if shape.in_scale == 1:
            return np.inf  # of heads that are no ramps nothing is known before they are built
        return shape.rounding + shape.out_scale * lattice_rounding(shape.count, float(errors[0].max()), self.arithmetic)


def _compared(y: Forms, readout: Affine, sources: Sources) -> float:
    """The largest difference from the target's readout; see lemmas.mlp."""
    weight, bias = readout.weight, readout.bias
    difference = y.coefficients[0] - weight
    left = np.abs(difference @ sources.middle + y.constant[0] - bias) + np.abs(difference) @ sources.radius
    weight_error, bias_error = readout.errors
    left += weight_error @ sources.size + bias_error
    # what float64 loses here is not what it loses there
    noise = (own_error(8) + 8 * FLOAT64.unit) * (np.abs(weight) @ sources.size + np.abs(bias))
    noise += own_error(weight.shape[1]) * (np.abs(difference) @ sources.size)
    total = float((y.approximation[0] + y.rounding[0] + left + noise).max()) * UP
    return np.inf if np.isnan(total) else total  # weights that overflow the dtype


def _size(values: np.ndarray) -> float:
    return float(np.abs(values).max())


def _signed(part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    slopes, offsets, values = part.astype(np.float64)
    return slopes, offsets, values[:, 0]
