"""A head over a tensor grid as a network: registers are the grid's points, row by row.

One token. A register carries, for each axis, slope and offset of its index along it, and its values; the query of the
input token is (x_j - origin_j, 1) for each axis.

A sequence of n tokens. A first attention gathers the entries that the grid's axes are along: head j asks with 1 for the
key FAR [position = j] and so copies token j into every token, exactly, because the other weights underflow to 0. The
grid gets one more axis, with a point for every token that reads it, and one with values of 0 for the others: its logits
are 0 for the point of the token itself and -M for the others, out of reach. A skip adds the bias.

With a causal mask, tokens that cannot be seen are replaced by a register of zeros, whose key of FAR/2 wins where the
sought one is hidden. The grid is then asked at the origin of such an axis, on which what the token reads does not
depend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorhead.constructions.layouts.feature_names import HIDDEN, inputs_called, less
from anchorhead.given import require_even_tokens
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.network import Attention, Embed, Linear, Network

FAR = 2000.0
OUT_OF_REACH = 2.0**40
"""M: a power of two, so that products are exact, far beyond all logits of which anything is proven."""


@dataclass(frozen=True)
class GridPlacement:
    """Where a grid stands in a sequence of `tokens` tokens with `features` features each.

    axes     for each axis the entry of the input that it is along, token by token
    outputs  for each of its outputs (token, column): the token that reads it, as which of its features
    """

    tokens: int
    features: int
    axes: tuple[int, ...]
    outputs: tuple[tuple[int, int], ...]
    causal: bool = False

    @property
    def columns(self) -> int:
        """How many features a token reads."""
        return 1 + max(column for _, column in self.outputs)

    @property
    def readers(self) -> list[int]:
        """The tokens that read anything."""
        return sorted({token for token, _ in self.outputs})


def grid_network(atom: GridAtom, tokens: int | None = None, variables: Sequence[str] = ()) -> Network:
    """The network, without target and certificate: inputs (..., d) to outputs (..., m); with tokens=n, inputs
    (..., n, d/n) to outputs (..., n, m/n), entries in order.

    variables   what its axes are called, where they have names
    """
    if tokens is None:
        return _of_one_token(atom, _axis_names(atom, variables))
    require_even_tokens(tokens, atom.variables, atom.outputs)
    columns = atom.outputs // tokens
    outputs = tuple((token, column) for token in range(tokens) for column in range(columns))
    return place_grid(
        atom, GridPlacement(tokens, atom.variables // tokens, tuple(range(atom.variables)), outputs), variables
    )


def _axis_names(atom: GridAtom, variables: Sequence[str]) -> list[str]:
    return inputs_called(variables) or [f"input {j}" for j in range(atom.variables)]


def _columns(atom: GridAtom) -> list[np.ndarray]:
    """Slope and offset along each axis, for every point of the grid, row by row."""
    index = np.indices(atom.sides).reshape(atom.variables, -1)
    return [array[k] for (slopes, offsets), k in zip(atom.axes, index, strict=True) for array in (slopes, offsets)]


def _key_names(axes: list[str]) -> list[str]:
    return [f"{what} along {axis}" for axis in axes for what in ("slope", "offset")]


def _query_names(atom: GridAtom, axes: list[str]) -> list[str]:
    return [less(axis, origin) for axis, origin in zip(axes, atom.origins.tolist(), strict=True)]


def _label(axes: list[str]) -> tuple[str]:
    return (f"the function of {', '.join(axes)}, over a grid",)


def _output_names(count: int) -> tuple[str, ...]:
    return tuple(f"output {i}" for i in range(count)) if count > 1 else ("output",)


def _of_one_token(atom: GridAtom, axes: list[str]) -> Network:
    d, m, dtype = atom.variables, atom.outputs, atom.dtype
    names = [*_query_names(atom, axes), "one", *_key_names(axes), *(f"value {i}" for i in range(m))]
    width = len(names)
    registers = np.zeros((atom.anchors, width), dtype)
    registers[:, d + 1 : 3 * d + 1] = np.stack(_columns(atom), axis=1)
    registers[:, 3 * d + 1 :] = atom.values.reshape(-1, m)
    token = np.zeros(width, dtype)
    token[:d], token[d] = -atom.origins, 1
    pick = np.eye(width, dtype=dtype)
    query = pick[[feature for j in range(d) for feature in (j, d)]]
    attention = Attention(
        query[None],
        pick[None, d + 1 : 3 * d + 1],
        pick[None, 3 * d + 1 :],
        np.eye(m, dtype=dtype)[None],
        bias=atom.bias if atom.bias.any() else None,
        grid=atom.sides,
        features=_output_names(m),
        labels=_label(axes),
    )
    embed = Embed(np.eye(width, d, dtype=dtype), token, registers=registers, tokens=1, features=tuple(names))
    return Network([embed, attention], token_axis=False)


def place_grid(atom: GridAtom, place: GridPlacement, variables: Sequence[str] = ()) -> Network:
    """The network of a grid in a sequence: inputs (..., n, features) to (..., n, columns)."""
    axes = _axis_names(atom, variables)
    n, few, d, m, dtype = place.tokens, place.features, atom.variables, place.columns, atom.dtype
    gate = np.full(n, len(place.readers))
    gate[place.readers] = np.arange(len(place.readers))
    points = int(gate.max()) + 1
    shared = ["one", *(f"at position {j}" for j in range(n)), *(f"out of reach of point {p}" for p in range(points))]
    shared += [*_key_names(axes), *(f"of point {p}" for p in range(points)), *(f"value {i}" for i in range(m))]
    shared += [HIDDEN] if place.causal else []
    one, at, away, keys = 0, 1, 1 + n, 1 + n + points
    own, values = keys + 2 * d, keys + 2 * d + points
    width = len(shared)

    registers = np.zeros((atom.anchors, points, few + width), dtype)
    registers[:, :, few + keys : few + own] = np.stack(_columns(atom), axis=1)[:, None]
    registers[:, :, few + own : few + values] = np.eye(points)
    bias = np.zeros((m, n), dtype)
    for number, (reader, column) in enumerate(place.outputs):
        registers[:, gate[reader], few + values + column] = atom.values.reshape(atom.anchors, -1)[:, number]
        bias[column, reader] = atom.bias[number]
    registers = registers.reshape(-1, few + width)
    if place.causal:
        registers = np.concatenate([registers, np.eye(few + width, dtype=dtype)[-1:]])
    token = np.zeros((n, few + width), dtype)
    origins = np.zeros(n * few, dtype)
    origins[list(place.axes)] = atom.origins
    token[:, :few] = -origins.reshape(n, few)
    token[:, few + one] = 1
    token[:, few + at : few + away] = np.eye(n)
    token[:, few + away : few + keys] = np.where(gate[:, None] == np.arange(points), 0, -OUT_OF_REACH)
    names = [less(f"x {f}", *middles) for f, middles in enumerate(origins.reshape(n, few).T.tolist())]
    embed = Embed(
        np.eye(few + width, few, dtype=dtype), token, registers=registers, tokens=n, features=(*names, *shared)
    )

    pick = np.eye(few + width, dtype=dtype)
    sources = sorted({entry // few for entry in place.axes})
    output = np.zeros((len(sources), d + width, few), dtype)
    for axis, entry in enumerate(place.axes):
        output[sources.index(entry // few), axis, entry % few] = 1
    skip = np.zeros((d + width, few + width), dtype)
    skip[d:, few:] = np.eye(width)
    gathered = (*_query_names(atom, axes), *shared)
    key = FAR * pick[[few + at + j for j in sources]]
    gather = Attention(
        np.broadcast_to(pick[few + one], (len(sources), 1, few + width)),
        (key + FAR / 2 * pick[-1] if place.causal else key)[:, None],
        pick[None, :few],
        output,
        mask="causal" if place.causal else None,
        skip=Linear(skip, features=gathered),
        features=gathered,
        labels=tuple(f"gathers token {j}" for j in sources),
    )

    pick = np.eye(d + width, dtype=dtype)
    query, key = (np.zeros((d + 1, max(2, points), d + width), dtype) for _ in range(2))
    for j in range(d):
        query[j, :2] = pick[[j, d + one]]
        key[j, :2] = pick[d + keys + 2 * j : d + keys + 2 * j + 2]
    query[d, :points], key[d, :points] = pick[d + away : d + keys], pick[d + own : d + values]
    added = np.zeros((m, d + width), dtype)
    added[:, d + at : d + away] = bias
    attention = Attention(
        query.reshape(1, -1, d + width),
        key.reshape(1, -1, d + width),
        pick[None, d + values : d + values + m],
        np.eye(m, dtype=dtype)[None],
        skip=Linear(added, features=_output_names(m)),
        grid=(*atom.sides, points),
        features=_output_names(m),
        labels=_label(axes),
    )
    return Network([embed, gather, attention])
