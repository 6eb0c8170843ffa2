"""What is known after Linear, Softmax, Linear: groups of logits are readings, and the second map gives them values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from anchorhead.lemmas import copy, own_logits, scalar_head
from anchorhead.lemmas.group_values import read_taken
from anchorhead.lemmas.known import Known
from anchorhead.lemmas.record import Notes, neurons
from anchorhead.lemmas.scalar_head import Others
from anchorhead.network import Linear, Softmax
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, mapped
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.proof.arithmetic.readings import Readings, Refusal, of_groups
from anchorhead.proof.heads.neurons import Layer
from anchorhead.proof.heads.weight_sums import weight_sums


def after_groups(known: Known, before: Linear, softmax: Softmax, after: Linear) -> Known:
    """Groups of one size, in each token, or made of the whole sequence where the maps mix tokens."""
    sizes = set(softmax.groups)
    if len(sizes) != 1 or before.across != after.across or before.mix is not None or after.mix is not None:
        raise Refusal("groups of a softmax differ in size, or only one of the maps around it mixes tokens")
    if before.across:
        return _across(known, before, sizes.pop(), after)
    count, size = len(softmax.groups), sizes.pop()
    weight = before.weight if before.weight.shape[:-1] == (count, size) else before.on_features()
    weight = weight.reshape(count, size, -1)
    values = after.on_features().astype(np.float64).reshape(after.outputs, count, size)
    groups = _Groups(
        known, weight.astype(np.float64), _bias(before, (count, size)), values, _bias(after, after.outputs)
    )
    tokens = []
    for i in range(len(known.inputs.constant)):
        own = known.inputs.token(i)
        own = own if own.constant.size == weight.shape[2] else own.reshaped(count, weight.shape[2])
        tokens.append(groups.at(own, i))
    others = groups.means(None).alone(0, known.arithmetic)
    return known.after(tokens, others.tokens(np.zeros(len(known.others.constant), int)))


def _across(known: Known, before: Linear, size: int, after: Linear) -> Known:
    """One token after another, as groups that read the whole sequence."""
    count = before.weight.shape[0] * before.weight.shape[1] // size
    outputs = after.weight.shape[:2]
    weight = before.weight.astype(np.float64).reshape(count, size, -1)
    values = after.weight.astype(np.float64).reshape(-1, count, size)
    bias = _bias(before, before.weight.shape[:2]).reshape(count, size)
    groups = _Groups(known, weight, bias, values, _bias(after, outputs).reshape(-1))
    y, exact = groups.at(known.sequence.flat())
    return known.after([(y.reshaped(*outputs), exact)], None)


def shares(forms: Forms, arithmetic: Arithmetic) -> Forms:
    """Of what leaves a softmax: numbers from 0 to 1, up to the rounding of their sum."""
    low = np.zeros(forms.constant.shape)
    most = 1.001 / (1 - float(arithmetic.gamma(np.size(low, 1))))
    return Forms(np.zeros(forms.coefficients.shape), *Forms.between(low, low + most).arrays[1:])


def _bias(layer: Linear, shape: int | tuple[int, ...]) -> np.ndarray:
    if layer.bias is None:
        return np.zeros(shape)
    bias = layer.bias.astype(np.float64)
    return bias.reshape(shape) if bias.size == np.prod(shape) else np.broadcast_to(bias, shape)


@dataclass(frozen=True, eq=False)
class _Groups:
    """weight (groups, size, features) and bias (groups, size) of the logits, values (outputs, groups, size), and what
    is added to the outputs."""

    known: Known
    weight: Float[np.ndarray, "groups size features"]
    bias: Float[np.ndarray, "groups size"]
    values: Float[np.ndarray, "outputs groups size"]
    added: Float[np.ndarray, " outputs"]

    def at(self, x: Forms, token: int = 0) -> tuple[Forms, Sources | None]:
        """One token of outputs, for the features x that all groups read, or (groups, features)."""
        arithmetic = self.known.arithmetic
        try:
            readings = of_groups(self.weight, self.bias, x, arithmetic)
        except Refusal:
            readings = None
        for way in (self._shared, self._own):
            try:
                y, exact, notes = way(readings, x)
            except Refusal:
                continue
            self.known.record.add(token, notes)
            return y, exact
        return self.means(readings).alone(len(self.known.sources.low), arithmetic), None

    def _shared(self, readings: Readings | None, x: Forms) -> tuple[Forms, Sources, Notes]:
        """The logits of a group share one number."""
        claim = self.known.claim(Layer)
        if readings is None:
            raise Refusal("logits share no number")
        first = readings.only(slice(self._asks))
        place = scalar_head.read_places(first, claim)
        query, apart = scalar_head.query_of(first, claim)
        reads, exact = scalar_head.bound(claim, query, self.known.sources, apart)
        notes = neurons(claim, reads, places=place, size=self.weight.shape[1])
        return self._outputs(reads, place, self._sums, exact, readings), exact, notes

    def _own(self, readings: Readings | None, x: Forms) -> tuple[Forms, Sources, Notes]:
        """Each logit is a dot product of its own."""
        claim, arithmetic = self.known.claim(Layer), self.known.arithmetic
        asks, (_, size, width) = self._asks, self.weight.shape
        if len(x.constant) > 1:
            raise Refusal("groups that read features of their own share a number, or are not read")
        rows, bias = self.weight[:asks].reshape(asks * size, width), self.bias[:asks].reshape(-1)
        logits = mapped(rows, bias, x, self.known.sources, arithmetic).reshaped(asks, size)
        query, place, errors = own_logits.read(claim, logits, self.known.sources)
        reads, exact = own_logits.bound(claim, query, errors, self.known.sources, arithmetic)
        sums = [weight_sums(shape, arithmetic, own) for shape, own in zip(claim.shapes, errors, strict=True)]
        notes = neurons(claim, reads, places=place, size=size, own_logits=True)
        return self._outputs(reads, place, sums, exact, readings), exact, notes

    def _outputs(
        self, reads: scalar_head.Reads, place: np.ndarray, sums: list[list[float]], exact: Sources,
        readings: Readings | None,
    ) -> Forms:  # fmt: skip
        claim = self.known.claim(Layer)
        outputs, _, size = self.values.shape
        values = self.values[:, : self._asks].reshape(outputs, claim.neurons, claim.parts, size)
        outside = np.repeat(~reads.inside, claim.parts)
        others = self.means(readings, np.append(outside, np.ones(len(self.bias) - self._asks, bool)))
        return read_taken(claim, values, place, sums, reads.inside).outputs(reads, exact, others, self.known.arithmetic)

    def means(self, readings: Readings | None, which: np.ndarray | None = None) -> Others:
        """What groups add that no neuron explains: copies of a value, or means."""
        others = Others.bias(self.added)
        chosen = np.arange(len(self.bias)) if which is None else np.flatnonzero(which)
        if not len(chosen):
            return others
        if readings is None:
            for group in chosen:
                others = others.with_means(self.values[:, group], self.known.arithmetic)
            return others
        winners, heard = copy.read(readings), readings.heard(chosen, self.known.sources)
        for group in chosen:
            values, winner = self.values[:, group], winners[group]
            if winner is None:
                live = heard[int(readings.kinds[group])]
                others = others.with_means(values[:, live], self.known.arithmetic)
            else:
                others = others.with_copy(values[:, winner])
        return others

    @property
    def _asks(self) -> int:
        """How many groups are neurons: the first."""
        claim = self.known.claim(Layer)
        asks = claim.neurons * claim.parts
        if asks > len(self.bias):
            raise Refusal(f"{len(self.bias)} groups for {claim.neurons} neurons")
        return asks

    @cached_property
    def _sums(self) -> list[list[float]]:
        return [weight_sums(shape, self.known.arithmetic) for shape in self.known.claim(Layer).shapes]
