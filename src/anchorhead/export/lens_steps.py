"""The layers of a network as a transformer runs them: a Repeat step by step; what has no place there is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Linear, Network, Repeat, Softmax, Stream
from anchorhead.network.liveness import Needed, everything, steady_needs, streams, through

MAX_LAYERS = 512
Step = tuple[str, Attention | Linear, Needed]
"""What a layer is called, the layer, and what is needed after it."""


def steps(network: Network, without_last: bool) -> Iterator[Step]:
    """Every layer between the Embed and the end, or the last layer, in order, as often as it runs."""
    layers: tuple[Any, ...] = network.layers[1:]
    _check(layers, first=2)
    runs = sum(layer.steps if isinstance(layer, Repeat) else 1 for layer in layers)
    if runs > MAX_LAYERS:
        raise AnchorheadError(
            f"the network runs {runs:,} layers, those of a Repeat counted at every step, and each becomes a block: at "
            f"most {MAX_LAYERS}. Export fewer steps: a learner has with_steps"
        )
    needed = through(layers, everything(network.streams[-1], (network.output,)), network.streams[0])
    return _steps(layers[:-1] if without_last else layers, needed, network.streams[0], first=2)


def _steps(
    layers: tuple[Any, ...], needed: list[Needed], stream: Stream, prefix: str = "", at: str = "", first: int = 1
) -> Iterator[Step]:
    entering = streams(layers, stream)
    for number, (layer, enters, after) in enumerate(zip(layers, entering, needed[1:], strict=False), start=first):
        if isinstance(layer, Repeat):
            inside = through(layer.layers, steady_needs(layer, after, enters), enters)
            for step in range(1, layer.times + 1):
                yield from _steps(layer.layers, inside, enters, f"{prefix}{number}.", f"{at}, step {step}")
        else:
            yield f"layer {prefix}{number}{at} ({type(layer).__name__})", layer, after


def _check(layers: tuple[Any, ...], prefix: str = "", first: int = 1) -> None:
    for number, layer in enumerate(layers, start=first):
        name = f"layer {prefix}{number}"
        if isinstance(layer, Repeat):
            _check(layer.layers, f"{prefix}{number}.")
        elif isinstance(layer, Linear) and layer.across:
            raise AnchorheadError(
                f"{name} is a Linear across all tokens: blocks of transformer-lens have maps on each token, and "
                'attention. Build the network with layout="transformer"'
            )
        elif isinstance(layer, Softmax):
            raise AnchorheadError(
                f"{name} is a Softmax over the features of a token: blocks of transformer-lens have softmax over "
                'tokens. Build the network with layout="transformer" and form="two-layer" or form="deep"'
            )
