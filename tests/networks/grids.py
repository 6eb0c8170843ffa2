"""Heads over grids as networks store them, for tests that look into them."""

from __future__ import annotations

import numpy as np

from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.network import Attention, Network


def sides_of(network: Network) -> tuple[int, ...]:
    """How many anchors the grid of a network has along each axis of its function."""
    last = network.layers[-1]
    assert isinstance(last, Attention)
    names = network.embed.features or ()
    return (last.grid or ())[: sum("slope along" in name for name in names)]


def stored_grid(network: Network) -> GridAtom:
    """The grid of a network without a token axis, by the names of its features."""
    embed, last = network.embed, network.layers[-1]
    registers = embed.registers
    assert isinstance(last, Attention)
    assert registers is not None
    sides = sides_of(network)

    def held(word: str) -> np.ndarray:
        columns = [place for place, name in enumerate(embed.features or ()) if name.startswith(word)]
        return registers[:, columns].reshape(*sides, -1)

    slopes, offsets, values = held("slope along"), held("offset along"), held("value ")
    axes = []
    for j in range(len(sides)):
        along = tuple(slice(None) if i == j else 0 for i in range(len(sides)))
        axes.append((slopes[(*along, j)], offsets[(*along, j)]))
    bias = np.zeros(values.shape[-1]) if last.bias is None else last.bias
    return GridAtom.of(axes, -embed.bias.reshape(-1)[: len(sides)], values, bias, network.dtype)
