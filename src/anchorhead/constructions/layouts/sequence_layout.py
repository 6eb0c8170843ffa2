"""Layers of neurons as the paper has them: neurons are tokens, and linear maps act on the whole sequence.

A map across the sequence makes a token of every neuron, with its query t as a feature; the same tokens carry the
anchors, one each, and one head (for each part of a shape) lets all of them ask at once: the paper's single-head
theorem, with as many queries as neurons. Tokens without an anchor have a key out of reach. Where neurons have several
shapes, a query meets those of its own alone: -M [other shape] is exactly 0 for it. A map across the sequence then mixes
what was read, into the next layer's neurons or into the output.

With two layers of attention for one hidden layer, the first hands the sequence on: every token reads itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.constructions.layouts.draft import Draft
from anchorhead.constructions.layouts.head_labels import ARGUMENTS, in_argument
from anchorhead.constructions.layouts.laid_out import FAR, LaidOut, anchors_of, length_of, longest
from anchorhead.constructions.layouts.neurons import Laid, Queries
from anchorhead.heads.atom import softmax
from anchorhead.network import Attention, Embed, Linear, Softmax

MAX_DEALT = 20_000_000
"""Entries of a map that deals pre-activations out to tokens."""


@dataclass(frozen=True, eq=False)
class Sequence(LaidOut):
    """One network in this layout, of `tokens` tokens with `inputs` features each."""

    def two_layer(self) -> list[Draft]:
        """Embed, Attention that hands on, Linear to neurons, Attention, Linear to outputs."""
        return [*self._copied(), *self._attended(self.laid.layers[0], self.tokens, self.inputs), self._readout()]

    def attention_softmax(self) -> list[Draft]:
        """Embed, Attention, Linear to the neurons' logits, Softmax, Linear to outputs.

        The attention computes all pre-activations in every token, and the map deals them out, a neuron a token; where
        that map would be too large, the attention hands the sequence on and the map mixes it into logits at once.
        """
        (layer,) = self.laid.layers
        size, tokens = longest(layer), layer.neurons * layer.parts
        first = self._pre_activations(layer) if deals(self.laid, self.tokens) else self._copied()

        def fill(weight: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
            bias[:] = self.laid.bias.reshape(bias.shape)
            values = np.zeros((layer.neurons, layer.parts, size))
            for r in range(layer.neurons):
                for p in range(layer.parts):
                    value = anchors_of(layer.shape(r), p)[2]
                    values[r, p, : len(value)] = value
            weight[:] = (self.laid.weight[:, :, None, None] * values).reshape(weight.shape)
            return {"features": self._output_names()}

        shapes = {"weight": (self.tokens, self.outputs, tokens, size), "bias": (self.tokens, self.outputs)}
        softmax = Draft(Softmax, {"groups": (1, size)})
        return [*first, self._logits(layer), softmax, Draft(Linear, shapes, fill)]

    def _logits(self, layer: Queries) -> Draft:
        """Of what is dealt out, the logits of each neuron's anchors; or of the sequence as it is."""
        size, tokens, dealt = longest(layer), layer.neurons * layer.parts, deals(self.laid, self.tokens)

        def fill(weight: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
            offsets = bias.reshape(layer.neurons, layer.parts, size)
            offsets[:] = -self.far
            slopes = np.zeros(offsets.shape)
            gauge = np.zeros((len(layer.shapes), layer.parts))
            if not dealt:
                pairs = [[(*anchors_of(s, p), s.queries) for p in range(layer.parts)] for s in layer.shapes]
                gauge = np.array([[best_gauge(*one) for one in row] for row in pairs])
            for r in range(layer.neurons):
                for p in range(layer.parts):
                    slope, offset, _ = anchors_of(layer.shape(r), p)
                    slopes[r, p, : len(slope)] = slope
                    offsets[r, p, : len(slope)] = offset - gauge[layer.which[r], p]
            if dealt:
                r = np.arange(layer.neurons)
                weight.reshape(layer.neurons, layer.parts, size, self.tokens, -1)[r, :, :, 0, r] = slopes
            else:
                offsets[:] = np.where(offsets > -self.far, offsets + slopes * layer.bias[:, None, None], offsets)
                weight[:] = (slopes[..., None] * layer.weight[:, None, None]).reshape(weight.shape)
            return {"features": tuple(f"anchor {k}" for k in range(size))}

        features = layer.neurons if dealt else self.inputs
        return Draft(Linear, {"weight": (tokens, size, self.tokens, features), "bias": (tokens, size)}, fill)

    def deep(self) -> list[Draft]:
        """Embed, and for every layer a Linear to its neurons and an Attention; Linear to outputs."""
        layers = [self._embed(positions=False)]
        tokens, features = self.tokens, self.inputs
        for layer in self.laid.layers:
            layers += self._attended(layer, tokens, features)
            tokens, features = self._places(layer), 1
        return [*layers, self._readout()]

    def _embed(self, positions: bool) -> Draft:
        """x - middle, and the position as one-hot where tokens are to find themselves."""
        extra = self.tokens if positions else 0

        def fill(weight: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
            weight[: self.inputs] = np.eye(self.inputs)
            bias[:, : self.inputs] = -self.laid.middle.reshape(self.tokens, self.inputs)
            bias[:, self.inputs :] = np.eye(self.tokens)[:, :extra]
            names = self._input_names(centred=True) + [f"at position {j}" for j in range(extra)]
            return {"tokens": self.tokens, "features": tuple(names)}

        width = self.inputs + extra
        return Draft(Embed, {"weight": (width, self.inputs), "bias": (self.tokens, width)}, fill)

    def _copied(self) -> tuple[Draft, Draft]:
        """The sequence, and an attention in which every token reads itself: its own key is 1000 above all others."""
        width = self.inputs + self.tokens

        def fill(query: np.ndarray, key: np.ndarray, value: np.ndarray, output: np.ndarray) -> dict[str, Any]:
            key[0] = np.eye(width)[self.inputs :]
            query[0] = FAR * key[0]
            value[0] = np.eye(width)[: self.inputs]
            output[0] = np.eye(self.inputs)
            return {"features": tuple(self._input_names(centred=True)), "labels": ("copies the token itself",)}

        own = (1, self.tokens, width)
        shapes = {"query": own, "key": own, "value": (1, self.inputs, width), "output": (1, self.inputs, self.inputs)}
        return self._embed(positions=True), Draft(Attention, shapes, fill)

    def _pre_activations(self, layer: Queries) -> tuple[Draft, Draft]:
        """Head j copies token j into every token, times the neurons' weights on it: together, all pre-activations."""
        width = self.inputs + self.tokens

        def fill(
            query: np.ndarray, key: np.ndarray, value: np.ndarray, output: np.ndarray, bias: np.ndarray
        ) -> dict[str, Any]:
            at = np.eye(width)[self.inputs :]
            query[:, 0] = at.sum(axis=0)
            key[:, 0] = FAR * at
            value[0] = np.eye(width)[: self.inputs]
            output[:] = layer.weight.reshape(layer.neurons, self.tokens, self.inputs).transpose(1, 0, 2)
            bias[:] = layer.bias
            labels = tuple(f"token {j}'s share of every neuron's query" for j in range(self.tokens))
            return {"features": tuple(f"query of neuron {r}" for r in range(layer.neurons)), "labels": labels}

        one = (self.tokens, 1, width)
        shapes = {"query": one, "key": one, "value": (1, self.inputs, width)}
        shapes |= {"output": (self.tokens, layer.neurons, self.inputs), "bias": (layer.neurons,)}
        return self._embed(positions=True), Draft(Attention, shapes, fill)

    def _longest(self, layer: Queries, k: int) -> int:
        return max(length_of(layer.shapes[k], p) for p in range(layer.parts))

    def _places(self, layer: Queries) -> int:
        """Tokens: as many as neurons, or as anchors, one shape after the other."""
        return max(layer.neurons, sum(self._longest(layer, int(k)) for k in np.unique(layer.which)))

    def _attended(self, layer: Queries, tokens: int, features: int) -> tuple[Draft, Draft]:
        """The map that makes a token of every neuron, and the attention in which they find their values."""
        places, parts = self._places(layer), layer.parts
        kinds = np.unique(layer.which)
        gates = len(kinds) if len(kinds) > 1 else 0
        names = ["query", "one"]
        for p in range(parts):
            names += [f"{what} of part {p}" for what in ("slope", "offset", "value")]
        names += [f"not of shape {s}" for s in range(gates)] + [f"anchor of shape {s}" for s in range(gates)]

        def fill(weight: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
            bias[: layer.neurons, 0], bias[:, 1] = layer.bias, 1
            bias[:, [3 + 3 * p for p in range(parts)]] = -self.far
            first = 0
            for s, k in enumerate(kinds):
                for p in range(parts):
                    columns = np.stack(anchors_of(layer.shapes[k], p), axis=1)
                    bias[first : first + len(columns), 2 + 3 * p : 5 + 3 * p] = columns
                if gates:
                    rows = self._longest(layer, int(k))
                    bias[first : first + rows, 2 + 3 * parts + gates + s] = 1
                    bias[: layer.neurons, 2 + 3 * parts + s] = np.where(layer.which == k, 0, -self.far)
                first += self._longest(layer, int(k))
            before = layer.weight.shape[1]
            weight[: layer.neurons, 0].reshape(layer.neurons, -1)[:, :before] = layer.weight
            return {"features": tuple(names)}

        def look(query: np.ndarray, key: np.ndarray, value: np.ndarray, output: np.ndarray) -> dict[str, Any]:
            pick = np.eye(len(names))
            query[:] = pick[[0, 1, *(2 + 3 * parts + np.arange(gates))]]
            for p in range(parts):
                key[p] = pick[[2 + 3 * p, 3 + 3 * p, *(2 + 3 * parts + gates + np.arange(gates))]]
                value[p] = pick[[4 + 3 * p]]
            output[:] = 1
            functions = (str(in_argument(layer.shapes[k].activation, ARGUMENTS[0])) for k in kinds)
            kind = " or ".join(dict.fromkeys(functions))
            labels = tuple(f"{kind}, as each neuron asks" + (f", part {p}" if parts > 1 else "") for p in range(parts))
            return {"features": ("neuron",), "labels": labels}

        make = {"weight": (places, len(names), tokens, features), "bias": (places, len(names))}
        asks = (parts, 2 + gates, len(names))
        find = {"query": asks, "key": asks, "value": (parts, 1, len(names)), "output": (parts, 1, 1)}
        return Draft(Linear, make, fill), Draft(Attention, find, look)

    def _readout(self) -> Draft:
        """The last neurons, or inputs where there are none, mixed into every token's outputs."""
        layer = self.laid.layers[-1] if self.laid.layers else None
        tokens, features = (self.tokens, self.inputs) if layer is None else (self._places(layer), 1)

        def fill(weight: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
            own = self.laid.weight
            weight.reshape(len(own), -1)[:, : own.shape[1]] = own
            bias[:] = self.laid.bias.reshape(bias.shape)
            return {"features": self._output_names()}

        shapes = {"weight": (self.tokens, self.outputs, tokens, features), "bias": (self.tokens, self.outputs)}
        return Draft(Linear, shapes, fill)


def deals(laid: Laid, tokens: int) -> bool:
    """Whether the attention-softmax form deals pre-activations out, or mixes logits at once."""
    (layer,) = laid.layers
    return layer.neurons * layer.parts * longest(layer) * tokens * layer.neurons <= MAX_DEALT


def best_gauge(slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, queries: tuple[float, float]) -> float:
    """The number that is best taken from all offsets: sums in any order round by their size, most where anchors with
    far values share the weight. It minimises sup_t sum_k w_k |g_k - c| |v_k - r(t)|, over the offsets themselves."""
    t = np.concatenate([np.linspace(*queries, 101), np.geomspace(1e-7, max(map(abs, queries)), 40), [0.0]])
    w = softmax(t[:, None] * slopes + offsets)
    spread = w * np.abs(values - (w @ values)[:, None])
    costs = [float((spread @ np.abs(offsets - c)).max()) for c in offsets]
    return float(offsets[int(np.argmin(costs))])
