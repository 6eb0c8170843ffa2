"""A head over a tensor grid as a network: registers are the grid's points, row by row.

One token. A register carries, for each axis, slope and offset of its index along it, and its values; the query of the
input token is (x_j - origin_j, 1) for each axis.

A sequence of n tokens. A first attention gathers the entries that the grid's axes are along: head j asks with 1 for the
key 2 FAR [position = j] and so copies token j into every token, exactly, because the other weights underflow to 0. The
grid gets one more axis, with a point for every token that reads it, and one with values of 0 for the others: its logits
are 0 for the point of the token itself and -M for the others, out of reach. A skip adds the bias.

With a causal mask, tokens that cannot be seen are replaced by a register of zeros, whose key of FAR wins where the
sought one is hidden. The grid is then asked at the origin of such an axis, on which what the token reads does not
depend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Int

from anchorhead.constructions.layouts.draft import Draft, Fill
from anchorhead.constructions.layouts.feature_names import HIDDEN, inputs_called, less, outputs_called
from anchorhead.constructions.layouts.laid_out import FAR
from anchorhead.given import require_even_tokens
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.network import Attention, Embed, Network

OUT_OF_REACH = 2.0**40
"""M: a power of two, so that products are exact, far beyond all logits of which anything is proven."""


@dataclass(frozen=True)
class GridPlacement:
    """Where a grid stands in a sequence of `tokens` tokens with `features` features each.

    axes     for each axis the entry of the input that it is along, token by token
    outputs  for each of its outputs (token, column): the token that reads it, as which of its features

    Beside inputs a token has features for 1, its position, the points that are out of reach (from `away` on), slope and
    offset along each axis (from `keys` on), its own point (from `own` on) and values (from `values` on).
    """

    tokens: int
    features: int
    axes: tuple[int, ...]
    outputs: tuple[tuple[int, int], ...]
    causal: bool = False

    @classmethod
    def of_all(cls, tokens: int, entries: int, outputs: int, causal: bool = False) -> GridPlacement:
        """Of a grid of all entries, whose outputs are those of the tokens in order."""
        require_even_tokens(tokens, entries, outputs)
        readers = tuple((token, column) for token in range(tokens) for column in range(outputs // tokens))
        return cls(tokens, entries // tokens, tuple(range(entries)), readers, causal)

    @property
    def columns(self) -> int:
        """How many features a token reads."""
        return 1 + max(column for _, column in self.outputs)

    @property
    def readers(self) -> list[int]:
        """The tokens that read anything."""
        return sorted({token for token, _ in self.outputs})

    @property
    def points(self) -> int:
        """How many points the axis of readers has: one for each, and one for all others, if there are any."""
        return min(len(self.readers) + 1, self.tokens)

    @property
    def point_of(self) -> Int[np.ndarray, " tokens"]:
        """The point of each token along that axis."""
        points = np.full(self.tokens, len(self.readers))
        points[self.readers] = np.arange(len(self.readers))
        return points

    @property
    def sources(self) -> list[int]:
        """The tokens that the axes are along."""
        return sorted({entry // self.features for entry in self.axes})

    @property
    def away(self) -> int:
        return 1 + self.tokens

    @property
    def keys(self) -> int:
        return self.away + self.points

    @property
    def own(self) -> int:
        return self.keys + 2 * len(self.axes)

    @property
    def values(self) -> int:
        return self.own + self.points


def grid_network(
    atom: GridAtom, tokens: int | None = None, variables: Sequence[str] = (), causal: bool = False
) -> Network:
    """The network, without target and certificate: inputs (..., d) to outputs (..., m); with tokens=n, inputs
    (..., n, d/n) to outputs (..., n, m/n), entries in order.

    variables   what its axes are called, where they have names
    """
    place = None if tokens is None else GridPlacement.of_all(tokens, atom.variables, atom.outputs, causal)
    layers = [draft.made(atom.dtype) for draft in filled_drafts(atom, place, variables)]
    return Network(layers, token_axis=tokens is not None)


def filled_drafts(atom: GridAtom, place: GridPlacement | None, variables: Sequence[str]) -> list[Draft]:
    """The layers of a grid: of one token, or where it is placed in a sequence."""
    if place is None:
        return grid_drafts(atom.sides, atom.outputs, GridFill(atom, variables))
    return placed_drafts(atom.sides, place, PlacedFill(atom, variables, place=place))


def grid_drafts(sides: Sequence[int], outputs: int, fill: GridFill | None = None) -> list[Draft]:
    """The layers of a grid of one token, of so many anchors along each axis; without a fill there is no bias."""
    d = len(sides)
    width = 3 * d + 1 + outputs
    reads = _reads(outputs, 2 * d, width)
    if fill is not None and fill.atom.bias.any():
        reads["bias"] = (outputs,)
    embed = {"weight": (width, d), "bias": (width,), "registers": (prod(sides), width)}
    fills: Sequence[Fill] = (dict, dict) if fill is None else (fill.embed, fill.grid)
    return [Draft(Embed, embed, fills[0]), Draft(Attention, reads, fills[1])]


def placed_drafts(sides: Sequence[int], place: GridPlacement, fill: PlacedFill | None = None) -> list[Draft]:
    """The layers of a grid in a sequence, of so many anchors along each axis."""
    few, sources, d = place.features, len(place.sources), len(sides)
    shared = place.values + place.columns + place.causal
    width, after = few + shared, d + shared
    registers = (prod(sides) * place.points + place.causal, width)
    gather = dict.fromkeys(("query", "key"), (sources, 1, width))
    gather |= {"value": (1, few, width), "output": (sources, after, few), "skip": (after, width)}
    reads = _reads(place.columns, (d + 1) * max(2, place.points), after) | {"skip": (place.columns, after)}
    fills: Sequence[Fill] = (dict,) * 3 if fill is None else (fill.embed, fill.gather, fill.placed_grid)
    embed = {"weight": (width, few), "bias": (place.tokens, width), "registers": registers}
    return [Draft(Embed, embed, fills[0]), Draft(Attention, gather, fills[1]), Draft(Attention, reads, fills[2])]


def _reads(outputs: int, asked: int, width: int) -> dict[str, tuple[int, ...]]:
    keys = dict.fromkeys(("query", "key"), (1, asked, width))
    return {**keys, "value": (1, outputs, width), "output": (1, outputs, outputs)}


@dataclass(frozen=True, eq=False)
class GridFill:
    """What is written into the layers of a grid of one token, and what their features are called."""

    atom: GridAtom
    variables: Sequence[str] = ()

    def embed(self, weight: np.ndarray, bias: np.ndarray, registers: np.ndarray) -> dict[str, Any]:
        atom, d = self.atom, self.atom.variables
        weight[:d], bias[:d], bias[d] = np.eye(d), -atom.origins, 1
        registers[:, d + 1 : 3 * d + 1] = self._columns()
        registers[:, 3 * d + 1 :] = atom.values.reshape(-1, atom.outputs)
        values = [f"value {i}" for i in range(atom.outputs)]
        return {"tokens": 1, "features": (*self._query_names(), "one", *self._key_names(), *values)}

    def grid(self, query: Any, key: Any, value: Any, output: Any, bias: Any = None) -> dict[str, Any]:
        d, m = self.atom.variables, self.atom.outputs
        for j in range(d):
            query[0, 2 * j, j] = query[0, 2 * j + 1, d] = 1
        key[0, :, d + 1 : 3 * d + 1], value[0, :, 3 * d + 1 :], output[0] = np.eye(2 * d), np.eye(m), np.eye(m)
        if bias is not None:
            bias[:] = self.atom.bias
        return {"grid": self.atom.sides, "features": outputs_called(m), "labels": self._label()}

    def _columns(self) -> np.ndarray:
        """Slope and offset along each axis, for every point of the grid, row by row."""
        index = np.indices(self.atom.sides).reshape(self.atom.variables, -1)
        pairs = zip(self.atom.axes, index, strict=True)
        return np.stack([array[k] for (slopes, offsets), k in pairs for array in (slopes, offsets)], axis=1)

    @property
    def _axes(self) -> list[str]:
        return inputs_called(self.variables) or [f"input {j}" for j in range(self.atom.variables)]

    def _key_names(self) -> list[str]:
        return [f"{what} along {axis}" for axis in self._axes for what in ("slope", "offset")]

    def _query_names(self) -> list[str]:
        return [less(axis, origin) for axis, origin in zip(self._axes, self.atom.origins.tolist(), strict=True)]

    def _label(self) -> tuple[str]:
        return (f"the function of {', '.join(self._axes)}, over a grid",)


@dataclass(frozen=True, eq=False)
class PlacedFill(GridFill):
    """The same of a grid in a sequence."""

    place: GridPlacement = field(kw_only=True)

    def embed(self, weight: np.ndarray, bias: np.ndarray, registers: np.ndarray) -> dict[str, Any]:
        atom, place = self.atom, self.place
        n, few, points = place.tokens, place.features, place.points
        weight[:few] = np.eye(few)
        anchors = registers[: atom.anchors * points].reshape(atom.anchors, points, -1)
        anchors[:, :, few + place.keys : few + place.own] = self._columns()[:, None]
        anchors[:, :, few + place.own : few + place.values] = np.eye(points)
        for number, (reader, column) in enumerate(place.outputs):
            values = atom.values.reshape(atom.anchors, -1)[:, number]
            anchors[:, place.point_of[reader], few + place.values + column] = values
        if place.causal:
            registers[-1, -1] = 1
        origins = np.zeros(n * few)
        origins[list(place.axes)] = atom.origins
        bias[:, :few], bias[:, few], bias[:, few + 1 : few + place.away] = -origins.reshape(n, few), 1, np.eye(n)
        away = place.point_of[:, None] != np.arange(points)
        bias[:, few + place.away : few + place.keys] = np.where(away, -OUT_OF_REACH, 0)
        names = [less(f"x {f}", *middles) for f, middles in enumerate(origins.reshape(n, few).T.tolist())]
        return {"tokens": n, "features": (*names, *self._shared())}

    def gather(self, query: Any, key: Any, value: Any, output: Any, skip: Any) -> dict[str, Any]:
        place, d, few, sources = self.place, self.atom.variables, self.place.features, self.place.sources
        query[:, 0, few] = 1
        for head, token in enumerate(sources):
            key[head, 0, few + 1 + token] = 2 * FAR
        if place.causal:
            key[:, 0, -1] = FAR
        value[0, :, :few] = np.eye(few)
        for axis, entry in enumerate(place.axes):
            output[sources.index(entry // few), axis, entry % few] = 1
        skip[d:, few:] = np.eye(len(skip) - d)
        mask, features = "causal" if place.causal else None, (*self._query_names(), *self._shared())
        return {"mask": mask, "features": features, "labels": tuple(f"gathers token {j}" for j in sources)}

    def placed_grid(self, query: Any, key: Any, value: Any, output: Any, skip: Any) -> dict[str, Any]:
        place, d, m, points = self.place, self.atom.variables, self.place.columns, self.place.points
        asked, held = (array[0].reshape(d + 1, max(2, points), -1) for array in (query, key))
        for j in range(d):
            asked[j, 0, j] = asked[j, 1, d] = 1
            held[j, :2, d + place.keys + 2 * j : d + place.keys + 2 * j + 2] = np.eye(2)
        asked[d, :points, d + place.away : d + place.keys] = np.eye(points)
        held[d, :points, d + place.own : d + place.values] = np.eye(points)
        value[0, :, d + place.values : d + place.values + m], output[0] = np.eye(m), np.eye(m)
        for number, (reader, column) in enumerate(place.outputs):
            skip[column, d + 1 + reader] = self.atom.bias[number]
        return {"grid": (*self.atom.sides, points), "features": outputs_called(m), "labels": self._label()}

    def _shared(self) -> list[str]:
        """What features are called that a token has beside its inputs."""
        place = self.place
        names = ["one", *(f"at position {j}" for j in range(place.tokens))]
        names += [f"out of reach of point {p}" for p in range(place.points)]
        names += [*self._key_names(), *(f"of point {p}" for p in range(place.points))]
        return [*names, *(f"value {i}" for i in range(place.columns)), *([HIDDEN] if place.causal else [])]
