"""One hidden layer in the transformer's layout as an attention and a softmax: neurons are groups of features.

The attention gathers the sequence, as in transformer_layout, and computes every neuron's query on the way; a Linear map
makes logits of it, a group of anchors for each neuron and part, a Softmax in each token weighs them, and a Linear map
reads the values. What a token gives out may depend on its position: every anchor stands once for every token, and those
of other tokens are out of reach.
"""

from __future__ import annotations

import numpy as np

from anchorhead.constructions.layouts.feature_names import Features
from anchorhead.constructions.layouts.laid_out import anchors_of
from anchorhead.constructions.layouts.transformer_layout import Transformer
from anchorhead.constructions.neuron_layers import Neurons
from anchorhead.network import Attention, Linear, Network, Softmax


class SoftmaxTransformer(Transformer):
    """The same layout with neurons that are groups of features."""

    def attention_softmax(self) -> Network:
        """Embed, Attention that gathers the sequence into pre-activations, Linear, Softmax, Linear."""
        (neurons,) = self.laid.neurons
        names = self._constants(registers=False)
        embed, names = self._embed(names, centred=True)
        groups = [(r, p) for r in range(neurons.count) for p in range(neurons.parts)]
        size = max(len(part) for shape in neurons.shapes for part in shape.parts) * self.tokens
        gather = self._gather_queries(neurons, names, groups)
        logits = self._logits(neurons, groups, size)
        weight = np.zeros((self.outputs, len(groups) + (self.tokens > 1), size))
        readout = self.laid.weight.reshape(self.tokens, self.outputs, neurons.count)
        for group, (r, p) in enumerate(groups):
            part = anchors_of(neurons.shapes[neurons.assigned[r]], p)
            values = part[2][None, :, None] * readout[:, :, r].T[:, None, :]
            weight[:, group, : values[0].size] = values.reshape(self.outputs, -1)
        bias = self.laid.bias
        if self.tokens > 1:
            weight[:, -1, : self.tokens] = bias.reshape(self.tokens, self.outputs).T
            bias = np.zeros(self.outputs)
        last = Linear(self._cast(weight.reshape(self.outputs, -1)), self._cast(bias), features=self._output_names())
        return Network([embed, gather, logits, Softmax((size,) * logits.weight.shape[0]), last])

    def _gather_queries(self, neurons: Neurons, names: Features, groups: list[tuple[int, int]]) -> Attention:
        """The sequence is gathered straight into every neuron's query, with the position beside it."""
        width = 1 + (self.tokens if self.tokens > 1 else 0)
        blocks = len(groups) + (self.tokens > 1)
        after = Features()
        for r, p in groups:
            after.add(f"query of neuron {r}, part {p}")
            after.add(*(f"not at position {j}, for neuron {r}, part {p}" for j in range(width - 1)))
        if self.tokens > 1:
            after.add("unused", *(f"not at position {j}" for j in range(self.tokens)))
        output = np.zeros((self.tokens, blocks, width, self.inputs))
        weight = neurons.weight.reshape(neurons.count, self.tokens, self.inputs)
        bias = np.zeros((blocks, width))
        for group, (r, _) in enumerate(groups):
            output[:, group, 0] = weight[r]
            bias[group, 0] = neurons.bias[r]
        skip = np.zeros((blocks, width, len(names)))
        for j in range(width - 1):
            skip[:, 1 + j, names[f"not at position {j}"]] = 1
        query, key, value = self._gather_keys(names)
        return Attention(
            *(self._cast(a) for a in (query, key, value, output.reshape(self.tokens, blocks * width, self.inputs))),
            bias=self._cast(bias.reshape(-1)),
            mask="causal" if self.causal and self.tokens > 1 else None,
            skip=Linear(self._cast(skip.reshape(blocks * width, -1)), features=tuple(after.names))
            if self.tokens > 1
            else None,
            features=tuple(after.names),
            labels=self._gathering(),
        )

    def _logits(self, neurons: Neurons, groups: list[tuple[int, int]], size: int) -> Linear:
        """For every neuron and part a group of logits, an anchor for every token, others out of reach."""
        width = 1 + (self.tokens if self.tokens > 1 else 0)
        blocks = len(groups) + (self.tokens > 1)
        weight, bias = np.zeros((blocks, size, width)), np.full((blocks, size), -self.far)
        names = []
        for group, (r, p) in enumerate(groups):
            slopes, offsets, _ = anchors_of(neurons.shapes[neurons.assigned[r]], p)
            k, j = np.divmod(np.arange(len(slopes) * self.tokens), self.tokens)
            weight[group, : len(k), 0], bias[group, : len(k)] = slopes[k], offsets[k]
            if self.tokens > 1:
                weight[group, np.arange(len(k)), 1 + j] = 1
            names += [
                f"anchor {i // self.tokens} of neuron {r}, part {p}, token {i % self.tokens}" for i in range(size)
            ]
        if self.tokens > 1:
            bias[-1, : self.tokens] = 0
            weight[-1, np.arange(self.tokens), 1 + np.arange(self.tokens)] = 1
            names += [f"at position {i}" for i in range(size)]
        return Linear(self._cast(weight), self._cast(bias.reshape(-1)), features=tuple(names))
