"""Changes of structure: masks, tokens, outputs, skips, biases, heads, layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax

from .tampering_paths import Random, at, entry, large, parts, pick, rebuilt, with_at


def mask(network: Network, rng: Random) -> Network | None:
    path = pick(rng, parts(network, Attention))
    if path is None:
        return None
    other = pick(rng, [None, "causal", "self+registers", "registers+states"])
    layers = with_at(network.layers, (*path, "mask"), other)
    if rng.random() < 0.3:
        return moved_token(rebuilt(network, layers), rng)
    return rebuilt(network, layers)


def moved_token(network: Network, rng: Random) -> Network | None:
    """What a register carries goes to an input token's bias, or the other way round."""
    embed = network.embed
    if embed.registers is None:
        return None
    registers, bias = np.array(embed.registers), np.array(embed.bias)
    row = int(rng.integers(len(registers)))
    token = () if bias.ndim == 1 else int(rng.integers(len(bias)))
    fixed = ~(embed.weight != 0).any(axis=tuple(a for a in range(embed.weight.ndim) if a != embed.weight.ndim - 2))
    some = fixed & (rng.random(len(fixed)) < 0.8)
    registers[row, some], bias[(*np.atleast_1d(token), some) if token != () else some] = (
        bias[token][some],
        registers[row, some].copy(),
    )
    return rebuilt(network, (replace(embed, registers=registers, bias=bias), *network.layers[1:]))


def output(network: Network, rng: Random) -> Network:
    return rebuilt(network, network.layers, output=pick(rng, list(network.streams[-1].kinds)))


def more_tokens(network: Network, rng: Random) -> Network:
    """A register or a state more: a copy, zeros, or another token's constants, perhaps with a large entry."""
    embed = network.embed
    name = str(rng.choice(["registers", "registers", "states"]))
    now = getattr(embed, name)
    width = embed.weight.shape[-2]
    sources = [np.zeros(width), np.reshape(embed.bias, (-1, width))[0]]
    sources += [] if embed.registers is None else [embed.registers[int(rng.integers(len(embed.registers)))]]
    row = np.array(pick(rng, sources), embed.weight.dtype)
    if rng.random() < 0.5:
        row[int(rng.integers(width))] = large(rng)
    rows = row[None] if now is None else np.insert(now, int(rng.integers(len(now) + 1)), row, axis=0)
    return rebuilt(network, _widened(network, replace(embed, **{name: rows})))


def _widened(network: Network, embed: Embed) -> tuple[Any, ...]:
    """The layers after an Embed of one token more: maps across the sequence do not read it."""
    layers, before, now = [embed], network.embed.start(), embed.start()
    for layer in network.layers[1:]:
        if isinstance(layer, Linear) and layer.across and layer.weight.ndim == 4 and now.tokens != before.tokens:
            place = (before.inputs or 0) + (before.registers if now.states > before.states else 0)
            layer = replace(layer, weight=np.insert(layer.weight, place, 0, axis=2))
        before, now = layer_after(network, layer, before), layer.follow(now)
        layers.append(layer)
    return tuple(layers)


def layer_after(network: Network, layer: Any, before: Any) -> Any:
    number = next((n for n, stream in enumerate(network.streams) if stream is before), None)
    return before if number is None or number + 1 >= len(network.streams) else network.streams[number + 1]


def fewer_tokens(network: Network, rng: Random) -> Network | None:
    embed = network.embed
    name = str(rng.choice(["registers", "states"]))
    now = getattr(embed, name)
    if now is None:
        return None
    rows = np.delete(now, int(rng.integers(len(now))), axis=0)
    return rebuilt(network, (replace(embed, **{name: rows if len(rows) else None}), *network.layers[1:]))


def skip(network: Network, rng: Random) -> Network | None:
    path = pick(rng, parts(network, Attention))
    if path is None:
        return None
    layer = at(network.layers, path)
    other = None
    if rng.random() < 0.7:
        weight = np.zeros((layer.outputs, layer.width), layer.query.dtype) if layer.skip is None else layer.skip.weight
        weight = np.array(weight)
        if rng.random() < 0.5:
            weight[entry(weight, rng, False)] += float(rng.choice([1, -1, 0.01]))
        bias = np.zeros(layer.outputs, layer.query.dtype)
        bias[int(rng.integers(len(bias)))] = float(rng.choice([0, 1, 0.01, 1000]))
        other = Linear(weight, bias if rng.random() < 0.5 else None)
    return rebuilt(network, with_at(network.layers, (*path, "skip"), other))


