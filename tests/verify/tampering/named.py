"""Tamperings that were once accepted, each by its name: what a reader overlooked, or decided without rounding."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from anchorhead.network import Attention, Network
from tests.networks import network


def rebuilt(network: Network, layers: Any, **words: Any) -> Network:
    """The same with other layers; no input is outside."""
    given = {one.name: getattr(network, one.name) for one in fields(Network) if one.init and one.name != "layers"}
    return Network(layers, **{**given, "outside": "ignore", **words})


def another_output(name: str) -> Network:
    """The header says that registers leave the network."""
    found = network(name)
    return rebuilt(found, found.layers, output="register")


def position_drowned(name: str) -> Network:
    """2^50 on two biases of the group that tells the position: float32 no longer tells them apart."""
    found = network(name)
    *before, logits, softmax, last = found.layers
    bias = np.array(logits.bias)
    first = len(bias) - softmax.groups[-1]
    bias[first : first + 2] += 2.0**50
    return rebuilt(found, (*before, replace(logits, bias=bias), softmax, last))


def gather_drowned(name: str) -> Network:
    """2^20 times 2^20 more in all logits of the attention that gathers, from a row that picks a 1 at every token."""
    found = network(name)
    place = next(n for n, layer in enumerate(found.layers) if isinstance(layer, Attention))
    layer, embed = found.layers[place], found.embed
    names = [n for n, text in enumerate(embed.features) if text.startswith("at position")]
    row = np.zeros((1, 1, layer.width), found.dtype)
    row[..., names] = 2.0**20
    wider = {
        name: np.concatenate([array, np.broadcast_to(row, (len(array), 1, layer.width))], axis=1)
        for name, array in (("query", layer.query), ("key", layer.key))
    }
    return rebuilt(found, (*found.layers[:place], replace(layer, **wider), *found.layers[place + 1 :]))


def silence_drowned(name: str) -> Network:
    """2^60 and -2^60 in the logit of a register more, which nothing but a third term silences."""
    found = network(name)
    embed = found.embed
    names = list(embed.features)
    far = -float(embed.bias[0, names.index("not at position 1")])
    row = np.zeros(len(names), found.dtype)
    for n, text in enumerate(names):
        if text.startswith("offset"):
            row[n] = 2.0**60
        elif text.startswith("for token"):
            row[n] = 2.0**60 / far
        elif text.startswith("value"):
            row[n] = 1e4
        elif text == "is an input":
            row[n] = 1.0
    wider = replace(embed, registers=np.concatenate([embed.registers, row[None]]))
    return rebuilt(found, (wider, *found.layers[1:]))


def anchor_hidden(name: str) -> Network:
    """An anchor goes to the input token, which a mask then hides from itself."""
    found = network(name)
    embed, *rest = found.layers
    names = list(embed.features)
    fixed = ~(embed.weight != 0).any(axis=1)
    fixed[names.index("one")] = False
    bias, registers = np.array(embed.bias), np.array(embed.registers)
    bias[fixed] = registers[0, fixed]
    wider = replace(embed, bias=bias, registers=registers[1:])
    masked = [replace(one, mask="registers+states") if isinstance(one, Attention) else one for one in rest]
    return rebuilt(found, (wider, *masked))


def register_dropped(name: str) -> Network:
    """A register before the softmax, and an attention behind it that weighs it like the input token."""
    found = network(name)
    embed, width = found.embed, found.streams[-1].width
    nothing, eye = np.zeros((1, 1, width), found.dtype), np.eye(width, dtype=found.dtype)[None]
    row = np.zeros((1, embed.weight.shape[-2]), found.dtype)
    row[0, embed.features.index("one")] = -1000.0  # the attention that gathers does not see it
    wider = replace(embed, registers=row)
    return rebuilt(found, (wider, *found.layers[1:], Attention(nothing, nothing, eye, eye)))


def query_overflowing(name: str) -> Network:
    """Queries times 2^126 and slopes over it: the same in exact arithmetic, and beyond float32."""
    found = network(name)
    embed, layer = found.layers
    query, key = np.array(layer.query), np.array(layer.key)
    query[:, 0] *= 2.0**126
    key[:, 0] *= 2.0**-126
    return rebuilt(found, (embed, replace(layer, query=query, key=key)))


def scalar_counted_twice(name: str) -> Network:
    """A half less than the head gives: right at twice the scalar, which follows no input here."""
    found = network(name)
    embed, layer = found.layers
    bias = np.zeros(layer.outputs, found.dtype) if layer.bias is None else layer.bias
    return rebuilt(found, (embed, replace(layer, bias=bias - np.array(0.5, found.dtype))))


def keys_rounded(name: str) -> Network:
    """The first token's key is above the second's by more than 1000, as products, but not once float32 rounds them."""
    found = network(name)
    embed, gather, last = found.layers
    feature = next(n for n, text in enumerate(embed.features) if text.startswith("slope along"))
    pair, factor = _alike_once_rounded()
    key, bias = np.array(gather.key), np.array(embed.bias)
    bias[:, feature] = pair
    key[0, 0] = 0.0
    key[0, 0, feature] = factor
    return rebuilt(found, (replace(embed, bias=bias), replace(gather, key=key), last))


def _alike_once_rounded() -> tuple[np.ndarray, np.float32]:
    """Two neighbours and a factor, of float32, whose products are the same there, and 1000 apart in float64."""
    rng = np.random.default_rng(0)
    above = (2.0**40 * rng.uniform(1, 2, 1000)).astype(np.float32)
    below, factor = np.nextafter(above, np.float32(0)), rng.uniform(1, 2, 1000).astype(np.float32)
    place = int(np.flatnonzero(above * factor == below * factor)[0])
    assert float(above[place]) * float(factor[place]) - float(below[place]) * float(factor[place]) > 1000
    return np.array([above[place], below[place]]), factor[place]
