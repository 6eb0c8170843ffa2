"""Layers before their weights exist: the shapes of the arrays that they hold, and what fills these.

A layout says of every layer how large it is. A plan counts that and stops; building has arrays of these shapes made,
filled and cast to the dtype. Nothing else decides how large a network of neurons becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from anchorhead.network import Attention, Embed, Linear, Softmax

Fill = Callable[..., dict[str, Any]]
"""Writes into arrays of zeros, which it gets by name, and says what else the layer is given: features, labels, mask."""


@dataclass(frozen=True, eq=False)
class Draft:
    """A layer that is not made yet.

    shapes  of its arrays, by name; `skip` of an Attention is the weight of a Linear; `groups` of a Softmax are how many
            there are and how large each is, and no array
    """

    kind: type[Embed | Linear | Attention | Softmax]
    shapes: dict[str, tuple[int, ...]]
    fill: Fill = dict

    def made(self, dtype: str) -> Embed | Linear | Attention | Softmax:
        if self.kind is Softmax:
            count, size = self.shapes["groups"]
            return Softmax((size,) * count)
        filled, words = self.filled()
        arrays: dict[str, Any] = {name: array.astype(dtype) for name, array in filled.items()}
        if self.kind is Attention and "skip" in arrays:
            arrays["skip"] = Linear(arrays["skip"], features=words["features"])
        return self.kind(**arrays, **words)

    def filled(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Its arrays in float64, and what else it is given."""
        arrays = {name: np.zeros(shape) for name, shape in self.shapes.items()}
        return arrays, self.fill(**arrays)


@dataclass(frozen=True)
class Count:
    """How large a network is.

    layers         Embed, Linear, Attention and Softmax
    heads          of all attention layers, those that gather the sequence included, and the groups of a Softmax
    keys           over how many tokens, or logits of a group, one softmax runs: anchors times tokens, and inputs
    parameters     the numbers that are stored
    multiply_adds  the products of one input sequence as the module computes them with dense weights: linear maps,
                   queries, keys and values of the input tokens, logits, weighted sums, outputs and skips. Keys and
                   values of registers are the same for every input and are left out
    """

    layers: int
    heads: int
    keys: int
    parameters: int
    multiply_adds: int


def counted(drafts: Sequence[Draft], tokens: int) -> Count:
    """The sizes of a network of so many input tokens."""
    heads = keys = parameters = products = registers = 0
    for draft in drafts:
        shapes = draft.shapes
        sizes = {name: prod(shape) for name, shape in shapes.items()}
        if draft.kind is Softmax:
            heads, keys = heads + shapes["groups"][0], max(keys, shapes["groups"][1])
            continue
        parameters += sum(sizes.values())
        if draft.kind is Attention:
            every, (count, size, _) = tokens + registers, shapes["query"]
            heads, keys = heads + count, max(keys, every)
            products += tokens * (sum(sizes.values()) - sizes.get("bias", 0))
            products += count * tokens * every * (size + shapes["value"][1])
        elif draft.kind is Linear and len(shapes["weight"]) == 4:  # across the sequence
            products, tokens, registers = products + sizes["weight"], shapes["weight"][0], 0
        else:
            products += tokens * sizes["weight"]
            registers = shapes["registers"][0] if "registers" in shapes else registers
    return Count(len(drafts), heads, keys, parameters, products)
