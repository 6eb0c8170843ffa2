"""Networks side by side in one: their features are blocks, their layers come one after the other, their outputs add up.

While the layers of one part work, the blocks of the others pass by, through a skip or a map that is the identity there.
Registers are shared: register i is token i of every part, and an attention over a grid sees the first so many. What
this computes, part by part, is what each part computes alone: a product with 0 is 0, and 0 added to a sum rounds
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from anchorhead.network import Attention, Embed, Linear, Network


@dataclass(frozen=True, eq=False)
class Part:
    """A network that takes some of the inputs of a token, and the outputs to which its features are added.

    entries  which inputs of a token it takes
    sums     (outputs, features): 1 where a feature is added to an output
    """

    name: str
    network: Network
    entries: tuple[int, ...]
    sums: Float[np.ndarray, "outputs features"]


def side_by_side(parts: Sequence[Part], inputs: int) -> tuple[Network, list[list[int]]]:
    """The network of all parts, and how many features each part has at every place between layers."""
    first = parts[0].network
    names = [[f"{part.name}: {name}" for name in part.network.embed.features or ()] for part in parts]
    layers: list[Embed | Attention | Linear] = [_embed([part.network.embed for part in parts], parts, names, inputs)]
    widths = [[len(own) for own in names]]
    for number, part in enumerate(parts):
        for layer in part.network.layers[1:]:
            if not isinstance(layer, Attention | Linear):
                raise TypeError(f"a {type(layer).__name__} in a part")
            start = sum(map(len, names[:number]))
            rest = sum(map(len, names)) - start - len(names[number])
            names[number] = [f"{part.name}: {name}" for name in layer.features or ()]
            every = tuple(name for own in names for name in own)
            layers.append(_among(layer, start, rest, part.name, every))
            widths.append([len(own) for own in names])
    total = np.concatenate([part.sums for part in parts], axis=1).astype(first.dtype)
    outputs = tuple(f"output {o}" for o in range(len(total))) if len(total) > 1 else ("output",)
    layers.append(Linear(total, features=outputs))
    return Network(layers, first.output, token_axis=first.token_axis), widths


def _embed(embeds: Sequence[Embed], parts: Sequence[Part], names: list[list[str]], inputs: int) -> Embed:
    """All features of all parts; a part has zeros at registers beyond its own."""
    tokens, dtype = embeds[0].tokens or 1, embeds[0].weight.dtype
    widths = [len(own) for own in names]
    count = max(0 if embed.registers is None else len(embed.registers) for embed in embeds)
    weight, bias = np.zeros((sum(widths), inputs), dtype), np.zeros((tokens, sum(widths)), dtype)
    registers = np.zeros((count, sum(widths)), dtype)
    for number, (embed, part) in enumerate(zip(embeds, parts, strict=True)):
        block = slice(sum(widths[:number]), sum(widths[: number + 1]))
        weight[block, list(part.entries)] = embed.weight
        bias[:, block] = embed.bias
        if embed.registers is not None:
            registers[: len(embed.registers), block] = embed.registers
    every = tuple(name for own in names for name in own)
    given = bias if tokens > 1 else bias[0]
    return Embed(weight, given, registers=registers if count else None, tokens=tokens, features=every)


def _among(layer: Attention | Linear, start: int, rest: int, part: str, names: tuple[str, ...]) -> Attention | Linear:
    """The layer with `start` features before its own, and `rest` after, that pass by."""
    if isinstance(layer, Linear):
        bias = None if layer.bias is None else np.pad(layer.bias, (start, rest))
        return Linear(_beside(layer.on_features(), start, rest), bias, features=names)
    own = np.zeros((layer.outputs, layer.width), layer.query.dtype) if layer.skip is None else layer.skip.on_features()
    across = ((0, 0), (0, 0), (start, rest))
    return replace(
        layer,
        query=np.pad(layer.query, across),
        key=np.pad(layer.key, across),
        value=np.pad(layer.value, across),
        output=np.pad(layer.output, ((0, 0), (start, rest), (0, 0))),
        bias=None if layer.bias is None else np.pad(layer.bias, (start, rest)),
        skip=Linear(_beside(own, start, rest), features=names),
        features=names,
        labels=tuple(f"{part}: {label}" for label in layer.labels or ()),
    )


def _beside(own: np.ndarray, start: int, rest: int) -> np.ndarray:
    """The map on its own block, and the identity on those before and after."""
    result = np.zeros((start + own.shape[0] + rest, start + own.shape[1] + rest), own.dtype)
    result[:start, :start] = np.eye(start)
    result[start : start + own.shape[0], start : start + own.shape[1]] = own
    result[start + own.shape[0] :, start + own.shape[1] :] = np.eye(rest)
    return result
