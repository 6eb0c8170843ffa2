"""What is known after an Attention: the readings of every token, explained by a lemma, and added up."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from anchorhead.lemmas import copy, interval, scalar_head, self_key
from anchorhead.lemmas.known import Known
from anchorhead.lemmas.record import neurons
from anchorhead.lemmas.scalar_head import Others
from anchorhead.network import Attention, Linear
from anchorhead.proof.arithmetic.affine_forms import NOTHING, Forms, Sources, mapped, own_error
from anchorhead.proof.arithmetic.readings import Readings, Refusal, of_attention, visible
from anchorhead.proof.arithmetic.rounding import exact_factor
from anchorhead.proof.heads.neurons import Layer


def after_attention(known: Known, layer: Attention) -> Known:
    """Every token asks with all heads: for a neuron and a part each, or for anything else."""
    anything = _Anything(known, layer)
    tokens: list[tuple[Forms, Sources | None]] = []
    for token, readings in enumerate(_lowered(known, layer)):
        for lemma in (_neurons_as_heads, _self_keys):
            with suppress(Refusal):
                tokens.append(lemma(known, layer, token, readings))
                break
        else:
            tokens.append((anything.at(token, readings), None))
    return known.after(tokens, interval.of_others(layer, known.inputs, known.others, known.sources, known.arithmetic))


def _lowered(known: Known, layer: Attention) -> list[Readings | None]:
    """The readings of every token, at once where all see the same; None where its heads are no readings."""
    count = len(known.inputs.constant)
    if layer.mask is None:
        with suppress(Refusal):
            seen = known.visible(layer, 0)
            every = of_attention(layer, known.inputs, seen, known.sources, known.arithmetic)
            return [every.only(slice(i * layer.heads, (i + 1) * layer.heads)) for i in range(count)]
    found: list[Readings | None] = []
    for token in range(count):
        seen = known.visible(layer, token)
        try:
            found.append(of_attention(layer, known.inputs.token(token), seen, known.sources, known.arithmetic))
        except Refusal:
            found.append(None)
    return found


def _neurons_as_heads(known: Known, layer: Attention, token: int, readings: Readings | None) -> tuple[Forms, Sources]:
    """What a token gets, over the neurons' exact values, and these."""
    claim = known.claim(Layer)
    if readings is None:
        raise Refusal("its heads do not ask in one number each")
    if layer.heads != claim.neurons * claim.parts:
        raise Refusal(f"{layer.heads} heads for {claim.neurons} neurons of {claim.parts} parts")
    entries = scalar_head.read_entries(readings, claim)
    query, apart = scalar_head.query_of(readings, claim)
    reads, exact = scalar_head.bound(claim, query, known.sources, apart)
    weight = _taken_alike(layer.output, entries, claim)
    others, passing = _kept(known, layer, token, claim.passing)
    outside = np.flatnonzero(np.repeat(~reads.inside, claim.parts))
    heard = readings.heard(outside, known.sources) if len(outside) else {}
    for ask in outside:
        keys, live = readings.keys[readings.kinds[ask]], heard[int(readings.kinds[ask])]
        if keys.values is None:
            raise Refusal("the values of a head depend on the input")
        shown, error = keys.values.values[live], keys.values.error[live]
        output = layer.output[ask].astype(np.float64)
        # entries that cancel are rounded one by one, in the dtype and here
        rounded = known.arithmetic.gamma(2 * live.size + output.shape[1] + 4) + own_error(output.shape[1])
        error = np.abs(output) @ (error + rounded * np.abs(shown)).T
        others = others.with_means(output @ shown.T, known.arithmetic, error)
    form = reads.beside(others, weight, exact, known.arithmetic)
    coefficients = np.concatenate([form.coefficients, passing], axis=2)
    known.record.add(token, neurons(claim, reads, entries))
    return replace(form, coefficients=coefficients), claim.after(known.sources)


def _self_keys(known: Known, layer: Attention, token: int, readings: Readings | None) -> tuple[Forms, Sources]:
    """What a token gets whose neurons have its own key among theirs, over their exact values, and these."""
    known.claim(self_key.SelfKeys)
    return self_key.at(known, layer, token, readings, _kept(known, layer, token, 0)[0])


def _kept(
    known: Known, layer: Attention, token: int, passing: int
) -> tuple[Others, Float[np.ndarray, "1 outputs passing"]]:
    """What the skip and the bias add to a token's outputs, and with which coefficients the last sources pass by."""
    skip, own = interval.skipped(layer, known.inputs.token(token), known.sources, known.arithmetic)
    kept = mapped(skip, layer.bias, own, known.sources, known.arithmetic)
    size, terms = kept.size(known.sources)[0], (skip != 0).sum(axis=1) + 1.0
    first = len(known.sources.low) - passing
    passed = kept.coefficients[:, :, first:].copy()
    kept.coefficients[:, :, first:] = 0.0
    still = kept.over(known.sources, 0)
    return Others(still.constant[0], still.approximation[0], still.rounding[0], size, terms), passed


