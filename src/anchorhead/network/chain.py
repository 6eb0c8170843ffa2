"""The layers of a network as a chain: which may stand there, and what leaves each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.given import shown
from anchorhead.network.attention import Attention
from anchorhead.network.embed import Embed
from anchorhead.network.linear import Linear
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax
from anchorhead.network.stream import Stream


def weights(layers: Iterable[Any]) -> Iterable[np.ndarray]:
    """All arrays of floating-point weights in the layers."""
    for layer in layers:
        for value in vars(layer).values():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                yield value
            elif isinstance(value, Linear):
                yield from weights([value])
            elif isinstance(layer, Repeat) and isinstance(value, tuple):
                yield from weights(value)


def leaving(layers: Iterable[Any], stream: Stream) -> Iterable[Stream]:
    """The stream that leaves every layer, those inside a Repeat included."""
    for layer in layers:
        if isinstance(layer, Repeat):
            yield from leaving(layer.layers, stream)
        stream = layer.follow(stream)
        yield stream


def as_layers(layers: Any) -> tuple[Any, ...]:
    if not isinstance(layers, Iterable):
        raise AnchorheadError(
            f"layers={shown(layers)}: a list of layers is needed, an Embed and then any of Linear, Attention, Softmax "
            "and Repeat"
        )
    return tuple(layers)


def check_layers(layers: tuple[Any, ...]) -> None:
    if not layers or type(layers[0]) is not Embed:
        first = type(layers[0]).__name__ if layers else "nothing"
        raise AnchorheadError(f"a network starts with an Embed, the map that makes its tokens; given: {first}")
    for layer in layers[1:]:
        if type(layer) not in (Linear, Attention, Softmax, Repeat):
            raise AnchorheadError(
                f"a network holds a {type(layer).__name__}: after its Embed only Linear, Attention, Softmax and Repeat"
            )
    dtypes = sorted({str(array.dtype) for array in weights(layers)})
    if len(dtypes) != 1:
        raise AnchorheadError(f"a network's weights have dtypes {', '.join(dtypes)}: all must have the same")


def chain(layers: tuple[Any, ...]) -> tuple[Stream, ...]:
    streams = [layers[0].start()]
    for number, layer in enumerate(layers[1:], start=2):
        try:
            streams.append(layer.follow(streams[-1]))
        except AnchorheadError as error:
            raise AnchorheadError(f"layer {number} does not follow on layer {number - 1}: {error}") from error
    return tuple(streams)
