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

import numpy as np

from anchorhead.constructions.layouts.head_labels import ARGUMENTS, in_argument
from anchorhead.constructions.layouts.laid_out import FAR, LaidOut, anchors_of
from anchorhead.constructions.neuron_layers import Neurons
from anchorhead.heads.atom import softmax
from anchorhead.network import Attention, Embed, Linear, Network, Softmax

MAX_DEALT = 20_000_000
"""Entries of a map that deals pre-activations out to tokens."""


@dataclass(frozen=True, eq=False)
class Sequence(LaidOut):
    """One network in this layout, of `tokens` tokens with `inputs` features each."""

    def two_layer(self) -> Network:
        """Embed, Attention that hands on, Linear to neurons, Attention, Linear to outputs."""
        embed, copy = self._copied()
        return Network([embed, copy, *self._attended(self.laid.neurons[0], self.tokens, self.inputs), self._readout()])

    def attention_softmax(self) -> Network:
        """Embed, Attention, Linear to the neurons' logits, Softmax, Linear to outputs.

        The attention computes all pre-activations in every token, and the map deals them out, a neuron a token; where
        that map would be too large, the attention hands the sequence on and the map mixes it into logits at once.
        """
        (neurons,) = self.laid.neurons
        size = max(len(part) for shape in neurons.shapes for part in shape.parts)
        tokens = neurons.count * neurons.parts
        slopes, values, bias = (np.zeros((neurons.count, neurons.parts, size)) for _ in range(3))
        bias[:] = -self.far
        dealt = tokens * size * self.tokens * neurons.count <= MAX_DEALT
        gauge = np.zeros((len(neurons.shapes), neurons.parts))
        if not dealt:
            pairs = [[(*anchors_of(s, p), s.queries) for p in range(neurons.parts)] for s in neurons.shapes]
            gauge = np.array([[best_gauge(*one) for one in row] for row in pairs])
        for r in range(neurons.count):
            for p in range(neurons.parts):
                slope, offset, value = anchors_of(neurons.shapes[neurons.assigned[r]], p)
                slopes[r, p, : len(slope)], values[r, p, : len(slope)] = slope, value
                bias[r, p, : len(slope)] = offset - gauge[neurons.assigned[r], p]
        if dealt:
            embed, first = self._pre_activations(neurons)
            weight = np.zeros((neurons.count, neurons.parts, size, self.tokens, neurons.count))
            r = np.arange(neurons.count)
            weight[r, :, :, 0, r] = slopes
            weight = weight.reshape(tokens, size, self.tokens, neurons.count)
        else:
            embed, first = self._copied()
            bias = np.where(bias > -self.far, bias + slopes * neurons.bias[:, None, None], bias)
            weight = slopes[..., None] * neurons.weight[:, None, None]
            weight = weight.reshape(tokens, size, self.tokens, self.inputs)
        names = tuple(f"anchor {k}" for k in range(size))
        logits = Linear(self._cast(weight), self._cast(bias.reshape(tokens, size)), features=names)
        last = self.laid.weight[:, :, None, None] * values
        last = last.reshape(self.tokens, self.outputs, tokens, size)
        out = Linear(self._cast(last), self._output_bias(), features=self._output_names())
        return Network([embed, first, logits, Softmax((size,)), out])

    def deep(self) -> Network:
        """Embed, and for every layer a Linear to its neurons and an Attention; Linear to outputs."""
        embed = self._embed(positions=False)
        layers: list[Embed | Linear | Attention] = [embed]
        tokens, features = self.tokens, self.inputs
        for neurons in self.laid.neurons:
            layers += self._attended(neurons, tokens, features)
            tokens, features = self._places(neurons), 1
        if not self.laid.neurons:
            weight = self.laid.weight.reshape(self.tokens, self.outputs, self.tokens, self.inputs)
            return Network([embed, Linear(self._cast(weight), self._output_bias(), features=self._output_names())])
        return Network([*layers, self._readout()])

    def _output_bias(self) -> np.ndarray:
        return self._cast(self.laid.bias.reshape(self.tokens, self.outputs))

    def _embed(self, positions: bool) -> Embed:
        """x - middle, and the position as one-hot where tokens are to find themselves."""
        extra = self.tokens if positions else 0
        weight = np.zeros((self.inputs + extra, self.inputs))
        weight[: self.inputs] = np.eye(self.inputs)
        middle = -self.laid.middle.reshape(self.tokens, self.inputs)
        bias = np.concatenate([middle, np.eye(self.tokens)[:, :extra]], axis=1)
        names = self._input_names(centred=True) + [f"at position {j}" for j in range(extra)]
        return Embed(self._cast(weight), self._cast(bias), tokens=self.tokens, features=tuple(names))

    def _copied(self) -> tuple[Embed, Attention]:
        """The sequence, and an attention in which every token reads itself: its own key is 1000 above all others."""
        embed = self._embed(positions=True)
        width = self.inputs + self.tokens
        own = np.eye(width)[None, self.inputs :]
        value = np.eye(width)[None, : self.inputs]
        output = np.eye(self.inputs)[None]
        names = tuple(self._input_names(centred=True))
        query, key, value, output = (self._cast(array) for array in (FAR * own, own, value, output))
        return embed, Attention(query, key, value, output, features=names, labels=("copies the token itself",))

    def _pre_activations(self, neurons: Neurons) -> tuple[Embed, Attention]:
        """Head j copies token j into every token, times the neurons' weights on it: together, all pre-activations."""
        embed = self._embed(positions=True)
        width = self.inputs + self.tokens
        at = np.eye(width)[self.inputs :]
        query = np.broadcast_to(at.sum(axis=0), (self.tokens, 1, width))
        key = FAR * at[:, None]
        value = np.eye(width)[None, : self.inputs]
        output = neurons.weight.reshape(neurons.count, self.tokens, self.inputs).transpose(1, 0, 2)
        names = tuple(f"query of neuron {r}" for r in range(neurons.count))
        query, key, value, output = (self._cast(array) for array in (query, key, value, output))
        labels = tuple(f"token {j}'s share of every neuron's query" for j in range(self.tokens))
        bias = self._cast(neurons.bias)
        return embed, Attention(query, key, value, output, bias=bias, features=names, labels=labels)

    def _rows(self, neurons: Neurons) -> int:
        """How many tokens carry an anchor, one shape after the other."""
        return sum(self._longest(neurons, int(k)) for k in np.unique(neurons.assigned))

    def _longest(self, neurons: Neurons, k: int) -> int:
        return max(len(anchors_of(neurons.shapes[k], p)[0]) for p in range(neurons.parts))

    def _places(self, neurons: Neurons) -> int:
        return max(neurons.count, self._rows(neurons))

    def _attended(self, neurons: Neurons, tokens: int, features: int) -> tuple[Linear, Attention]:
        """The map that makes a token of every neuron, and the attention in which they find their values."""
        places, parts = self._places(neurons), neurons.parts
        kinds = np.unique(neurons.assigned)
        gates = len(kinds) if len(kinds) > 1 else 0
        names = ["query", "one"]
        for p in range(parts):
            names += [f"{what} of part {p}" for what in ("slope", "offset", "value")]
        names += [f"not of shape {s}" for s in range(gates)] + [f"anchor of shape {s}" for s in range(gates)]
        bias = np.zeros((places, len(names)))
        bias[: neurons.count, 0], bias[:, 1] = neurons.bias, 1
        bias[:, [3 + 3 * p for p in range(parts)]] = -self.far
        first = 0
        for s, k in enumerate(kinds):
            for p in range(parts):
                columns = np.stack(anchors_of(neurons.shapes[k], p), axis=1)
                bias[first : first + len(columns), 2 + 3 * p : 5 + 3 * p] = columns
            if gates:
                rows = self._longest(neurons, int(k))
                bias[first : first + rows, 2 + 3 * parts + gates + s] = 1
                bias[: neurons.count, 2 + 3 * parts + s] = np.where(neurons.assigned == k, 0, -self.far)
            first += self._longest(neurons, int(k))
        weight = np.zeros((places, len(names), tokens, features))
        before = neurons.weight.shape[1]
        weight[: neurons.count, 0].reshape(neurons.count, -1)[:, :before] = neurons.weight
        pick = np.eye(len(names))
        query = np.stack([pick[[0, 1, *(2 + 3 * parts + np.arange(gates))]]] * parts)
        key = np.stack(
            [pick[[2 + 3 * p, 3 + 3 * p, *(2 + 3 * parts + gates + np.arange(gates))]] for p in range(parts)]
        )
        value = np.stack([pick[[4 + 3 * p]] for p in range(parts)])
        make = Linear(self._cast(weight), self._cast(bias), features=tuple(names))
        query, key, value, output = (self._cast(array) for array in (query, key, value, np.ones((parts, 1, 1))))
        kind = " or ".join(dict.fromkeys(str(in_argument(neurons.shapes[k].activation, ARGUMENTS[0])) for k in kinds))
        labels = tuple(f"{kind}, as each neuron asks" + (f", part {p}" if parts > 1 else "") for p in range(parts))
        return make, Attention(query, key, value, output, features=("neuron",), labels=labels)

    def _readout(self) -> Linear:
        """The last neurons mixed into every token's outputs."""
        neurons = self.laid.neurons[-1]
        weight = np.zeros((self.tokens * self.outputs, self._places(neurons)))
        weight[:, : neurons.count] = self.laid.weight
        weight = weight.reshape(self.tokens, self.outputs, -1, 1)
        return Linear(self._cast(weight), self._output_bias(), features=self._output_names())


def best_gauge(slopes: np.ndarray, offsets: np.ndarray, values: np.ndarray, queries: tuple[float, float]) -> float:
    """The number that is best taken from all offsets: sums in any order round by their size, most where anchors with
    far values share the weight. It minimises sup_t sum_k w_k |g_k - c| |v_k - r(t)|, over the offsets themselves."""
    t = np.concatenate([np.linspace(*queries, 101), np.geomspace(1e-7, max(map(abs, queries)), 40), [0.0]])
    w = softmax(t[:, None] * slopes + offsets)
    spread = w * np.abs(values - (w @ values)[:, None])
    costs = [float((spread @ np.abs(offsets - c)).max()) for c in offsets]
    return float(offsets[int(np.argmin(costs))])
