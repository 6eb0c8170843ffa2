"""The layers of a network as a transformer runs them: a Repeat step by step; what has no place there is refused."""

from __future__ import annotations

from collections.abc import Iterator

from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Linear, Network, Softmax
from anchorhead.network.chain import Placed, placed, runs
from anchorhead.network.liveness import Needed, needed_after
from anchorhead.network.repeat import ran

MAX_LAYERS = 512
Step = tuple[str, Attention | Linear, Needed]
"""What a layer is called, the layer, and what is needed after it."""


def steps(network: Network, without_last: bool) -> Iterator[Step]:
    """Every layer between the Embed and the end, or the last layer, in order, as often as it runs."""
    for one in placed(network.layers):
        _check(one)
    count = ran(network.layers[1:])
    if count > MAX_LAYERS:
        raise AnchorheadError(
            f"the network runs {count:,} layers, those of a Repeat counted at every step, and each becomes a block: at "
            f"most {MAX_LAYERS}. Export fewer steps: a learner has with_steps"
        )
    needed = needed_after(network.layers, network.output)
    for number, at, layer in runs(network.layers[:-1] if without_last else network.layers):
        if not isinstance(layer, Embed):
            where = "".join(f", step {step}" for step in at)
            yield f"layer {number}{where} ({type(layer).__name__})", layer, needed[number]


def _check(one: Placed) -> None:
    if isinstance(one.layer, Linear) and one.layer.across:
        raise AnchorheadError(
            f"layer {one.number} is a Linear across all tokens: blocks of transformer-lens have maps on each token, "
            'and attention. Build the network with layout="transformer"'
        )
    if isinstance(one.layer, Softmax):
        raise AnchorheadError(
            f"layer {one.number} is a Softmax over the features of a token: blocks of transformer-lens have softmax "
            'over tokens. Build the network with layout="transformer" and form="two-layer" or form="deep"'
        )
