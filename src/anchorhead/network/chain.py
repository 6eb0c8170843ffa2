"""The layers of a network as a chain: which may stand there, what leaves each, and in which order they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Placed:
    """A layer where it stands.

    number   1 is the Embed, and 3.2 the second layer of a Repeat that is the third
    enters   what enters it; of the Embed, what leaves it
    repeats  number and times of every Repeat around it
    """

    number: str
    layer: Any
    enters: Stream
    leaves: Stream
    repeats: tuple[tuple[str, int], ...] = ()


def placed(layers: tuple[Any, ...]) -> Iterator[Placed]:
    """All layers in order, a Repeat before those inside it."""
    start = layers[0].start()
    yield Placed("1", layers[0], start, start)
    yield from _placed(layers[1:], start, "", 2, ())


def _placed(
    layers: tuple[Any, ...], stream: Stream, prefix: str, first: int, repeats: tuple[tuple[str, int], ...]
) -> Iterator[Placed]:
    for number, layer in enumerate(layers, start=first):
        one = Placed(f"{prefix}{number}", layer, stream, layer.follow(stream), repeats)
        yield one
        if isinstance(layer, Repeat):
            yield from _placed(layer.layers, stream, f"{one.number}.", 1, (*repeats, (one.number, layer.times)))
        stream = one.leaves


def runs(
    layers: tuple[Any, ...], prefix: str = "", steps: tuple[int, ...] = ()
) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    """The layers as they run, those of a Repeat at every step: the number of each, the step, counted from 1, of every
    Repeat around it, and the layer."""
    for number, layer in enumerate(layers, start=1):
        if isinstance(layer, Repeat):
            for step in range(1, layer.times + 1):
                yield from runs(layer.layers, f"{prefix}{number}.", (*steps, step))
        else:
            yield f"{prefix}{number}", steps, layer


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
