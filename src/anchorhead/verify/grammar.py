"""The layers of a network, read from a file with every size checked: what is not modelled here is refused.

A sequence holds input tokens, then registers, then states, all of one width. Arrays are float64 copies of the stored
float32 or float64 numbers, which are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require, several, whole
from anchorhead.verify.files import Stored

KINDS = ("input", "register", "state")
MASKS = (None, "causal", "self+registers", "registers+states")
MAX_STEPS = 1_000_000
MAX_DEPTH = 8
MAX_COUNT = 2**40
MAX_WEIGHTS = 2**28
"""Of a map of blocks, with all that is 0 between them."""


@dataclass(frozen=True, eq=False)
class Embed:
    """Token i of what leaves it is weight_i x_source(i) + bias_i; then come constant registers and states.

    weight (positions or 1, features, inputs)   bias (positions or 1, features)   tokens None: any number of inputs
    """

    weight: np.ndarray
    bias: np.ndarray
    registers: np.ndarray
    states: np.ndarray
    source: np.ndarray | None
    tokens: int | None

    @property
    def positions(self) -> int | None:
        return self.tokens if self.source is None else len(self.source)


@dataclass(frozen=True, eq=False)
class Linear:
    """By the dimension of weight: 2 dense on each token; 3 block diagonal on each token; with mix then mixed across
    tokens; 4 dense on the whole sequence, (tokens out, outputs, tokens in, features). A map across tokens takes
    registers and states too, and only input tokens leave it."""

    weight: np.ndarray
    bias: np.ndarray | None
    mix: np.ndarray | None

    @property
    def across(self) -> bool:
        return self.mix is not None or self.weight.ndim == 4

    @property
    def outputs(self) -> int:
        shape = self.weight.shape
        return shape[1] if self.weight.ndim == 4 else shape[0] * shape[1] if self.weight.ndim == 3 else shape[0]

    @property
    def inputs(self) -> int:
        return self.weight.shape[-1] * (self.weight.shape[0] if self.weight.ndim == 3 else 1)

    def on_features(self) -> np.ndarray:
        """(outputs, inputs): what a map of dimension 2 or 3 does to the features of a token."""
        if self.weight.ndim == 2:
            return self.weight
        blocks, outputs, inputs = self.weight.shape
        dense = np.zeros((blocks, outputs, blocks, inputs))
        dense[np.arange(blocks), :, np.arange(blocks), :] = self.weight
        return dense.reshape(blocks * outputs, blocks * inputs)


@dataclass(frozen=True, eq=False)
class Attention:
    """y_i = skip(x_i) + bias + sum_h O_h sum_k softmax_k((Q_h x_i) . (K_h x_k)) V_h x_k over the tokens k that i sees.

    query, key (heads, size, features), value (heads, value size, features), output (heads, outputs, value size);
    keys and values that heads share are stored once, (1, ...).
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    output: np.ndarray
    bias: np.ndarray | None
    mask: str | None
    skip: Linear | None
    grid: tuple[int, ...] | None

    @property
    def heads(self) -> int:
        return len(self.query)

    @property
    def outputs(self) -> int:
        return self.output.shape[1]


@dataclass(frozen=True)
class Softmax:
    """Consecutive groups of features of a token, each replaced by its softmax."""

    groups: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Repeat:
    """Layers, so many times over."""

    layers: tuple[Any, ...]
    times: int


@dataclass(frozen=True)
class Stream:
    """How many tokens of each kind, and how many features; inputs None: any number."""

    inputs: int | None
    registers: int
    states: int
    width: int


@dataclass(frozen=True, eq=False)
class Network:
    """The embed, the layers after it, the kind of token that is put out, and whether inputs have an axis of tokens."""

    embed: Embed
    layers: tuple[Any, ...]
    output: str
    token_axis: bool
    dtype: str
    last: Stream