def bias(network: Network, rng: Random) -> Network | None:
    path = pick(rng, [*parts(network, Attention), *parts(network, Linear)])
    if path is None:
        return None
    layer = at(network.layers, path)
    other = None
    if layer.bias is None or rng.random() < 0.5:
        other = np.zeros(layer.outputs, layer.query.dtype if isinstance(layer, Attention) else layer.weight.dtype)
        other[int(rng.integers(len(other)))] = float(rng.choice([0.0, 1.0, -0.01, 1e-6, 2.0**40]))
    return rebuilt(network, with_at(network.layers, (*path, "bias"), other))


def grid(network: Network, rng: Random) -> Network | None:
    path = pick(rng, parts(network, Attention))
    registers = 0 if network.embed.registers is None else len(network.embed.registers)
    if path is None or not registers:
        return None
    now = at(network.layers, (*path, "grid"))
    other = pick(rng, [None, (registers,), (max(1, registers - 1),), (1, registers), (now or (1,))[::-1]])
    return rebuilt(network, with_at(network.layers, (*path, "grid"), other))


def heads(network: Network, rng: Random) -> Network | None:
    """A head dropped, repeated, or in another place."""
    path = pick(rng, parts(network, Attention))
    if path is None:
        return None
    layer = at(network.layers, path)
    order = list(range(layer.heads))
    match int(rng.integers(3)):
        case 0 if len(order) > 1:
            order.pop(int(rng.integers(len(order))))
        case 1:
            order.append(int(rng.integers(len(order))))
        case _:
            rng.shuffle(order)
    names = {name: getattr(layer, name) for name in ("query", "key", "value", "output")}
    some = {name: array[order] if len(array) == layer.heads else array for name, array in names.items()}
    return rebuilt(network, with_at(network.layers, path, replace(layer, **some, labels=None)))


def layers(network: Network, rng: Random) -> Network | None:
    """A layer dropped, repeated, or put in: an identity, a softmax of single features, an attention that copies."""
    now = list(network.layers)
    place = int(rng.integers(1, len(now) + 1))
    stream = network.streams[place - 1]
    dtype = network.dtype
    match int(rng.integers(6)):
        case 0 if len(now) > 1:
            now.pop(max(1, place - 1))
        case 1 if place > 1:
            now.insert(place, now[place - 1])
        case 2:
            now.insert(place, Linear.identity(stream.features, dtype))
        case 3:
            now.insert(place, Softmax((1,) * stream.width))
        case 4:
            now.insert(place, _copier(stream.width, dtype, rng))
        case _:
            inner = now[place - 1]
            if place > 1 and not isinstance(inner, Repeat):
                now[place - 1] = Repeat((inner,), int(rng.integers(1, 3)))
            elif place > 1:
                now[place - 1] = replace(inner, times=max(1, inner.times + int(rng.choice([-1, 1]))))
    return rebuilt(network, now)


def _copier(width: int, dtype: str, rng: Random) -> Attention:
    """Copies whatever token has the largest number in one feature."""
    query, key = np.zeros((2, 1, 1, width), dtype)
    query[0, 0, int(rng.integers(width))], key[0, 0, int(rng.integers(width))] = 1.0, large(rng)
    eye = np.eye(width, dtype=dtype)[None]
    skip = Linear(eye[0]) if rng.random() < 0.5 else None
    return Attention(query, key, eye, eye if skip is None else 0 * eye, skip=skip)


def source(network: Network, rng: Random) -> Network | None:
    embed = network.embed
    if embed.tokens is None:
        return None
    count = len(embed.source) if embed.source is not None else embed.tokens
    return rebuilt(network, (replace(embed, source=rng.integers(embed.tokens, size=count)), *network.layers[1:]))
