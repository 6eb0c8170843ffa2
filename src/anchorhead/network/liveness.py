"""Which features of which tokens later layers read: what nobody reads is not computed.

Going backwards through the layers, `Needed` says for every kind of token which features are read. A head
whose output only reaches features that no later layer reads at a kind of token is not computed there: a
learner's example tokens ask nothing, and registers that stretch a sequence are keys, never queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool

from anchorhead.network.attention import Attention
from anchorhead.network.linear import Linear
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax
from anchorhead.network.stream import KINDS, Kind, Stream

Needed = Mapping[Kind, Bool[np.ndarray, " _"]]
Inner = Attention | Linear | Softmax | Repeat


def everything(stream: Stream, kinds: tuple[Kind, ...]) -> Needed:
    return {kind: np.ones(stream.width, bool) for kind in kinds if kind in stream.kinds}


def askers(layer: Attention, needed: Needed) -> tuple[Kind, ...]:
    """The kinds of token at which some feature that is read depends on the heads."""
    written = (layer.output != 0).any(axis=(0, 2))
    return tuple(kind for kind in KINDS if kind in needed and (needed[kind] & written).any())


def kept_as_they_are(layer: Attention, needed: Needed) -> tuple[Kind, ...]:
    """The kinds of token that ask nothing and of which the skip hands on every feature that is read, unchanged."""
    if layer.skip is None or layer.skip.weight.ndim != 2 or layer.outputs != layer.width:
        return ()
    bias = sum(np.abs(one) for one in (layer.bias, layer.skip.bias) if one is not None)
    same = (layer.skip.weight == np.eye(layer.width)).all(axis=1) & (np.broadcast_to(bias, layer.width) == 0)
    return tuple(kind for kind in needed if kind not in askers(layer, needed) and same[needed[kind]].all())


def before(layer: Inner, needed: Needed, stream: Stream) -> Needed:
    """What is needed of `stream`, which enters the layer, when `needed` is needed of what leaves it."""
    match layer:
        case Linear():
            return _before_linear(layer, needed, stream)
        case Softmax():
            groups = np.repeat(np.arange(len(layer.groups)), layer.groups)
            return {kind: np.isin(groups, groups[mask]) for kind, mask in needed.items()}
        case Attention():
            return _before_attention(layer, needed, stream)
        case Repeat():
            return _before_repeat(layer, needed, stream)


def streams(layers: tuple[Inner, ...], stream: Stream) -> list[Stream]:
    """The streams that enter each layer, and the one that leaves the last."""
    result = [stream]
    for layer in layers:
        result.append(layer.follow(result[-1]))
    return result


def through(layers: tuple[Inner, ...], needed: Needed, stream: Stream) -> list[Needed]:
    """What is needed after each layer, and first of `stream` itself."""
    entering = streams(layers, stream)
    result = [needed]
    for layer, enters in zip(reversed(layers), reversed(entering[:-1]), strict=True):
        result.append(before(layer, result[-1], enters))
    return result[::-1]


def needed_after(layers: tuple[Any, ...], output: Kind) -> dict[str, Needed]:
    """What is needed after every layer behind the Embed, by its number; of those in a Repeat, after any step."""
    start = layers[0].start()
    last = everything(streams(layers[1:], start)[-1], (output,))
    return dict(_numbered(layers[1:], last, start, "", 2))


def _numbered(
    layers: tuple[Inner, ...], needed: Needed, stream: Stream, prefix: str, first: int
) -> Iterator[tuple[str, Needed]]:
    each = zip(layers, through(layers, needed, stream)[1:], streams(layers, stream), strict=False)
    for number, (layer, after, enters) in enumerate(each, start=first):
        yield f"{prefix}{number}", after
        if isinstance(layer, Repeat):
            yield from _numbered(layer.layers, steady_needs(layer, after, enters), enters, f"{prefix}{number}.", 1)


def _before_linear(layer: Linear, needed: Needed, stream: Stream) -> Needed:
    if not layer.across:
        return {kind: _reads(layer, mask) for kind, mask in needed.items()}
    return {kind: _reads(layer, needed["input"]) for kind in stream.kinds}


def _reads(layer: Linear, mask: Bool[np.ndarray, " outputs"]) -> Bool[np.ndarray, " inputs"]:
    """The features on which those that the mask names depend."""
    used = layer.weight != 0
    match used.ndim:
        case 2:
            return used[mask].any(axis=0)
        case 3:
            return (used & mask.reshape(len(used), -1, 1)).any(axis=1).ravel()
        case _:
            return used[:, mask].any(axis=(0, 1, 2))


def _before_attention(layer: Attention, needed: Needed, stream: Stream) -> Needed:
    nothing = np.zeros(stream.width, bool)
    asking = askers(layer, needed)
    visible = seen(layer, asking, stream)
    asked = (layer.query != 0).any(axis=(0, 1))
    shown = (layer.key != 0).any(axis=(0, 1)) | (layer.value != 0).any(axis=(0, 1))
    kept = {} if layer.skip is None else _before_linear(layer.skip, needed, stream)
    return {
        kind: kept.get(kind, nothing) | (asked if kind in asking else nothing) | (shown if kind in visible else nothing)
        for kind in KINDS
        if kind in needed or kind in visible
    }


def seen(layer: Attention, asking: tuple[Kind, ...], stream: Stream) -> tuple[Kind, ...]:
    """The kinds of token that at least one of those who ask sees."""
    return tuple(kind for kind in stream.kinds if any(layer.sees(one, kind) for one in asking))


def _before_repeat(layer: Repeat, needed: Needed, stream: Stream) -> Needed:
    steady = steady_needs(layer, needed, stream)
    return through(layer.layers, steady, stream)[0]


def steady_needs(layer: Repeat, needed: Needed, stream: Stream) -> Needed:
    """What is needed after a step, whether it is the last one or not: the least fixed point."""
    nothing = np.zeros(stream.width, bool)
    while layer.times > 1:
        first = through(layer.layers, needed, stream)[0]
        union: Needed = {
            kind: needed.get(kind, nothing) | first.get(kind, nothing)
            for kind in KINDS
            if kind in needed or kind in first
        }
        if union.keys() == needed.keys() and all((union[kind] == needed[kind]).all() for kind in union):
            break
        needed = union
    return needed
