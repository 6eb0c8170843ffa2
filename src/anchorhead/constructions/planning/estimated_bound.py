"""What a proof will find, before anything is built: its lemmas, put to the neurons instead of to a network.

The layouts keep sequences in tokens, registers and heads, but their numbers are those of a few affine maps: inputs are
centred, asked for, read and mixed. `lemmas.walk` reads these maps from the stored weights; here they are followed as if
they were stored, by the same formulas and with the same counts of terms, and the result is rounded up by a little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.layouts.draft import Draft
from anchorhead.constructions.layouts.laid_out import anchors_of
from anchorhead.constructions.layouts.neurons import Laid, Neurons
from anchorhead.constructions.layouts.sequence_layout import best_gauge, deals
from anchorhead.constructions.planning.uniform_estimates import UniformEstimate, lattice_rounding
from anchorhead.lemmas import scalar_head
from anchorhead.lemmas.group_values import Taken, weight_sums
from anchorhead.lemmas.known import Others
from anchorhead.lemmas.output import compared
from anchorhead.lemmas.scalar_head import Reads
from anchorhead.network import Attention, Embed
from anchorhead.proof.arithmetic.affine_forms import NOTHING, Diagonal, Forms, Sources, embedded, mapped, own_error
from anchorhead.proof.arithmetic.arithmetic import FLOAT64, Arithmetic, arithmetic_of
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.head_rounding import head_rounding

UP = 1 + 1e-4
"""For what is counted here in another order than there."""


@np.errstate(over="ignore", invalid="ignore")  # of heads of which nothing is known all bounds are infinite
def estimated_bound(laid: Laid, drafts: Sequence[Draft], sources: Sources, tokens: int, request: BuildRequest) -> float:
    """A bound on what `lemmas.mlp.prove_mlp` will find for the network that would be built of these drafts."""
    work = _Work(laid, drafts, tokens, request, arithmetic_of(request.dtype))
    x = work.centred(sources)
    if not laid.layers:
        shape = drafts[-1].shapes["weight"]
        y = work.mapped(laid.weight, laid.bias, x, sources, prod(shape[len(shape) // 2 :]))
    elif request.form == "attention-softmax":
        y, sources = work.softmaxes(x, sources)
    elif request.layout == "sequence":
        y, sources = work.across(x, sources)
    else:
        y, sources = work.heads(x, sources)
    total = compared(y, laid.readout, sources).total * UP
    return np.inf if np.isnan(total) else total  # weights that overflow the dtype


@dataclass(frozen=True, eq=False)
class _Work:
    laid: Laid
    drafts: Sequence[Draft]
    tokens: int
    request: BuildRequest
    arithmetic: Arithmetic

    def stored(self, array: np.ndarray) -> np.ndarray:
        """The numbers that the dtype holds, in float64."""
        return array.astype(self.request.dtype).astype(np.float64)

    def centred(self, sources: Sources) -> Diagonal:
        """x - middle, of inputs that are first rounded to the dtype: each as if it were a token of its own."""
        middle = self.laid.middle
        embed = Embed(np.ones((1, 1)), -middle[:, None], tokens=len(middle))
        return Diagonal(embedded(embed, sources.apart(), self.arithmetic)[0])

    def mapped(self, weight: np.ndarray, bias: np.ndarray, x: Diagonal, sources: Sources, columns: int) -> Forms:
        """weight . x + bias, as stored in so many columns."""
        return mapped(self.stored(weight), self.stored(bias), x, sources, self.arithmetic, columns)

    def heads(self, x: Diagonal, sources: Sources) -> tuple[Forms, Sources]:
        """Neurons are heads of every token: the transformer layout."""
        laid, layers = self.laid, self.laid.layers
        queries = [draft.shapes["query"] for draft in self.drafts if draft.kind is Attention][-len(layers) :]
        *before, last = zip(laid.neurons, layers, queries, strict=True)
        for neurons, layer, (_, _, columns) in before:
            reads, sources = scalar_head.bound(layer, *self.asked(neurons, x, sources, columns))
            x = reads.apart(sources, self.arithmetic, 1)
        neurons, layer, (_, _, columns) = last
        reads, sources = scalar_head.bound(layer, *self.asked(neurons, x, sources, columns))
        y = reads.combined(self.stored(laid.weight), sources, self.arithmetic, None, 1)
        return self.with_biases(y, sources), sources

    def asked(
        self, neurons: Neurons, x: Diagonal, sources: Sources, columns: int
    ) -> tuple[Forms, Sources, Float[np.ndarray, " neurons"]]:
        """The queries of neurons, and how far from one another parts may ask: twice what one rounds by."""
        query, exactly = (
            self.mapped(neurons.weight, neurons.bias, given, sources, columns)
            for given in (x, Diagonal(x.each.unrounded()))
        )
        return query, sources, 2 * exactly.rounding[0]

    def with_biases(self, y: Forms, sources: Sources) -> Forms:
        """Each token's outputs with the bias of its position: beside each token's forms stands where it is."""
        bias = self.stored(self.laid.bias).reshape(self.tokens, -1)
        outputs = bias.shape[1]
        each = y.reshaped(self.tokens, outputs)
        if self.tokens == 1:
            return mapped(np.eye(outputs), bias[0], each, sources, self.arithmetic)
        at = Forms.constants(np.eye(self.tokens)).over(NOTHING, sources.count)
        weight = np.concatenate([np.eye(outputs), bias.T], axis=1)
        return mapped(weight, None, Forms.joined([each, at], axis=1), sources, self.arithmetic)

    def across(self, x: Diagonal, sources: Sources) -> tuple[Forms, Sources]:
        """Neurons are tokens, and maps across the sequence mix what they read: the sequence layout."""
        first, *others = self.laid.neurons
        query = self.mapped(first.weight, first.bias, x, sources, len(self.laid.middle))
        maps = [(neurons.weight, neurons.bias) for neurons in others]
        maps.append((self.laid.weight, self.laid.bias))
        for layer, (weight, bias) in zip(self.laid.layers, maps, strict=True):
            reads, sources = scalar_head.bound(layer, query, sources)
            stored = self.stored(bias)
            nothing = np.zeros((1, len(stored)))
            beside = Forms(nothing[..., None], stored[None], nothing, nothing)
            query = reads.combined(self.stored(weight), sources, self.arithmetic, beside, 1, np.abs(stored))
        return query, sources

    def softmaxes(self, x: Diagonal, sources: Sources) -> tuple[Forms, Sources]:
        """Neurons are groups of a softmax within a token."""
        laid, (layer,) = self.laid, self.laid.layers
        (neurons,) = laid.neurons
        errors = [[np.zeros(len(part)) for part in shape.parts] for shape in neurons.layer.shapes]
        rounding = None
        if self.request.layout == "sequence" and not deals(laid, self.tokens):
            errors = [self.logit_errors(neurons, number, x, sources) for number in range(len(neurons.layer.shapes))]
            rounding = [self.mixed_rounding(*pair) for pair in zip(neurons.layer.shapes, errors, strict=True)]
            nothing = np.zeros((1, neurons.count))
            constant = neurons.bias - neurons.weight @ laid.middle
            query = Forms(neurons.weight[None], constant[None], nothing, nothing)
        else:
            gather = next(draft.shapes for draft in self.drafts if draft.kind is Attention)
            columns = gather["output"][0] * gather["output"][2] + gather["query"][2]
            query = self.mapped(neurons.weight, neurons.bias, x, sources, columns)
        reads, exact = scalar_head.bound(layer, query, sources, rounding=rounding)
        sums = [self.value_sum(*pair) for pair in zip(neurons.layer.shapes, errors, strict=True)]
        return self.taken(neurons, reads, np.array(sums)[neurons.layer.which], exact), exact

    def value_sum(self, shape: ActivationHead, errors: list[np.ndarray]) -> float:
        """A bound on sum_k w_k |v_k|, all parts together."""
        if isinstance(shape, UniformEstimate):
            largest = float(np.abs(shape.parts[0].values).max())
            return largest * (1 + float(self.arithmetic.gamma(2 * min(shape.count, 10**6) + 2))) * UP
        return sum(weight_sums(shape, self.arithmetic, errors))

    def taken(self, neurons: Neurons, reads: Reads, sums: Float[np.ndarray, " neurons"], exact: Sources) -> Forms:
        """What outputs take of weights w_k: values C v_k, stored, with C the readout's weight of the neuron."""
        u, weight, bias = self.arithmetic.unit, self.laid.weight, self.stored(self.laid.bias)
        takes = np.zeros_like(weight)
        anchors = np.zeros(neurons.count)
        for number, shape in enumerate(neurons.layer.shapes):
            own = neurons.layer.which == number
            values = np.concatenate([part.values[:, 0].astype(np.float64) for part in shape.parts])
            value = float(values[np.abs(values).argmax()])
            takes[:, own] = self.stored(weight[:, own] * value) / (value or 1.0)
            anchors[own] = shape.anchors
        terms = (weight != 0) @ anchors
        reach = (np.abs(weight) @ sums) * (1 + 4 * u) + terms * self.arithmetic.tiny
        others = Others.bias(bias)
        if self.request.layout == "transformer" and self.tokens > 1:  # a group of its own holds the biases
            others = Others.bias(np.zeros(len(bias))).with_copy(bias)
        off = (2.1 * u + 5 * FLOAT64.unit) * reach
        if not reads.inside.all() or 2 * u * (terms + others.terms).max() >= 1:  # so long a sum has no bound
            return Forms(takes[None], bias[None], *np.full((2, 1, len(bias)), np.inf))
        return Taken(takes, off * UP, reach * UP, terms).outputs(reads, exact, others, self.arithmetic)

    def logit_errors(self, neurons: Neurons, number: int, x: Diagonal, sources: Sources) -> list[np.ndarray]:
        """For each part and anchor, how far a logit that is a dot product of its own may be off, any neuron.

        The logit a_k t + g_k has the weights a_k W and the bias a_k b + g_k - gauge, each stored with a rounding; the
        proof compares offsets with their median, which errs by no more than the median of their errors.
        """
        shape, u = neurons.layer.shapes[number], self.arithmetic.unit
        own = neurons.layer.which == number
        if not own.any():
            return [np.zeros(len(part)) for part in shape.parts]
        weight, bias = np.abs(neurons.weight[own]), np.abs(neurons.bias[own])
        given, asked = weight @ x.rounding[0], weight @ x.size(sources)[0]
        whole = weight @ (sources.size + np.abs(x.constant[0]))
        terms = (weight != 0).sum(axis=1) + 1
        result = []
        for place, part in enumerate(shape.parts):
            slopes, offsets, _ = (np.abs(array) for array in part.astype(np.float64))
            estimated = isinstance(shape, UniformEstimate)
            gauge = 0.0 if estimated else abs(best_gauge(*anchors_of(shape, place), shape.queries))
            offset = offsets + gauge + slopes * bias[:, None]
            stored = (u + 8 * FLOAT64.unit) * (slopes * whole[:, None] + offset) + self.arithmetic.tiny
            summed = np.asarray(self.arithmetic.gamma(terms))[:, None] * (slopes * asked[:, None] + offset)
            noise = (32 * FLOAT64.unit + 3 * own_error(weight.shape[1])) * (slopes * whole[:, None] + offset)
            error = slopes * given[:, None] + summed + stored + noise + np.median(stored, axis=1, keepdims=True)
            result.append(error.max(axis=0) * (1 + 4 * u) * UP + terms.max() * self.arithmetic.tiny)
        return result

    def mixed_rounding(self, shape: ActivationHead, errors: list[np.ndarray]) -> float:
        """What a head rounds by whose logits err so."""
        if not isinstance(shape, UniformEstimate):
            found = head_rounding(shape.parts, 0.0, np.zeros(1), *shape.queries, self.arithmetic, errors)
            return shape.out_scale * found * UP
        if shape.in_scale == 1:
            return np.inf  # of heads that are no ramps nothing is known before they are built
        return shape.rounding + shape.out_scale * lattice_rounding(shape.count, float(errors[0].max()), self.arithmetic)
