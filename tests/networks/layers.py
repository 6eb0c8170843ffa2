"""Rows of the bare grammar: each layer, with each of its forms, in a network of 3 tokens with 2 features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax

from .row import Row, row

FEATURES = ("height", "width", "position", "one")


@dataclass(frozen=True)
class Layers:
    """Layers for a stream of 4 features, with weights that are the same every time."""

    dtype: str
    rng: np.random.Generator

    def array(self, *shape: int) -> np.ndarray:
        return self.rng.normal(size=shape).astype(self.dtype)

    def embed(self, registers: int = 0, states: int = 0, **more: Any) -> Embed:
        return Embed(
            more.pop("weight", self.array(4, 2)),
            more.pop("bias", self.array(4)),
            registers=self.array(registers, 4) if registers else None,
            states=self.array(states, 4) if states else None,
            tokens=3,
            features=FEATURES,
            **more,
        )

    def own_embed(self) -> Embed:
        """Five positions with weights of their own, taken from three inputs."""
        return self.embed(weight=self.array(5, 4, 2), bias=self.array(5, 4), source=np.array([0, 2, 2, 1, 0]))

    def linear(self, *shape: int, bias: tuple[int, ...] | None = None, mix: tuple[int, int] | None = None) -> Linear:
        arrays = (None if one is None else self.array(*one) for one in (bias, mix))
        return Linear(self.array(*shape), *arrays)

    def attention(self, heads: int = 2, keys: int = 2, values: int = 2, **more: Any) -> Attention:
        size = more.pop("size", 2)
        shapes = ((heads, size, 4), (keys, size, 4), (values, 3, 4), (heads, 4, 3))
        return Attention(*(self.array(*shape) for shape in shapes), **more)

    def skip(self) -> Linear:
        return Linear.identity(FEATURES, self.dtype)


def _layer(name: str, layers: Callable[[Layers], list[Any]], *tags: str, output: str = "input") -> Row:
    def build(dtype: str) -> Network:
        return Network(layers(Layers(dtype, np.random.default_rng([*name.encode()]))), output=output)

    return row(name, "layer", build, "tokens", *tags)


ROWS = (
    _layer("embed", lambda of: [of.embed()]),
    _layer("embed, own weights and source", lambda of: [of.own_embed()]),
    _layer("embed, registers", lambda of: [of.embed(3)], "constant", output="register"),
    _layer("linear", lambda of: [of.embed(2, 1), of.linear(3, 4, bias=(3,))]),
    _layer("linear, blocks", lambda of: [of.embed(), of.linear(2, 3, 2, bias=(6,))]),
    _layer("linear, mix", lambda of: [of.embed(1, 1), of.linear(3, 4, bias=(2, 3), mix=(2, 5))], "across"),
    _layer("linear, mix of blocks", lambda of: [of.embed(), of.linear(2, 1, 2, mix=(2, 3))], "across"),
    _layer("linear, sequence", lambda of: [of.embed(1), of.linear(2, 3, 4, 4, bias=(2, 3))], "across"),
    _layer("softmax, equal groups", lambda of: [of.embed(), Softmax((2, 2))], "softmax"),
    _layer("softmax, unequal groups", lambda of: [of.embed(), Softmax((3, 1))], "softmax"),
    _layer("attention", lambda of: [of.embed(2, 1), of.attention(bias=of.array(4))]),
    _layer("attention, shared", lambda of: [of.embed(2), of.attention(keys=1, values=1)]),
    _layer(
        "attention, causal",
        lambda of: [of.embed(2, 1), of.attention(mask="causal", skip=of.skip())],
        "causal",
        "sample",
    ),
    _layer(
        "attention, causal, state", lambda of: [of.embed(2, 2), of.attention(mask="causal")], "causal", output="state"
    ),
    _layer("attention, self+registers", lambda of: [of.embed(2, 1), of.attention(mask="self+registers", keys=1)]),
    _layer("attention, self alone", lambda of: [of.embed(), of.attention(mask="self+registers")]),
    _layer(
        "attention, registers+states",
        lambda of: [of.embed(2, 1), of.attention(mask="registers+states", skip=of.skip())],
    ),
    _layer("attention, grid", lambda of: [of.embed(6), of.attention(grid=(2, 3), size=4)], "grid heads"),
    _layer(
        "attention, grid of 3 axes",
        lambda of: [of.embed(12, 1), of.attention(grid=(2, 3, 2), size=3, keys=1)],
        "grid heads",
    ),
    _layer(
        "repeat",
        lambda of: [of.embed(2, 1), Repeat([of.attention(skip=of.skip()), Softmax((4,))], 2)],
        *("repeat", "softmax"),
        output="state",
    ),
    _layer(
        "repeat, nested",
        lambda of: [
            of.embed(4),
            Repeat([Repeat([of.attention(mask="causal")], 2), of.attention(grid=(4,)), of.linear(4, 4)], 2),
        ],
        *("repeat", "causal"),
    ),
)
