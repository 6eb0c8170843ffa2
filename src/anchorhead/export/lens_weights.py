"""The weights of one block over the whole residual stream, heads padded to one number and one size; and what heads do.

Heads that are left over ask nothing and write nothing. Scores are not divided by anything: W_Q and W_K are the
network's own queries and keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np
from jaxtyping import Float

from anchorhead.export.lens_layout import Block, LensLayout, Sight
from anchorhead.network import Attention

NOTHING = Sight(())
UNUSED = "unused"
OWN = "a linear map of the token itself"
MAX_NAMES = 8
"""How many features the wiring of a head lists."""


@dataclass(frozen=True, eq=False)
class BlockWeights:
    """As nn.Linear holds them: query, key, value (heads x size, width), output (width, heads x size), bias (width,).

    sights  for each head the tokens that it lets each token see
    labels  for each head what it is for, as the network says it
    wiring  for each head which tokens ask, what they ask with, against what, what is read and where that goes
    """

    query: Float[np.ndarray, "headsize width"]
    key: Float[np.ndarray, "headsize width"]
    value: Float[np.ndarray, "headsize width"]
    output: Float[np.ndarray, "width headsize"]
    bias: Float[np.ndarray, " width"]
    sights: tuple[Sight, ...]
    labels: tuple[str, ...]
    wiring: tuple[str, ...]


def block_weights(layout: LensLayout, block: Block | None, dtype: str) -> BlockWeights:
    """The block's weights; without a block, of one that does nothing."""
    heads, size, width = layout.heads, layout.head_size, layout.width
    query, key, value = (np.zeros((heads, size, width), dtype) for _ in range(3))
    output, bias = np.zeros((width, heads, size), dtype), np.zeros(width, dtype)
    sights, labels, wiring = [NOTHING] * heads, [UNUSED] * heads, [UNUSED] * heads
    if block is not None:
        own = ceil(len(block.own) / size)
        layer, first = block.attention, block.heads
        if layer is not None:
            for wide, narrow in ((query, layer.query), (key, layer.key), (value, layer.value)):
                wide[:first, : narrow.shape[1]] = _spread(narrow, block.reads, width)
            written = np.flatnonzero(block.writes >= 0)
            output[block.writes[written], :first, : layer.output.shape[2]] = layer.output[:, written].swapaxes(0, 1)
            sights[:first] = [block.sight] * first
            labels[:first] = layer.labels or ()
            wiring[:first] = [_wiring(block, layer, head) for head in range(first)]
        rows = np.arange(len(block.own))
        value[first + rows // size, rows % size] = _spread(block.own, block.reads, width)
        output[block.own_writes, first + rows // size, rows % size] = 1
        sights[first : first + own] = [block.own_sight] * own
        for head in range(own):
            labels[first + head] = OWN
            wiring[first + head] = _own_wiring(block, slice(head * size, (head + 1) * size))
        for place, number in block.bias.items():
            bias[place] = number
    flat = (heads * size, width)
    return BlockWeights(
        query.reshape(flat), key.reshape(flat), value.reshape(flat), output.reshape(width, -1), bias,
        tuple(sights), tuple(labels), tuple(wiring),
    )  # fmt: skip


def _spread(weight: Float[np.ndarray, "... features"], reads: np.ndarray, width: int) -> np.ndarray:
    """Columns moved to where the features are found; two features at one place add up."""
    wide = np.zeros((width, *weight.shape[:-1]), weight.dtype)
    np.add.at(wide, reads, np.moveaxis(weight, -1, 0))
    return np.moveaxis(wide, 0, -1)


def _wiring(block: Block, layer: Attention, head: int) -> str:
    of_head = (one[head if len(one) > 1 else 0] for one in (layer.query, layer.key, layer.value))
    asked, shown, read = (_listed(_names(block.before, (one != 0).any(axis=0))) for one in of_head)
    written = _listed(_names(block.after, (layer.output[head] != 0).any(axis=1)))
    return f"{block.sight} | asks with {asked} | against {shown} | reads {read} | writes {written}"


def _own_wiring(block: Block, rows: slice) -> str:
    read = _listed(_names(block.before, (block.own[rows] != 0).any(axis=0)))
    return f"{block.own_sight} | reads {read} | writes {_listed(block.own_names[rows])}"


def _names(names: tuple[str, ...], used: np.ndarray) -> Iterable[str]:
    return (names[i] for i in np.flatnonzero(used))


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = len(every) - MAX_NAMES
    shown = every if more <= 0 else [*every[:MAX_NAMES], f"and {more} more"]
    return "; ".join(shown) or "nothing"
