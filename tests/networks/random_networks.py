"""Random networks of the whole grammar, for hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax, Stream

GRIDS = [(2,), (5,), (1, 3), (2, 2), (3, 2), (2, 1, 3), (2, 2, 2)]


@dataclass
class Maker:
    """Draws structure from hypothesis and weights from a seeded generator, some of them 0."""

    draw: Any
    rng: np.random.Generator
    zeros: float
    dtype: str

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def array(self, *shape: int) -> np.ndarray:
        values = self.rng.normal(size=shape) * 0.7
        values[self.rng.random(shape) < self.zeros] = 0.0
        return values.astype(self.dtype)

    def maybe(self, *shape: int) -> np.ndarray | None:
        return self.array(*shape) if self.pick(True, False) else None

    def embed(self) -> tuple[Embed, tuple[int, ...] | None]:
        inputs, width, tokens = self.pick(1, 2, 3), self.pick(1, 2, 3, 4), self.pick(1, 2, 3, 4)
        fixed, grid = self.pick(True, True, False), self.pick(None, *GRIDS)
        source = None
        if fixed and self.pick(True, False):
            source = self.rng.integers(0, tokens, size=self.pick(1, 3, 5))
        positions = tokens if source is None else len(source)
        own_weight, own_bias = fixed and self.pick(True, False), fixed and self.pick(True, False)
        registers = self.pick(0, 1, 3) if grid is None else int(np.prod(grid))
        states = self.pick(0, 0, 1, 2)
        embed = Embed(
            self.array(*([positions] if own_weight else []), width, inputs),
            self.array(*([positions] if own_bias else []), width),
            registers=self.array(registers, width) if registers else None,
            states=self.array(states, width) if states else None,
            source=source,
            tokens=tokens if fixed else None,
        )
        return embed, grid

    def linear(self, stream: Stream, outputs: int) -> Linear:
        """On each token, dense or block diagonal."""
        blocks = self.pick(*(b for b in (1, 2, 3) if stream.width % b == 0 and outputs % b == 0))
        shape = (outputs, stream.width)
        if blocks > 1 or self.pick(True, False):
            shape = (blocks, outputs // blocks, stream.width // blocks)
        return Linear(self.array(*shape), self.maybe(outputs))

    def across(self, stream: Stream, tokens_out: int, outputs: int) -> Linear:
        tokens = stream.tokens or 0
        bias = self.pick(None, self.array(outputs), self.array(tokens_out, outputs))
        if self.pick(True, False):
            return Linear(self.array(tokens_out, outputs, tokens, stream.width), bias)
        inner = self.linear(stream, outputs)
        return Linear(inner.weight, bias, mix=self.array(tokens_out, tokens))

    def attention(self, stream: Stream, outputs: int, grid: tuple[int, ...] | None) -> Attention:
        heads, size, values = self.pick(1, 2, 3), self.pick(1, 2, 3), self.pick(1, 2, 3)
        on_grid = grid is not None and int(np.prod(grid)) == stream.registers and self.pick(True, False)
        size = size * len(grid) if on_grid and grid is not None else size
        few = ("registers+states",) if stream.registers + stream.states else ()
        return Attention(
            self.array(heads, size, stream.width),
            self.array(self.pick(1, heads), size, stream.width),
            self.array(self.pick(1, heads), values, stream.width),
            self.array(heads, outputs, values),
            bias=self.maybe(outputs),
            mask=None if on_grid else self.pick(None, "causal", "self+registers", *few),
            skip=self.linear(stream, outputs) if self.pick(True, False) else None,
            grid=grid if on_grid else None,
        )

    def softmax(self, stream: Stream) -> Softmax:
        left, groups = stream.width, []
        while left:
            groups.append(self.draw(st.integers(1, left)))
            left -= groups[-1]
        return Softmax(tuple(groups))

    def layers(self, stream: Stream, grid: tuple[int, ...] | None, depth: int, loop: bool) -> list[Any]:
        """Some layers; in a loop they end with the shape that they started with."""
        result: list[Any] = []
        start = stream
        for _ in range(self.pick(*((1, 2) if loop else (0, 1, 2, 3)))):
            kind = self.pick("linear", "across", "attention", "attention", "softmax", "repeat")
            outputs = self.pick(1, 2, 3, 4, 6)
            if kind == "softmax":
                layer: Any = self.softmax(stream)
            elif kind == "repeat" and depth < 2:
                times = self.pick(1, 2, 3)
                layer = Repeat(self.layers(stream, grid, depth + 1, loop=loop or times > 1), times)
            elif kind == "across" and stream.tokens and (not loop or stream.tokens == stream.inputs):
                layer = self.across(stream, stream.tokens if loop else self.pick(1, 2, 4), outputs)
            elif kind == "attention":
                layer = self.attention(stream, outputs, grid)
            else:
                layer = self.linear(stream, outputs)
            result.append(layer)
            stream = layer.follow(stream)
        if not result or (loop and stream.width != start.width):
            result.append(self.linear(stream, start.width))
        return result


@st.composite
def networks(draw: Any, dtype: str = "float64") -> tuple[Network, int]:
    """A random network and how many tokens to give it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    maker = Maker(draw, rng, draw(st.sampled_from([0.0, 0.3, 0.8])), dtype)
    embed, grid = maker.embed()
    layers = maker.layers(embed.start(), grid, 0, loop=False)
    kinds = Network([embed, *layers]).streams[-1].kinds
    tokens = draw(st.sampled_from([1, 2, 4])) if embed.tokens is None else embed.tokens
    return Network([embed, *layers], output=draw(st.sampled_from(kinds))), tokens