def read_network(stored: Stored) -> Network:
    """The network of a file."""
    reader = _Reader(stored)
    first, *rest = (reader.layer(row, 0) for row in several(stored.network.get("layers"), "the layers of a network"))
    embeds = [isinstance(layer, Embed) for layer in (first, *rest)]
    require(embeds[0] and not any(embeds[1:]), "a network begins with an Embed, and has no other")
    stream = Stream(first.positions, len(first.registers), len(first.states), first.weight.shape[1])
    for number, layer in enumerate(rest, start=1):
        stream = _follow(layer, stream, f"layer {number}")
    output, axis = str(stored.network.get("output")), stored.network.get("token_axis", True)
    counts = {"input": stream.inputs, "register": stream.registers, "state": stream.states}
    good = output in KINDS and counts[output] != 0 and isinstance(axis, bool)
    require(good, f"output={output!r} and token_axis={axis!r} of a network whose last tokens are {stream}")
    alone = (first.tokens, counts[output]) == (1, 1)
    require(axis or alone, "a network without an axis of tokens that takes or gives more than one")
    require(len(reader.dtypes) == 1, f"the weights have the types {sorted(reader.dtypes)}")
    return Network(first, tuple(rest), output, axis, reader.dtypes.pop(), stream)


class _Reader:
    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.dtypes: set[str] = set()

    def layer(self, row: Any, depth: int) -> Any:
        readers = {
            "Embed": self._embed,
            "Linear": self._linear,
            "Attention": self._attention,
            "Softmax": self._softmax,
            "Repeat": self._repeat,
        }
        kind: Any = row.get("layer") if isinstance(row, dict) else None
        require(kind in readers and depth <= MAX_DEPTH, f"a layer of the kind {str(kind)[:40]!r}, {depth} deep")
        beyond = set(row) - {"layer", *_FIELDS[kind]}
        require(not beyond, f"a {kind} with {min(beyond, default='')[:40]!r}, which is not modelled")
        return self._repeat(row, depth) if kind == "Repeat" else readers[kind](row)

    def weight(self, row: Mapping[str, Any], name: str, dims: tuple[int, ...], needed: bool = True) -> Any:
        given: Any = row.get(name)
        if given is None and not needed:
            return None
        it = f"the {name} of a {row['layer']}"
        require(isinstance(given, dict) and set(given) == {"tensor"}, f"{it} is no array")
        array = self.stored.array(given["tensor"])  # type: ignore[index]
        good = array.dtype.name in ("float32", "float64") and array.ndim in dims and array.size > 0
        require(good, f"{it} has shape {array.shape} and type {array.dtype}")
        require(np.isfinite(array).all(), f"{it} is not finite")
        tiny = (array != 0) & (np.abs(array) < np.finfo(array.dtype).tiny)
        require(not tiny.any(), f"{it} has entries below the smallest normal number")
        self.dtypes.add(array.dtype.name)
        return array.astype(np.float64)

    def _embed(self, row: Mapping[str, Any]) -> Embed:
        weight, bias = self.weight(row, "weight", (2, 3)), self.weight(row, "bias", (1, 2))
        registers, states = (self.weight(row, name, (2,), needed=False) for name in ("registers", "states"))
        tokens = None if row.get("tokens") is None else whole(row["tokens"], 1, MAX_COUNT, "tokens")
        source = None
        if row.get("source") is not None:
            source = self.stored.array((row["source"] or {}).get("tensor"))
            good = source.dtype.kind == "i" and source.ndim == 1 and source.size and tokens is not None
            require(
                bool(good) and source.min() >= 0 and source.max() < tokens, "the source of an Embed names no tokens"
            )
        positions = tokens if source is None else len(source)
        for array, dims, name in ((weight, 3, "weight"), (bias, 2, "bias")):
            fits = array.ndim != dims or len(array) == positions
            require(fits, f"the {name} of an Embed is for {len(array)} positions of {positions}")
        width = weight.shape[-2]
        registers, states = (np.zeros((0, width)) if one is None else one for one in (registers, states))
        fits = bias.shape[-1] == registers.shape[1] == states.shape[1] == width
        require(fits, "the arrays of an Embed do not have the same features")
        weight, bias = (weight if weight.ndim == 3 else weight[None]), (bias if bias.ndim == 2 else bias[None])
        return Embed(weight, bias, registers, states, source, tokens)

    def _linear(self, row: Mapping[str, Any]) -> Linear:
        weight = self.weight(row, "weight", (2, 3, 4))
        mix = self.weight(row, "mix", (2,), needed=False)
        found = Linear(weight, None, mix)
        require(mix is None or weight.ndim < 4, "a Linear on the whole sequence with a mix")
        few = weight.ndim != 3 or weight.size * len(weight) <= MAX_WEIGHTS
        require(few, f"a Linear of {len(weight)} blocks is too large")
        bias = self.weight(row, "bias", (1, 2) if found.across else (1,), needed=False)
        if bias is not None:
            tokens = len(mix) if mix is not None else len(weight)
            fits = bias.shape[-1] == found.outputs and (bias.ndim == 1 or len(bias) == tokens)
            require(fits, "the bias of a Linear does not fit")
        return Linear(weight, bias, mix)

    def _attention(self, row: Mapping[str, Any]) -> Attention:
        query, key, value, output = (self.weight(row, name, (3,)) for name in ("query", "key", "value", "output"))
        bias = self.weight(row, "bias", (1,), needed=False)
        heads, size, width = query.shape
        fits = (
            key.shape in ((heads, size, width), (1, size, width))
            and value.shape[0] in (1, heads)
            and value.shape[2] == width
            and output.shape == (heads, output.shape[1], value.shape[1])
            and (bias is None or bias.shape == (output.shape[1],))
        )
        mask = row.get("mask")
        skip = None if row.get("skip") is None else self.layer(row["skip"], 1)
        if skip is not None:
            fits = fits and isinstance(skip, Linear) and not skip.across
            fits = fits and (skip.inputs, skip.outputs) == (width, output.shape[1])
        grid = row.get("grid")
        if grid is not None:
            grid = tuple(whole(side, 1, MAX_COUNT, "grid") for side in grid) if isinstance(grid, list) else ()
            fits = fits and bool(grid) and size % len(grid) == 0 and mask is None
        require(fits and mask in MASKS, "the arrays of an Attention do not fit, or its mask is not known")
        return Attention(query, key, value, output, bias, mask, skip, grid)

    def _softmax(self, row: Mapping[str, Any]) -> Softmax:
        groups = several(row.get("groups"), "the groups of a Softmax")
        return Softmax(tuple(whole(one, 1, MAX_COUNT, "groups") for one in groups))

    def _repeat(self, row: Mapping[str, Any], depth: int) -> Repeat:
        layers, times = (
            several(row.get("layers"), "the layers of a Repeat"),
            whole(row.get("times"), 1, MAX_COUNT, "times"),
        )
        found = Repeat(tuple(self.layer(one, depth + 1) for one in layers), times)
        fits = not any(isinstance(layer, Embed) for layer in found.layers) and _steps(found) <= MAX_STEPS
        require(fits, "a Repeat of an Embed, or of too many layers")
        return found