def after_neurons_as_tokens(known: Known, layer: Attention, after: Linear) -> Known:
    """The first tokens are neurons; a head for each part; a map across the sequence mixes what they read."""
    claim, tokens = known.claim(Layer), len(known.inputs.constant)
    count, parts = claim.neurons, claim.parts
    if after.weight.ndim != 4 or layer.heads != parts or tokens < count or layer.outputs != 1:
        raise Refusal(f"{layer.heads} heads on {tokens} tokens for {count} neurons of {parts} parts")
    if not (layer.skip is layer.bias is layer.mask is layer.grid is None):
        raise Refusal("neurons that are tokens have a mask, a grid, a skip or a bias")
    weight = after.weight[..., 0].reshape(-1, after.weight.shape[2]).astype(np.float64)
    if (weight[:, count:] != 0).any():
        raise Refusal("tokens that are no neurons are read")
    asking = known.inputs.tokens(slice(count))
    readings = of_attention(layer, asking, (known.inputs, known.others), known.sources, known.arithmetic)
    entries = scalar_head.read_entries(readings, claim)
    query, apart = scalar_head.query_of(readings, claim)
    reads, exact = scalar_head.bound(claim, query, known.sources, apart)
    heads = np.broadcast_to(layer.output[None], (count, *layer.output.shape))
    own = _taken_alike(heads.reshape(count * parts, 1, -1), entries, claim)[0]
    if not (exact_factor(own).all() and reads.inside.all()):
        raise Refusal("what a neuron reads is rounded before it is mixed, or its query leaves its shape")
    outputs = after.weight.shape[:2]
    bias = np.zeros(outputs) if after.bias is None else np.broadcast_to(after.bias, outputs).astype(np.float64)
    y = reads.beside(Others.bias(bias.reshape(-1)), weight[:, :count] * own, exact, known.arithmetic)
    rows = y.reshaped(*outputs)
    notes = neurons(claim, reads, entries)
    for unit, token in enumerate(np.flatnonzero(reads.fits)[: len(notes.entries)].tolist()):
        one = notes.units(np.array([unit]))
        known.record.add(token, replace(one, softmaxes=one.softmaxes - np.array([0, token * parts, 0, 0])))
    return known.after([(rows, exact)], None)


def _taken_alike(
    output: Float[np.ndarray, "heads outputs entries"], entries: Int[np.ndarray, "neurons parts"], neurons: Layer
) -> Float[np.ndarray, "outputs neurons"]:
    """The weight with which each neuron's reading goes into each output, the same for all of its parts."""
    count, parts = entries.shape
    split = output.reshape(count, parts, *output.shape[1:]).astype(np.float64)
    weight = split[np.arange(count), 0, :, entries[:, 0]]
    for part in range(1, parts):
        real = np.array([part < len(neurons.shapes[k].parts) for k in neurons.which])
        if (split[np.arange(count), part, :, entries[:, part]] != weight)[real].any():
            raise Refusal("the parts of one neuron do not add up")
    return weight.T


LEMMAS = (copy,)
"""What heads may be of which the program claims nothing, tried in this order: `read` tells which of them are, and
`of_head` what each reads. Of all others it is the interval that always holds."""


class _Anything:
    """Heads that belong to no claim."""

    def __init__(self, known: Known, layer: Attention) -> None:
        self.known, self.layer = known, layer
        self.values: dict[int, tuple[Forms, Forms]] = {}
        self.seen_by_all: dict[int, Forms] = {}

    def at(self, token: int, readings: Readings | None) -> Forms:
        """What a token gets, over the same sources."""
        known, layer, own = self.known, self.layer, self.known.inputs.token(token)
        reads = [self._head(token, h, found) for h, found in enumerate(self._explained(readings))]
        skip, own = interval.skipped(layer, own, known.sources, known.arithmetic)
        weight = np.concatenate([*layer.output, skip], axis=1)
        return mapped(weight, layer.bias, Forms.joined([*reads, own], axis=1), known.sources, known.arithmetic)

    def _explained(self, readings: Readings | None) -> list[tuple[Any, Any] | None]:
        """For each head the first lemma that knows it, and what that read of it."""
        found: list[tuple[Any, Any] | None] = [None] * self.layer.heads
        for lemma in () if readings is None else LEMMAS:
            for head, known in enumerate(lemma.read(readings)):
                if found[head] is None and known is not None:
                    found[head] = lemma, known
        return found

    def _head(self, token: int, head: int, explained: tuple[Any, Any] | None) -> Forms:
        known, shown = self.known, self._shown(token, min(head, len(self.layer.value) - 1))
        if explained is None:
            return interval.of_head(shown, known.sources, known.arithmetic).over(NOTHING, len(known.sources.low))
        lemma, parameters = explained
        return lemma.of_head(parameters, shown, known.sources, known.arithmetic)

    def _shown(self, token: int, head: int) -> Forms:
        """The values of the tokens that a token sees."""
        if head in self.seen_by_all:
            return self.seen_by_all[head]
        inputs, others = visible(self.layer, *self._values(head), self.known.states, token)
        few = not len(others.constant)
        shown = inputs if few else Forms.joined([inputs, others.over(NOTHING, len(self.known.sources.low))])
        if self.layer.mask is None:
            self.seen_by_all[head] = shown
        return shown

    def _values(self, head: int) -> tuple[Forms, Forms]:
        """The values of all tokens, found once."""
        if head not in self.values:
            known, weight = self.known, self.layer.value[head]
            pairs = ((known.inputs, known.sources), (known.others, NOTHING))
            inputs, others = (mapped(weight, None, x, of, known.arithmetic) for x, of in pairs)
            self.values[head] = inputs, others
        return self.values[head]
