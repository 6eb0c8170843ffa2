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
from typing import Any

import numpy as np

from anchorhead.constructions.layouts.draft import Draft
from anchorhead.constructions.layouts.feature_names import HIDDEN, IS_INPUT, ONE, Features, less, scaled
from anchorhead.constructions.layouts.head_labels import argument_beside, in_argument, neuron_labels
from anchorhead.constructions.layouts.laid_out import FAR, LaidOut, anchors_of, length_of
from anchorhead.constructions.layouts.neurons import Queries
from anchorhead.network import Attention, Embed, Linear
from anchorhead.proof.heads.activation_head import ActivationHead


@dataclass(frozen=True, eq=False)
class Transformer(LaidOut):
    """One network in this layout, of `tokens` tokens with `inputs` features each; neurons are heads."""

    causal: bool = False

    def two_layer(self) -> list[Draft]:
        """Embed, Attention that gathers, Linear that centres, Attention that computes, Linear that adds the bias."""
        embed, names = self._embed(self._constants(), centred=False)
        gather, names = self._gather(names, centred=False)
        centre, names = self._centre(names)
        compute, names = self._compute(self.laid.layers[-1], names, last=True)
        return [embed, gather, centre, compute, self._readout(names)]

    def deep(self) -> list[Draft]:
        """Embed, Attention that gathers where there are several tokens, an Attention a layer, Linear."""
        embed, names = self._embed(self._constants(), centred=True)
        layers = [embed]
        if self.tokens > 1:
            gather, names = self._gather(names, centred=True)
            layers.append(gather)
        for number, layer in enumerate(self.laid.layers):
            compute, names = self._compute(layer, names, last=number + 1 == len(self.laid.layers), number=number)
            layers.append(compute)
        return [*layers, self._readout(names)]

    @property
    def _hides(self) -> bool:
        """Whether there are tokens that others must not see."""
        return self.causal and self.tokens > 1

    @property
    def _mask(self) -> str | None:
        return "causal" if self._hides else None

    @cached_property
    def _tables(self) -> list[tuple[ActivationHead, int, bool]]:
        """The columns of anchors that registers hold: a shape, a part of it, and whether it is for the last layer.

        With one token the last layer is like any other.
        """
        tables: list[tuple[ActivationHead, int, bool]] = []
        for number, layer in enumerate(self.laid.layers, start=1):
            last = number == len(self.laid.layers) and self.tokens > 1
            for k in np.unique(layer.which):
                tables += [(layer.shapes[k], p, last) for p in range(layer.parts)]
        return list(dict.fromkeys(tables))

    @cached_property
    def _rows(self) -> int:
        """How many registers there are: an anchor each, in the last layer for every token."""
        need = [length_of(shape, p) * (self.tokens if last else 1) for shape, p, last in self._tables]
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
        if self._hides:
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

    def _embed(self, constants: Features, centred: bool) -> tuple[Draft, Features]:
        names = Features(self._input_names(centred) + constants.names)
        has_registers = IS_INPUT in names.names

        def fill(weight: np.ndarray, bias: np.ndarray, registers: np.ndarray | None = None) -> dict[str, Any]:
            weight[: self.inputs] = np.eye(self.inputs)
            rows = bias.reshape(self.tokens, len(names))
            if centred:
                rows[:, : self.inputs] = -self.laid.middle.reshape(self.tokens, self.inputs)
            rows[:, names[ONE]] = 1
            if has_registers:
                rows[:, names[IS_INPUT]] = 1
            if self.tokens > 1:
                at = [names[f"at position {j}"] for j in range(self.tokens)]
                not_at = [names[f"not at position {j}"] for j in range(self.tokens)]
                rows[:, at] = np.eye(self.tokens)
                rows[:, not_at] = -self.far * (1 - np.eye(self.tokens))
            if registers is not None and has_registers:
                self._anchors(registers, names)
            if registers is not None and self._hides:
                registers[-1, names[HIDDEN]] = 1
            return {"tokens": self.tokens, "features": tuple(names.names)}

        shapes = {"weight": (len(names), self.inputs), "bias": (self.tokens, len(names))[self.tokens == 1 :]}
        count = (self._rows if has_registers else 0) + self._hides
        if count:
            shapes["registers"] = (count, len(names))
        return Draft(Embed, shapes, fill), names

    def _anchors(self, registers: np.ndarray, names: Features) -> None:
        """The columns of anchors, with offsets so low that nothing is seen where none is written; and for which token
        each row is."""
        rows = registers[: self._rows]
        for number, (shape, p, last) in enumerate(self._tables):
            slopes, offsets, values = anchors_of(shape, p)
            first = self._first(number, names)
            registers[:, first + 1] = -self.far
            copies = self.tokens if last else 1
            k = np.repeat(np.arange(len(slopes)), copies)
            rows[: len(k), first], rows[: len(k), first + 1] = slopes[k], offsets[k]
            token = np.tile(np.arange(copies), len(slopes))
            rows[np.arange(len(k)), first + 2 + token] = values[k]
        if self.tokens > 1:
            slots = [names[f"for token {j}"] for j in range(self.tokens)]
            rows[np.arange(len(rows)), np.array(slots)[np.arange(len(rows)) % self.tokens]] = 1

    def _gather_shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        """Queries, keys and values of n heads, of which head j copies the inputs of token j."""
        one = (self.tokens, 1, width)
        return {"query": one, "key": one, "value": (1, self.inputs, width)}

    def _gather_keys(self, names: Features, query: np.ndarray, key: np.ndarray, value: np.ndarray) -> None:
        query[:, 0, names[ONE]] = 1
        for j in range(self.tokens):
            if self.tokens > 1:
                key[j, 0, names[f"at position {j}"]] = 2 * FAR
            elif IS_INPUT in names.names:
                key[j, 0, names[IS_INPUT]] = 2 * FAR
            else:
                key[j, 0, names[ONE]] = 1
            if self._hides:
                key[j, 0, names[HIDDEN]] = FAR
        value[0, :, : self.inputs] = np.eye(self.inputs)

    def _centred_entries(self) -> list[str]:
        return [less(name, middle) for name, middle in zip(self._entries, self.laid.middle.tolist(), strict=True)]

    def _gather(self, names: Features, centred: bool) -> tuple[Draft, Features]:
        """Every token comes to hold the whole sequence; constants pass through the skip."""
        constants = names.names[self.inputs :]
        after = Features((self._centred_entries() if centred else list(self._entries)) + constants)

        def fill(
            query: np.ndarray, key: np.ndarray, value: np.ndarray, output: np.ndarray, skip: np.ndarray
        ) -> dict[str, Any]:
            self._gather_keys(names, query, key, value)
            for j in range(self.tokens):
                output[j, j * self.inputs : (j + 1) * self.inputs] = np.eye(self.inputs)
            _keep(constants, names, after, skip)
            return {"mask": self._mask, "features": tuple(after.names), "labels": self._gathering()}

        shapes = self._gather_shapes(len(names))
        shapes |= {"output": (self.tokens, len(after), self.inputs), "skip": (len(after), len(names))}
        return Draft(Attention, shapes, fill), after

    def _gathering(self) -> tuple[str, ...]:
        return tuple(f"gathers token {j}" for j in range(self.tokens))

    def _centre(self, names: Features) -> tuple[Draft, Features]:
        after = Features(self._centred_entries() + names.names[len(self.laid.middle) :])

        def fill(weight: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
            np.fill_diagonal(weight, 1)
            bias[: len(self.laid.middle)] = -self.laid.middle
            return {"features": tuple(after.names)}

        return Draft(Linear, {"weight": (len(names), len(names)), "bias": (len(names),)}, fill), after

    def _compute(self, layer: Queries, names: Features, last: bool, number: int = 0) -> tuple[Draft, Features]:
        """A head for every neuron and part of layer `number`."""
        gated = last and self.tokens > 1
        parts, count, before = layer.parts, layer.neurons, layer.weight.shape[1]
        if last:
            kept = [f"at position {j}" for j in range(self.tokens)] if self.tokens > 1 else []
            after = Features(list(self._output_names()) + kept)
        else:
            kept = names.names[before:]
            units = zip(layer.scale.tolist(), layer.shift.tolist(), strict=True)
            after = Features([scaled(f"neuron {r}", *unit) for r, unit in enumerate(units)] + kept)
        heads, columns = count * parts, self.tokens if gated else 1
        size = 3 + (self.tokens if gated else 0)
        pairs = [(int(k), p) for k in np.unique(layer.which) for p in range(parts)]

        def fill(
            query: np.ndarray, key: np.ndarray, value: np.ndarray, output: np.ndarray, skip: np.ndarray | None = None
        ) -> dict[str, Any]:
            asks = query.reshape(count, parts, size, len(names))
            asks[:, :, 0, :before] = layer.weight[:, None]
            asks[:, :, 0, names[ONE]] = layer.bias[:, None]
            asks[:, :, 1, names[ONE]] = 1
            asks[:, :, 2, names[ONE]] = -self.far
            for j in range(self.tokens if gated else 0):
                asks[:, :, 3 + j, names[f"not at position {j}"]] = 1
            order = pairs if len(pairs) == 1 else [(int(k), p) for k in layer.which for p in range(parts)]
            columns_of = {(k, p): self._tables.index((layer.shapes[k], p, gated)) for k, p in pairs}
            firsts = np.array([self._first(columns_of[pair], names) for pair in order])
            every = np.arange(len(order))
            key[every, 0, firsts] = key[every, 1, firsts + 1] = key[:, 2, names[IS_INPUT]] = 1
            for j in range(self.tokens if gated else 0):
                key[:, 3 + j, names[f"for token {j}"]] = 1
            for column in range(columns):
                value[every, column, firsts + 2 + column] = 1
            reads = output.reshape(count, parts, len(after), columns)
            if last:
                readout = self.laid.weight.reshape(self.tokens, self.outputs, count).transpose(2, 1, 0)
                reads[:, :, : self.outputs] = readout[:, None]
            else:
                reads[np.arange(count), :, np.arange(count), 0] = 1
            if skip is not None:
                _keep(kept, names, after, skip)
            asked = [f"neuron {r}" for r in range(before)] if number else self._entries
            return {"mask": self._mask, "features": tuple(after.names), "labels": neuron_labels(layer, asked)}

        shared = 1 if len(pairs) == 1 else heads
        shapes: dict[str, tuple[int, ...]] = {
            "query": (heads, size, len(names)),
            "key": (shared, size, len(names)),
            "value": (shared, columns, len(names)),
            "output": (heads, len(after), columns),
        }
        if kept:
            shapes["skip"] = (len(after), len(names))
        return Draft(Attention, shapes, fill), after

    def _first(self, number: int, names: Features) -> int:
        return next(i for i, name in enumerate(names.names) if name.startswith(f"slope of shape {number},"))

    def _readout(self, names: Features) -> Draft:
        """The outputs as they are, and the bias of the token's own position. An affine target of one token has no
        neurons: it is the map itself."""
        own = np.eye(self.outputs) if self.laid.layers else self.laid.weight

        def fill(weight: np.ndarray, bias: np.ndarray | None = None) -> dict[str, Any]:
            weight[:, : own.shape[1]] = own
            if bias is not None:
                bias[:] = self.laid.bias
            else:
                for j in range(self.tokens):
                    weight[:, names[f"at position {j}"]] = self.laid.bias.reshape(self.tokens, self.outputs)[j]
            return {"features": self._output_names()}

        shapes: dict[str, tuple[int, ...]] = {"weight": (self.outputs, len(names))}
        if self.tokens == 1:
            shapes["bias"] = (self.outputs,)
        return Draft(Linear, shapes, fill)


def _keep(kept: list[str], names: Features, after: Features, skip: np.ndarray) -> None:
    """What passes by."""
    skip[[after[name] for name in kept], [names[name] for name in kept]] = 1