_FIELDS: dict[str, tuple[str, ...]] = {
    "Embed": ("weight", "bias", "registers", "states", "source", "tokens", "features"),
    "Linear": ("weight", "bias", "mix", "features"),
    "Attention": ("query", "key", "value", "output", "bias", "mask", "skip", "grid", "features", "labels"),
    "Softmax": ("groups",),
    "Repeat": ("layers", "times"),
}
"""What a layer may hold; features and labels are words for people."""


def _steps(layer: Any) -> int:
    return layer.times * sum(map(_steps, layer.layers)) if isinstance(layer, Repeat) else 1


def _follow(layer: Any, stream: Stream, where: str) -> Stream:
    """The stream that leaves a layer; raises where it does not fit."""
    inputs, registers, states, width = stream.inputs, stream.registers, stream.states, stream.width
    refused = NotVerified(f"{where} ({type(layer).__name__}) does not fit what enters it, {stream}")
    match layer:
        case Linear():
            if layer.inputs != width:
                raise refused
            if not layer.across:
                return Stream(inputs, registers, states, layer.outputs)
            taken = layer.mix.shape[1] if layer.mix is not None else layer.weight.shape[2]
            if inputs is None or inputs + registers + states != taken:
                raise refused
            return Stream(len(layer.mix) if layer.mix is not None else len(layer.weight), 0, 0, layer.outputs)
        case Softmax():
            if sum(layer.groups) != width:
                raise refused
            return stream
        case Attention():
            blind = layer.mask == "registers+states" and not registers + states
            if layer.query.shape[2] != width or blind or prod(layer.grid or (0,)) > registers:
                raise refused
            return Stream(inputs, registers, states, layer.outputs)
        case Repeat():
            after = stream
            for inner in layer.layers:
                after = _follow(inner, after, where)
            if layer.times > 1 and after != stream:
                raise refused
            return after
        case _:
            raise refused
