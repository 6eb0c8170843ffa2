"""Networks of several parts side by side, taken apart again from the stored weights.

Features are blocks, one a part, at every place between layers. A layer belongs to one part: the others' blocks pass
through it as they are, by a skip or a map that is the identity there. A product with 0 is 0, and 0 added to a sum
rounds nothing, so every part computes what it would compute alone, its sums in some order. Registers are shared by all
parts: register i is token i of each. The last map adds up what the parts give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.network import Attention, Embed, Linear, Network


def split_parts(
    network: Network, widths: Sequence[Sequence[int]]
) -> tuple[list[Network], list[Float[np.ndarray, "outputs features"]]]:
    """The parts as networks of their own, and the share of each in the last map.

    widths  for each place between layers, how many features belong to each part
    """
    *layers, last = network.layers[1:]
    blocks = [_slices(row, stream.width) for row, stream in zip(widths, network.streams, strict=False)]
    if len(blocks) != len(layers) + 1 or len({len(row) for row in blocks}) != 1:
        raise _unreadable("the blocks of its parts are not those of its layers")
    if not isinstance(last, Linear) or last.weight.ndim != 2 or last.mix is not None or last.bias is not None:
        raise _unreadable("the last layer does not add up what the parts give")
    chains: list[list[Embed | Attention | Linear]] = [[part] for part in _embedded(network.embed, blocks[0])]
    for layer, before, after in zip(layers, blocks[:-1], blocks[1:], strict=True):
        for part, own in enumerate(_layer(layer, before, after)):
            chains[part] += [] if own is None else [own]
    parts = [Network(chain, network.output, token_axis=network.token_axis) for chain in chains]
    return parts, [last.weight[:, block] for block in blocks[-1]]


def _slices(row: Sequence[int], width: int) -> list[slice]:
    if any(not isinstance(size, int) or size < 1 for size in row) or sum(row) != width:
        raise _unreadable("the blocks of its parts do not fit its features")
    ends = np.cumsum([0, *row]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def _embedded(embed: Embed, blocks: list[slice]) -> list[Embed]:
    if embed.states is not None or embed.source is not None or embed.tokens is None:
        raise _unreadable("its tokens are more than inputs and registers")
    return [
        replace(
            embed,
            weight=embed.weight[..., block, :],
            bias=embed.bias[..., block],
            registers=None if embed.registers is None else embed.registers[:, block],
            features=None,
        )
        for block in blocks
    ]


def _layer(layer: object, before: list[slice], after: list[slice]) -> list[Attention | Linear | None]:
    """What a layer is to each part; None where it leaves the part as it is."""
    if isinstance(layer, Linear) and layer.weight.ndim == 2 and layer.mix is None:
        return _linear(layer, before, after)
    if not isinstance(layer, Attention):
        raise _unreadable(f"a {type(layer).__name__} stands where none does")
    skip = Linear(np.zeros((layer.outputs, layer.width), layer.query.dtype)) if layer.skip is None else layer.skip
    if skip.weight.ndim != 2 or skip.bias is not None:
        raise _unreadable("a skip is no plain map")
    result = _linear(Linear(skip.weight, layer.bias), before, after)
    owners = [part for part, out in enumerate(after) if layer.output[:, out].any()]
    if len(owners) != 1 or any(own is not None for part, own in enumerate(result) if part != owners[0]):
        raise _unreadable("an attention changes more than one part")
    into, out = before[owners[0]], after[owners[0]]
    for name in ("query", "key", "value"):
        _check_zero(getattr(layer, name), 2, into)
    kept = skip.weight[out, into]
    result[owners[0]] = replace(
        layer,
        query=layer.query[:, :, into],
        key=layer.key[:, :, into],
        value=layer.value[:, :, into],
        output=layer.output[:, out],
        bias=None if layer.bias is None else layer.bias[out],
        skip=Linear(kept) if kept.any() else None,
        features=None,
    )
    return result


def _linear(layer: Linear, before: list[slice], after: list[slice]) -> list[Attention | Linear | None]:
    result: list[Attention | Linear | None] = []
    for into, out in zip(before, after, strict=True):
        _check_zero(layer.weight[out], 1, into)
        weight, bias = layer.weight[out, into], None if layer.bias is None else layer.bias[out]
        moved = bias is not None and bias.any()
        same = weight.shape[0] == weight.shape[1] and np.array_equal(weight, np.eye(len(weight))) and not moved
        result.append(None if same else Linear(weight, bias if moved else None))
    return result


def _check_zero(weight: np.ndarray, axis: int, block: slice) -> None:
    """Refuses weights that are not 0 outside a block."""
    outside = np.ones(weight.shape[axis], bool)
    outside[block] = False
    if np.compress(outside, weight, axis=axis).any():
        raise _unreadable("a part reads or writes what belongs to another")


def _unreadable(why: str) -> CertificateError:
    return CertificateError(f"the network is not made of parts side by side as it is built: {why}")
