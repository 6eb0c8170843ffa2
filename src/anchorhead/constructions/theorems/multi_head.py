"""The paper's multi-head theorem: the n tokens' own positions are the anchors, and H heads share the range.

No stretching: an ordinary attention layer on a sequence whose tokens know their position. The range is cut into
(n - 2) H cells of width `spacing`. Head h owns n - 2 consecutive ones: position k = -(n-1)/2 ... (n-1)/2, counted from
the middle, stands for the centre of cell o_h + k, where o_h = (h - (H-1)/2)(n - 2); the first and the last position are
dummies half a cell beyond the slice. Head h asks with q - o_h, q = (w_i . x_i + t_i - middle) / spacing, and all heads
share the keys (2c k, -c k^2). The value of a cell is o_h + k, of a dummy 0, except that the first head's lower dummy
holds the lower end of the range and the last head's upper dummy the upper end. The heads add up:

    middle + spacing sum_h sum_k w_hk v_hk.

Where one head hands over to the next, each is half on its dummy and half on its last cell, and the halves add up. All
numbers are whole or half, so floating point holds them exactly. Values are counted from the middle of the range, so a
range far from 0 is no harder than one around 0.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from anchorhead.constructions.layouts.feature_names import outputs_called
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.network import Attention, Embed, Network
from anchorhead.network.dtypes import stored
from anchorhead.proof.heads.ramp import Lattice

NAMES = ("query", "one", "position (from the middle)", "minus position squared")
ENDS = ("1 at a cell, 0 at the ends", "position at a cell, 0 at the ends", "first position", "last position")

NAME = "multi head"


def spacing(low: float, high: float, cells: int) -> float:
    """Cells of equal width that fill the range."""
    return (high - low) / cells


def switches(low: float, high: float, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the nearest cell's output feature changes, and the features between: at the border of two cells."""
    changes = np.flatnonzero(np.diff(outputs))
    return low + (high - low) * (changes + 1) / len(outputs), outputs[np.append(changes, len(outputs) - 1)]


def network(target: TruncatedLinear, scale: Lattice, outputs: np.ndarray, sharpness: float, dtype: str) -> Network:
    """The theorem's network; `sharpness` is c, `outputs` the output feature of each of the (n - 2) H cells."""
    tokens, inputs = target.w.shape
    heads = len(outputs) // (tokens - 2)
    k = np.arange(tokens) - (tokens - 1) / 2
    inside = (np.abs(k) < (tokens - 1) / 2).astype(float)
    first, last = np.eye(tokens)[[0, -1]]
    several = target.outputs > 1
    marks = list(np.eye(tokens)) if several else [inside, inside * k, first, last]
    names = (*NAMES, *((f"position {i}" for i in range(tokens)) if several else ENDS))
    table = np.stack([np.zeros(tokens), np.ones(tokens), k, -(k**2), *marks], axis=1)
    table[:, 0] = (target.t - scale.middle) / scale.spacing
    weight = np.zeros((tokens, len(names), inputs))
    weight[:, 0] = target.w / scale.spacing

    origins = (np.arange(heads) - (heads - 1) / 2) * (tokens - 2)
    query, key = np.zeros((heads, 2, len(names))), np.zeros((1, 2, len(names)))
    query[:, 0, 0], query[:, 0, 1], query[:, 1, 1] = 1.0, -origins, 1.0
    key[0, 0, 2], key[0, 1, 3] = 2 * sharpness, sharpness
    value = np.zeros((heads, target.outputs, len(names)))
    if several:
        _write_outputs(value, target, scale, outputs.reshape(heads, tokens - 2), origins)
    else:
        half = heads * (tokens - 2) / 2
        value[:, 0, 4], value[:, 0, 5] = origins, 1.0
        value[0, 0, 6], value[-1, 0, 7] = -half, half
    output = np.broadcast_to(
        np.eye(target.outputs) * (1.0 if several else scale.spacing), (heads,) + (target.outputs,) * 2
    )
    bias = None if several else np.array([scale.middle], dtype)
    features = outputs_called(target.outputs)
    cuts = np.linspace(target.low, target.high, heads + 1)
    labels = [f"owns [{low:g}, {high:g}]" for low, high in pairwise(cuts)]
    labels[0] += " and all below"
    labels[-1] += " and all above"
    return Network(
        [
            Embed(stored(weight, dtype), table.astype(dtype), tokens=tokens, features=names),
            Attention(
                *(stored(a, dtype) for a in (query, key, value, output)),
                bias=bias,
                features=features,
                labels=tuple(labels),
            ),
        ]
    )


def _write_outputs(
    value: np.ndarray, target: TruncatedLinear, scale: Lattice, outputs: np.ndarray, origins: np.ndarray
) -> None:
    """The value of every cell in the output feature that it belongs to, written against one-hot positions."""
    heads, cells = outputs.shape
    k = np.arange(cells) - (cells - 1) / 2
    for head in range(heads):
        value[head, outputs[head], len(NAMES) + 1 + np.arange(cells)] = scale.middle + scale.spacing * (
            origins[head] + k
        )
    value[0, outputs[0, 0], len(NAMES)] = target.low
    value[-1, outputs[-1, -1], len(NAMES) + cells + 1] = target.high
