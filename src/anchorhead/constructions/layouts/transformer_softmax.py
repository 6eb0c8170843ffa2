"""One hidden layer in the transformer's layout as an attention and a softmax: neurons are groups of features.

The attention gathers the sequence, as in transformer_layout, and computes every neuron's query on the way; a Linear map
makes logits of it, a group of anchors for each neuron and part, a Softmax in each token weighs them, and a Linear map
reads the values. What a token gives out may depend on its position: every anchor stands once for every token, and those
of other tokens are out of reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anchorhead.constructions.layouts.draft import Draft
from anchorhead.constructions.layouts.feature_names import Features
from anchorhead.constructions.layouts.laid_out import anchors_of, longest
from anchorhead.constructions.layouts.neurons import Queries
from anchorhead.constructions.layouts.transformer_layout import Transformer
from anchorhead.network import Attention, Linear, Softmax


class SoftmaxTransformer(Transformer):
    """The same layout with neurons that are groups of features."""

    def attention_softmax(self) -> list[Draft]:
        """Embed, Attention that gathers the sequence into pre-activations, Linear, Softmax, Linear."""
        (layer,) = self.laid.layers
        embed, names = self._embed(self._constants(registers=False), centred=True)
        groups = [(r, p) for r in range(layer.neurons) for p in range(layer.parts)]
        size = longest(layer) * self.tokens
        softmax = Draft(Softmax, {"groups": (len(groups) + (self.tokens > 1), size)})
        gather, logits = self._gather_queries(layer, names, groups), self._logits(layer, groups, size)
        return [embed, gather, logits, softmax, self._values(layer, groups, size)]

    def _gather_queries(self, layer: Queries, names: Features, groups: list[tuple[int, int]]) -> Draft:
        """The sequence is gathered straight into every neuron's query, with the position beside it."""
        width = 1 + (self.tokens if self.tokens > 1 else 0)
        blocks = len(groups) + (self.tokens > 1)

        def fill(
            query: np.ndarray,
            key: np.ndarray,
            value: np.ndarray,
            output: np.ndarray,
            bias: np.ndarray,
            skip: np.ndarray | None = None,
        ) -> dict[str, Any]:
            self._gather_keys(names, query, key, value)
            after = Features()
            for r, p in groups:
                after.add(f"query of neuron {r}, part {p}")
                after.add(*(f"not at position {j}, for neuron {r}, part {p}" for j in range(width - 1)))
            if self.tokens > 1:
                after.add("unused", *(f"not at position {j}" for j in range(self.tokens)))
            into = output.reshape(self.tokens, blocks, width, self.inputs)
            weight = layer.weight.reshape(layer.neurons, self.tokens, self.inputs)
            for group, (r, _) in enumerate(groups):
                into[:, group, 0] = weight[r]
                bias[group * width] = layer.bias[r]
            if skip is not None:
                for j in range(self.tokens):
                    skip.reshape(blocks, width, -1)[:, 1 + j, names[f"not at position {j}"]] = 1
            return {"mask": self._mask, "features": tuple(after.names), "labels": self._gathering()}

        shapes = self._gather_shapes(len(names))
        shapes |= {"output": (self.tokens, blocks * width, self.inputs), "bias": (blocks * width,)}
        if self.tokens > 1:
            shapes["skip"] = (blocks * width, len(names))
        return Draft(Attention, shapes, fill)

    def _logits(self, layer: Queries, groups: list[tuple[int, int]], size: int) -> Draft:
        """For every neuron and part a group of logits, an anchor for every token, others out of reach."""
        width = 1 + (self.tokens if self.tokens > 1 else 0)
        blocks = len(groups) + (self.tokens > 1)

        def fill(weight: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
            bias[:] = -self.far
            offset = bias.reshape(blocks, size)
            names = []
            for group, (r, p) in enumerate(groups):
                slopes, offsets, _ = anchors_of(layer.shape(r), p)
                k, j = np.divmod(np.arange(len(slopes) * self.tokens), self.tokens)
                weight[group, : len(k), 0], offset[group, : len(k)] = slopes[k], offsets[k]
                if self.tokens > 1:
                    weight[group, np.arange(len(k)), 1 + j] = 1
                names += [
                    f"anchor {i // self.tokens} of neuron {r}, part {p}, token {i % self.tokens}" for i in range(size)
                ]
            if self.tokens > 1:
                offset[-1, : self.tokens] = 0
                weight[-1, np.arange(self.tokens), 1 + np.arange(self.tokens)] = 1
                names += [f"at position {i}" for i in range(size)]
            return {"features": tuple(names)}

        return Draft(Linear, {"weight": (blocks, size, width), "bias": (blocks * size,)}, fill)

    def _values(self, layer: Queries, groups: list[tuple[int, int]], size: int) -> Draft:
        """What outputs take of every weight; with several tokens, their biases are values of a group of their own."""
        blocks = len(groups) + (self.tokens > 1)

        def fill(weight: np.ndarray, bias: np.ndarray) -> dict[str, Any]:
            into = weight.reshape(self.outputs, blocks, size)
            readout = self.laid.weight.reshape(self.tokens, self.outputs, layer.neurons)
            for group, (r, p) in enumerate(groups):
                part = anchors_of(layer.shape(r), p)
                values = part[2][None, :, None] * readout[:, :, r].T[:, None, :]
                into[:, group, : values[0].size] = values.reshape(self.outputs, -1)
            if self.tokens > 1:
                into[:, -1, : self.tokens] = self.laid.bias.reshape(self.tokens, self.outputs).T
            else:
                bias[:] = self.laid.bias
            return {"features": self._output_names()}

        return Draft(Linear, {"weight": (self.outputs, blocks * size), "bias": (self.outputs,)}, fill)
