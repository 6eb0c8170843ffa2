"""The shape of the networks that a single layer of attention makes."""

from __future__ import annotations

from anchorhead.network import Attention, Network


def only_attention(network: Network) -> Attention | None:
    """The attention of a network that is a plain Embed and one Attention without mask, skip or grid, and whose input
    tokens leave it; else None."""
    embed, last = network.embed, network.layers[-1]
    if len(network.layers) != 2 or not isinstance(last, Attention) or embed.tokens is None:
        return None
    if network.output != "input":
        return None
    extras = (last.mask, last.skip, last.grid, embed.states, embed.source)
    return last if all(extra is None for extra in extras) else None
