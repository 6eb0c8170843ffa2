"""Layers of neurons as a transformer would hold them: linear maps act on a token alone, neurons are heads.

The sequence is gathered first: n heads, head j asking with 1 for the key 2000 [position = j], copy token j into every
token. Then every neuron is a head (one for each part of its shape) whose query is (t, 1, -M) against the keys
(slope, offset, [is an input]) of register tokens that carry the anchors; M is so large that an input's key is never
seen, and its logit never meets those of the anchors in one sum. What a token gives out may depend on its position: the
last layer's registers carry every anchor once for every token j, with value v_k in column j, and a query adds
-M [position != j], which is exactly 0 for its own. With a causal mask, tokens that cannot be seen are replaced by a
register of zeros, whose key of 1000 wins where the sought one is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorhead.constructions.layouts.feature_names import HIDDEN, IS_INPUT, ONE, Features, less, scaled
from anchorhead.constructions.layouts.head_labels import argument_beside, in_argument, neuron_labels
from anchorhead.constructions.layouts.laid_out import FAR, LaidOut, anchors_of
from anchorhead.constructions.neuron_layers import Neurons
from anchorhead.network import Attention, Embed, Linear, Network
from anchorhead.proof.heads.activation_head import ActivationHead


@dataclass(frozen=True, eq=False)
class Transformer(LaidOut):
    """One network in this layout, of `tokens` tokens with `inputs` features each; neurons are heads."""

    causal: bool = False

    def two_layer(self) -> Network:
        """Embed, Attention that gathers, Linear that centres, Attention that computes, Linear that adds the bias."""
        names = self._constants()
        embed, kept = self._embed(names, centred=False)
        gather, names = self._gather(kept, centred=False)
        middle = np.zeros(len(names))
        middle[: len(self.laid.middle)] = -self.laid.middle
        names = Features(self._centred_entries() + names.names[len(self.laid.middle) :])
        centre = Linear(self._cast(np.eye(len(names))), self._cast(middle), features=tuple(names.names))
        compute, names = self._compute(self.laid.neurons[-1], names, last=True)
        return Network([embed, gather, centre, compute, self._readout(names)])

    def deep(self) -> Network:
        """Embed, Attention that gathers where there are several tokens, an Attention a layer, Linear."""
        names = self._constants()
        embed, names = self._embed(names, centred=True)
        layers: list[Embed | Attention | Linear] = [embed]
        if self.tokens > 1:
            gather, names = self._gather(names, centred=True)
            layers.append(gather)
        for number, neurons in enumerate(self.laid.neurons):
            compute, names = self._compute(neurons, names, last=number + 1 == len(self.laid.neurons), number=number)
            layers.append(compute)
        last = self._readout(names) if self.laid.neurons else self._affine_readout(names)
        return Network([*layers, last])

    @cached_property
    def _tables(self) -> list[tuple[ActivationHead, int, bool]]:
        """The columns of anchors that registers hold: a shape, a part of it, and whether it is for the last layer.

        With one token the last layer is like any other.
        """
        tables: list[tuple[ActivationHead, int, bool]] = []
        for number, neurons in enumerate(self.laid.neurons, start=1):
            last = number == len(self.laid.neurons) and self.tokens > 1
            for k in np.unique(neurons.assigned):
                tables += [(neurons.shapes[k], p, last) for p in range(neurons.parts)]
        return list(dict.fromkeys(tables))

    @cached_property
    def _rows(self) -> int:
        """How many registers there are: an anchor each, in the last layer for every token."""
        need = [len(anchors_of(shape, p)[0]) * (self.tokens if last else 1) for shape, p, last in self._tables]
        return max(need, default=0)

    def _constants(self, registers: bool = True) -> Features:
        """The features that hold no input: 1, the position, and what registers carry."""
        names = Features()
        names.add(ONE)
        if registers:
            names.add(IS_INPUT)
        if self.tokens > 1:
            names.add(*(f"at position {j}" for j in range(self.tokens)))
            names.add(*(f"not at position {j}" for j in range(self.tokens)))
        if self.causal and self.tokens > 1:
            names.add(HIDDEN)
        if registers:
            argument = argument_beside(self._entries)
            for number, (shape, _, last) in enumerate(self._tables):
                label = f" of shape {number}, {in_argument(shape.activation, argument)}"
                names.add(f"slope{label}", f"offset{label}")
                names.add(*(f"value for token {j}{label}" for j in range(self.tokens)) if last else [f"value{label}"])
            if self.tokens > 1:
                names.add(*(f"for token {j}" for j in range(self.tokens)))
        return names

    def _embed(self, constants: Features, centred: bool) -> tuple[Embed, Features]:
        names = Features(self._input_names(centred) + constants.names)
        weight = np.zeros((len(names), self.inputs))
        weight[: self.inputs] = np.eye(self.inputs)
        bias = np.zeros((self.tokens, len(names)))
        if centred:
            bias[:, : self.inputs] = -self.laid.middle.reshape(self.tokens, self.inputs)
        bias[:, names[ONE]] = 1
        has_registers = IS_INPUT in names.names
        if has_registers:
            bias[:, names[IS_INPUT]] = 1
        if self.tokens > 1:
            at = [names[f"at position {j}"] for j in range(self.tokens)]
            not_at = [names[f"not at position {j}"] for j in range(self.tokens)]
            bias[:, at] = np.eye(self.tokens)
            bias[:, not_at] = -self.far * (1 - np.eye(self.tokens))
        registers = self._registers(names) if has_registers else np.zeros((0, len(names)))
        if self.causal and self.tokens > 1:
            nothing = np.zeros((1, len(names)))
            nothing[0, names[HIDDEN]] = 1
            if has_registers:
                self._silence(nothing, names)
            registers = np.concatenate([registers, nothing])
        embed = Embed(
            self._cast(weight),
            self._cast(bias if self.tokens > 1 else bias[0]),
            registers=self._cast(registers) if len(registers) else None,
            tokens=self.tokens,
            features=tuple(names.names),
        )
        return embed, names

    def _registers(self, names: Features) -> np.ndarray:
        rows = np.zeros((self._rows, len(names)))
        self._silence(rows, names)
        place = 0
        for number, (shape, p, last) in enumerate(self._tables):
            slopes, offsets, values = anchors_of(shape, p)
            first = next(i for i, name in enumerate(names.names) if name.startswith(f"slope of shape {number},"))
            copies = self.tokens if last else 1
            k = np.repeat(np.arange(len(slopes)), copies)
            rows[: len(k), first], rows[: len(k), first + 1] = slopes[k], offsets[k]
            token = np.tile(np.arange(copies), len(slopes))
            rows[np.arange(len(k)), first + 2 + token] = values[k]
            place = max(place, len(k))
        if self.tokens > 1:
            slots = [names[f"for token {j}"] for j in range(self.tokens)]
            rows[np.arange(len(rows)), np.array(slots)[np.arange(len(rows)) % self.tokens]] = 1
        return rows

    def _silence(self, rows: np.ndarray, names: Features) -> None:
        """Offsets so low that an anchor is not seen, until one is written there."""
        for i, name in enumerate(names.names):
            if name.startswith("offset of shape "):
                rows[:, i] = -self.far

    def _gather_keys(self, names: Features) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Queries, keys and values of n heads, of which head j copies the inputs of token j."""
        query, key = np.zeros((self.tokens, 1, len(names))), np.zeros((self.tokens, 1, len(names)))
        query[:, 0, names[ONE]] = 1
        for j in range(self.tokens):
            key[j, 0, names[f"at position {j}"] if self.tokens > 1 else names[ONE]] = 2 * FAR if self.tokens > 1 else 1
            if self.causal and self.tokens > 1:
                key[j, 0, names[HIDDEN]] = FAR
            if self.tokens == 1 and IS_INPUT in names.names:
                key[j, 0, names[ONE]], key[j, 0, names[IS_INPUT]] = 0, 2 * FAR
        value = np.zeros((1, self.inputs, len(names)))
        value[0, :, : self.inputs] = np.eye(self.inputs)
        return query, key, value

    def _centred_entries(self) -> list[str]:
        return [less(name, middle) for name, middle in zip(self._entries, self.laid.middle.tolist(), strict=True)]

    def _gather(self, names: Features, centred: bool) -> tuple[Attention, Features]:
        """Every token comes to hold the whole sequence; constants pass through the skip."""
        constants = names.names[self.inputs :]
        after = Features((self._centred_entries() if centred else list(self._entries)) + constants)
        output = np.zeros((self.tokens, len(after), self.inputs))
        for j in range(self.tokens):
            output[j, j * self.inputs : (j + 1) * self.inputs] = np.eye(self.inputs)
        labels = self._gathering()
        keys = self._gather_keys(names)
        return self._attention(*keys, output, names, after, constants, labels, causal=self.causal), after

    def _gathering(self) -> tuple[str, ...]:
        return tuple(f"gathers token {j}" for j in range(self.tokens))

    def _attention(
        self,
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        output: np.ndarray,
        names: Features,
        after: Features,
        kept: list[str],
        labels: tuple[str, ...],
        causal: bool,
    ) -> Attention:
        skip = None
        if kept:
            weight = np.zeros((len(after), len(names)))
            weight[[after[name] for name in kept], [names[name] for name in kept]] = 1
            skip = Linear(self._cast(weight), features=tuple(after.names))
        return Attention(
            *(self._cast(array) for array in (query, key, value, output)),
            mask="causal" if causal and self.tokens > 1 else None,
            skip=skip,
            features=tuple(after.names),
            labels=labels,
        )

    def _compute(self, neurons: Neurons, names: Features, last: bool, number: int = 0) -> tuple[Attention, Features]:
        """A head for every neuron and part of layer `number`."""
        gated = last and self.tokens > 1
        parts, count, before = neurons.parts, neurons.count, neurons.weight.shape[1]
        size = 3 + (self.tokens if gated else 0)
        query = np.zeros((count, parts, size, len(names)))
        query[:, :, 0, :before] = neurons.weight[:, None]
        query[:, :, 0, names[ONE]] = neurons.bias[:, None]
        query[:, :, 1, names[ONE]] = 1
        query[:, :, 2, names[ONE]] = -self.far
        for j in range(self.tokens if gated else 0):
            query[:, :, 3 + j, names[f"not at position {j}"]] = 1
        tables = {(k, p): self._tables.index((neurons.shapes[k], p, gated)) for k, p in self._pairs(neurons)}
        keys = {pair: self._table_key(number, names, size, gated) for pair, number in tables.items()}
        values = {pair: self._table_value(number, names, gated) for pair, number in tables.items()}
        if len(keys) == 1:
            key, value = (np.stack(list(found.values())) for found in (keys, values))
        else:
            order = [(int(neurons.assigned[r]), p) for r in range(count) for p in range(parts)]
            key, value = (np.stack([found[pair] for pair in order]) for found in (keys, values))
        if last:
            kept = [f"at position {j}" for j in range(self.tokens)] if self.tokens > 1 else []
            after = Features(list(self._output_names()) + kept)
            readout = self.laid.weight.reshape(self.tokens, self.outputs, count).transpose(2, 1, 0)
            output = np.zeros((count, parts, len(after), self.tokens))
            output[:, :, : self.outputs] = readout[:, None]
        else:
            kept = names.names[before:]
            units = zip(neurons.scale.tolist(), neurons.shift.tolist(), strict=True)
            after = Features([scaled(f"neuron {r}", *unit) for r, unit in enumerate(units)] + kept)
            output = np.zeros((count, parts, len(after), 1))
            output[np.arange(count), :, np.arange(count), 0] = 1
        heads = count * parts
        attention = self._attention(
            query.reshape(heads, size, -1), key, value, output.reshape(heads, len(after), -1), names, after, kept,
            neuron_labels(neurons, [f"neuron {r}" for r in range(before)] if number else self._entries),
            causal=self.causal,
        )  # fmt: skip
        return attention, after

    def _pairs(self, neurons: Neurons) -> list[tuple[int, int]]:
        return [(int(k), p) for k in np.unique(neurons.assigned) for p in range(neurons.parts)]

    def _table_key(self, number: int, names: Features, size: int, gated: bool) -> np.ndarray:
        key = np.zeros((size, len(names)))
        first = self._first(number, names)
        key[0, first] = key[1, first + 1] = key[2, names[IS_INPUT]] = 1
        for j in range(self.tokens if gated else 0):
            key[3 + j, names[f"for token {j}"]] = 1
        return key

    def _table_value(self, number: int, names: Features, gated: bool) -> np.ndarray:
        columns = self.tokens if gated else 1
        value = np.zeros((columns, len(names)))
        value[np.arange(columns), self._first(number, names) + 2 + np.arange(columns)] = 1
        return value

    def _first(self, number: int, names: Features) -> int:
        return next(i for i, name in enumerate(names.names) if name.startswith(f"slope of shape {number},"))

    def _readout(self, names: Features) -> Linear:
        """The outputs as they are, and the bias of the token's own position."""
        weight = np.zeros((self.outputs, len(names)))
        weight[:, : self.outputs] = np.eye(self.outputs)
        if self.tokens == 1:
            return Linear(self._cast(weight), self._cast(self.laid.bias), features=self._output_names())
        for j in range(self.tokens):
            weight[:, names[f"at position {j}"]] = self.laid.bias.reshape(self.tokens, self.outputs)[j]
        return Linear(self._cast(weight), features=self._output_names())

    def _affine_readout(self, names: Features) -> Linear:
        """An affine target of one token: nothing but the map itself."""
        weight = np.zeros((self.outputs, len(names)))
        weight[:, : len(self.laid.middle)] = self.laid.weight
        return Linear(self._cast(weight), self._cast(self.laid.bias), features=self._output_names())
