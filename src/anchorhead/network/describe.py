"""A network in words: sizes, largest numbers, and what each feature of a token means."""

from __future__ import annotations

import textwrap
from math import prod
from typing import Any

import numpy as np

from anchorhead.decimals import counted
from anchorhead.network.attention import Attention
from anchorhead.network.chain import Placed, placed, weights
from anchorhead.network.embed import Embed
from anchorhead.network.linear import Linear
from anchorhead.network.magnitude import sizes
from anchorhead.network.network import Network
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax

COLUMNS = 100
MAX_FEATURES = 40
MAX_HEADS = 24


def describe(network: Network) -> str:
    """Several lines of plain text of at most 100 columns."""
    layers = network.layers
    outputs = network.streams[-1].count()[network.output]
    largest = max(float(np.abs(array).max(initial=0)) for array in weights(layers))
    head = [
        f"Network of {counted(len(layers), 'layer')}, {network.parameters:,} parameters, {network.dtype}",
        f"  takes       {_shape(network, network.embed.tokens or 'tokens', network.embed.inputs)}",
        f"  gives       {_shape(network, outputs or 'tokens', network.streams[-1].width)}, the {network.output} tokens",
        f"  weights     largest {largest:.3g}",
    ]
    if network.certificate is not None:
        box = network.certificate.on
        shape = np.broadcast_shapes(box.low.shape, (1, network.embed.inputs))
        bound = sizes(layers, np.broadcast_to(box.magnitude, shape))
        head.append(f"  logits      at most {bound.logit:.3g} on {box}")
    body = [f"{'  ' * len(one.repeats)}{line}" for one in placed(layers) for line in _layer(one)]
    tail = []
    if network.certificate is not None:
        tail = ["Certificate", *(f"  {line}" for line in str(network.certificate).splitlines())]
    return "\n".join(line for long in [*head, *body, *tail] for line in _wrapped(long))


def labels(network: Network) -> list[dict[str, Any]]:
    """For every layer its kind, how many tokens of each kind leave it, and what its heads and their features mean.

    The layers of a Repeat are listed once, with how often they are run.
    """
    return [_labelled(one) for one in placed(network.layers) if not isinstance(one.layer, Repeat)]


def _labelled(one: Placed) -> dict[str, Any]:
    layer, leaves = one.layer, one.leaves
    tokens = {"inputs": leaves.inputs, "registers": leaves.registers, "states": leaves.states}
    heads = {"heads": list(layer.labels or ())} if isinstance(layer, Attention) else {}
    times = {"times": prod(times for _, times in one.repeats)} if one.repeats else {}
    return {"layer": type(layer).__name__, **tokens, **heads, "features": list(leaves.features), **times}


def _shape(network: Network, tokens: Any, features: int) -> str:
    return f"(..., {tokens}, {features})" if network.token_axis else f"(..., {features})"


def _layer(one: Placed) -> list[str]:
    number, layer, leaves = one.number, one.layer, one.leaves
    features = _features(leaves.features)
    match layer:
        case Repeat():
            return [f"{number}. Repeat {counted(layer.times, 'time')}:"]
        case Embed():
            own = "weights of its own at each position" if layer.weight.ndim == 3 else "one map"
            return [f"{number}. Embed: {own}; leaves {leaves}", *features]
        case Linear():
            where = "across tokens" if layer.across else "on each token"
            return [f"{number}. Linear {where}: {layer.inputs} -> {counted(layer.outputs, 'feature')}", *features]
        case Attention():
            heads = _heads(layer.labels or ())
            return [f"{number}. Attention: {_attention(layer, leaves.tokens)}", *heads, *features]
        case Softmax():
            groups = counted(len(layer.groups), "group")
            return [f"{number}. Softmax within a token: {groups} of {_sizes(layer.groups)}"]
    return []


def _attention(layer: Attention, tokens: int | None) -> str:
    text = counted(layer.heads, "head")
    tokens = tokens if layer.grid is None else layer.points
    text += "" if tokens is None else f" over {counted(tokens, 'anchor')} (tokens that carry a key)"
    text += f", query and key size {layer.query.shape[1]}, value size {layer.value.shape[1]}"
    text += ", shared keys" if layer.heads > 1 and len(layer.key) == 1 else ""
    text += ", shared values" if layer.heads > 1 and len(layer.value) == 1 else ""
    text += f", mask {layer.mask}" if layer.mask else ""
    text += f", grid {' x '.join(str(side) for side in layer.grid)}" if layer.grid else ""
    return text + (", with skip" if layer.skip else "")


def _features(features: tuple[str, ...]) -> list[str]:
    return _listed([f"     {i:>3}  {name}" for i, name in enumerate(features)], MAX_FEATURES)


def _heads(labels: tuple[str, ...]) -> list[str]:
    """What each head does, if anything is said of it."""
    said = any(label != f"head {i}" for i, label in enumerate(labels))
    return _listed([f"     head {i}: {label}" for i, label in enumerate(labels)], MAX_HEADS) if said else []


def _listed(lines: list[str], most: int) -> list[str]:
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"          and {more:,} more"]


def _sizes(groups: tuple[int, ...]) -> str:
    low, high = min(groups), max(groups)
    return counted(low, "feature") if low == high else f"{low} to {high} features"


def _wrapped(line: str) -> list[str]:
    """The line in pieces of at most COLUMNS; what a terminal would obey rather than print is replaced."""
    plain = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    hanging = " " * (len(plain) - len(plain.lstrip()) + 4)
    return textwrap.wrap(plain, COLUMNS, subsequent_indent=hanging[: COLUMNS // 2])
