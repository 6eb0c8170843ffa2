"""Heads over grids, of however many variables, and as networks store them, for tests that look into them."""

from __future__ import annotations

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.grids.grid import solved_grid
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.expressions.parser import parse
from anchorhead.language.several import SeveralVariables
from anchorhead.network import Attention, Network


def grid_of(text: str, names: str, on: tuple[float, float], within: float, dtype: Dtype = "float64") -> Network:
    """A function of variables of one letter each, as one grid of all of them, which ah.approximate may take apart."""
    function, (low, high) = parse(text, tuple(names)), on
    target = SeveralVariables((function,), tuple(names), (low,) * len(names), (high,) * len(names))
    return solved_grid(target, BuildRequest(within, dtype)).network


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
