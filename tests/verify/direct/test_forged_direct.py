"""Networks made by hand that the evaluation "direct" computes otherwise than they are stated: none is verified, or
none runs in that way."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from anchorhead.domain import Box
from anchorhead.language.expressions.parser import parse
from anchorhead.language.program import Program, Writer
from anchorhead.language.steps import Affine, Term
from anchorhead.network import Attention, Embed, Linear, Network, Softmax
from anchorhead.network.claim_table import ClaimTable
from anchorhead.network.derivation import Derivation
from anchorhead.proof.statement import Statement
from anchorhead.verify import verify

from ..naming import together

NOWHERE: dict[str, Any] = {"origin": 0.0, "low": None, "high": None, "coefficients": [], "scale": 1.0, "shift": 0.0}


def series(keys: list[tuple[float, float, float]], **more: Any) -> dict[str, Any]:
    """A series of a head whose keys are these triples of a slope, an offset and a value, sorted."""
    slopes, offsets, values = (list(column) for column in zip(*keys, strict=True))
    return {"slopes": slopes, "offsets": offsets, "values": values, "reach": 1e30, "error": 0.0, **NOWHERE, **more}


@dataclass(frozen=True, eq=False)
class Forged:
    """A network that is said to give weight . x + constant within a bound, and the series that it stores."""

    network: Network
    bound: float
    weight: np.ndarray
    constant: float = 0.0
    high: Any = 1.0
    low: Any = -1.0
    stored: list[dict[str, Any]] = field(default_factory=list)
    claims: ClaimTable = field(default_factory=ClaimTable.empty)
    """Of softmaxes that are said to compute tanh of the last input."""

    @property
    def box(self) -> Box:
        return Box.of((self.low, self.high)).broadcast_to((self.network.embed.tokens or 1, self.inputs))

    @property
    def inputs(self) -> int:
        return self.network.embed.weight.shape[-1]

    def made(self) -> Network:
        statement = Statement(self.bound, (), "by hand", "a map", evaluations=("plain", "direct"))
        return self.network.with_(
            program=self._program(),
            derivation=Derivation("by hand", {"series": self.stored}, claims=self.claims),
            certificate=statement.certificate(self.box, self.network.dtype),
        )

    def _program(self) -> Program:
        writer, tokens = Writer(), self.network.embed.tokens or 1
        x = writer.input([f"x{n}" for n in range(self.inputs)], self.box.low, self.box.high, tokens=tokens)
        if len(self.claims.units):
            last = writer.affine({x: np.eye(self.inputs)[-1:]}, np.zeros(1))
            writer.apply(parse("tanh(x)"), (last,), ("x",), 1)
        weight = self.weight if tokens == 1 else self.weight.reshape(1, 1, tokens, self.inputs)
        return writer.program(writer.add(Affine((Term(x, weight),), np.full((1, 1), self.constant)), "map"))

    def error(self) -> float:
        """The largest that is found."""
        tokens, rng = self.network.embed.tokens or 1, np.random.default_rng(1)
        x = self.box.low + (self.box.high - self.box.low) * rng.random((200, tokens, self.inputs))
        x = np.concatenate([self.box.low[None], self.box.high[None], x]).astype(self.network.dtype)
        meant = np.einsum("ntf,tf->n", x.astype(float), self.weight.reshape(tokens, -1)) + self.constant
        found = self.made()(x, outside="ignore").astype(float).reshape(len(x))
        return float(np.where(np.isnan(found), np.inf, np.abs(found - meant)).max())


def anchors(keys: list[tuple[float, float]], width: int = 4) -> np.ndarray:
    """Registers that hold a slope and a value, behind features 0 and 1 of inputs."""
    found = np.zeros((len(keys), width), np.float32)
    found[:, 2:4] = keys
    return found


def head(read: float = 1.0, outputs: int = 1, **more: Any) -> Attention:
    """One on feature 0, over registers as `anchors` makes them."""
    query, key, value = (np.zeros((1, 1, 4), np.float32) for _ in range(3))
    query[0, 0, 0], key[0, 0, 2], value[0, 0, 3] = 1.0, 1.0, 1.0
    return Attention(query, key, value, np.full((1, outputs, 1), read, np.float32), **more)


def embed(registers: np.ndarray) -> Embed:
    return Embed(np.eye(registers.shape[1], 1, dtype=np.float32), np.zeros(registers.shape[1], np.float32), tokens=1,
                 registers=registers)  # fmt: skip


def series_of_a_constant() -> Forged:
    """All slopes are 0: a constant softmax, but a query that varies, and so a head that runs by its series."""
    keys = [(0.0, -1.0), (0.0, 1.0)]
    net = Network([embed(anchors(keys)), head(grid=(2,))])
    return Forged(net, 1e-3, np.zeros((1, 1)), stored=[series([(0, 0, -1), (0, 0, 1)], shift=1000.0)])


def sigmoid_of_a_constant() -> Forged:
    """The same, and two keys as a sigmoid."""
    row = {"slopes": [0.0, 0.0], "offsets": [0.0, 0.0], "values": [-1.0, 1.0]}
    sigmoid = {**row, "rate": 1.0, "lead": 0.0, "scale": 1000.0, "shift": 1000.0}
    return replace(series_of_a_constant(), stored=[sigmoid])


def series_of_nothing() -> Forged:
    """Of three keys the two that are heard hold 0; the third would be heard for other t."""
    keys = [(-2000.0, 1.0), (2000.0, 0.0), (2001.0, 0.0)]
    net = Network([embed(anchors(keys)), head(grid=(3,))])
    stored = series([(-2000, 0, 1), (2000, 0, 0), (2001, 0, 0)], shift=1000.0)
    return Forged(net, 1e-3, np.zeros((1, 1)), low=1.0, high=2.0, stored=[stored])


def series_that_registers_ask() -> Forged:
    """A register reads the input, asks with it, and the input reads the register."""
    # 0: x, 1: is an input, 2: slope, 3: value, 4: is the first register, 5: x, as read, 6: is a register, 7: its read
    width = 9
    registers = np.zeros((3, width), np.float32)
    registers[0, 4], registers[:, 6] = 1.0, 1.0
    registers[1:, 2], registers[1:, 3] = (-1.0, 1.0), (-1.0, 1.0)
    start = np.zeros(width, np.float32)
    start[1] = 1.0
    first = Embed(np.eye(width, 1, dtype=np.float32), start, tokens=1, registers=registers)

    def layer(query: tuple[int, float], key: int, value: int, output: int, **more: Any) -> Attention:
        q, k, v = (np.zeros((1, 1, width), np.float32) for _ in range(3))
        o = np.zeros((1, width, 1), np.float32)
        q[0, 0, query[0]], k[0, 0, key], v[0, 0, value], o[0, output, 0] = query[1], 1.0, 1.0, 1.0
        return Attention(q, k, v, o, skip=Linear(np.eye(width, dtype=np.float32)), **more)

    copy = layer((6, 4000.0), 1, 0, 5)
    asks = layer((5, 1.0), 2, 3, 7, grid=(3,))
    give = layer((1, 4000.0), 4, 7, 8, grid=(3,))
    last = np.zeros((1, width), np.float32)
    last[0, 8] = 1.0
    net = Network([first, copy, asks, give, Linear(last)])
    stored = series([(-1, 0, -1), (0, 0, 0), (1, 0, 1)], shift=1000.0)
    return Forged(net, 3.0, np.zeros((1, 1)), stored=[stored])


def factors_beyond_the_dtype() -> Forged:
    """2^100 times 2^100 is no number of float32."""
    maps = [Linear(np.full((1, 1), 2.0**100, np.float32))]
    first = Embed(np.full((1, 1), 2.0**100, np.float32), np.zeros(1, np.float32), tokens=1)
    return Forged(Network([first, *maps]), 2.0**110, np.full((1, 1), 2.0**200), low=0.0, high=2.0**-80)


def factors_below_the_dtype() -> Forged:
    """3 times 2^-100 times 2^-100 is 0 in float32, but of an input of 2^120 something is left."""
    first = Embed(np.full((1, 1), 2.0**-100, np.float32), np.zeros(1, np.float32), tokens=1)
    maps = [Linear(np.full((1, 1), one, np.float32)) for one in (2.0**-100, 3.0, 2.0**120)]
    return Forged(Network([first, *maps]), 1000.0, np.full((1, 1), 3 * 2.0**-80), low=0.0, high=2.0**110)


def negative_zeros() -> Forged:
    """Groups whose logits differ in the sign of a 0 have one base, and its series."""
    first = Embed(np.eye(2, dtype=np.float32), np.zeros(2, np.float32), tokens=1)
    logits, step = np.zeros((6, 2), np.float32), np.float32(1e-3)
    logits[:3, 0], logits[3:, 1] = (-step, 0.0, step), (-step, -0.0, step)
    values = np.array([[-1000.0, 0.0, 1000.0, -500.0, 0.0, 500.0]], np.float32)
    net = Network([first, Linear(logits), Softmax((3, 3)), Linear(values)])
    stored = series([(-float(step), 0, -1000), (0, 0, 0), (float(step), 0, 1000)], low=-2.0, high=2.0, scale=2 / 3)
    ends = np.array([1.0, 100.0])
    return Forged(net, 2.0, np.array([[2 / 3, 1 / 3]]), low=-ends, high=ends, stored=[stored])


def sums_of_what_is_folded() -> Forged:
    """1024 tokens read x, each by a series whose q is 1000 times as large; a map across tokens takes q in the place of
    the reads, and the sums of many q round by more."""
    tokens, step = 1024, float(np.float32(1e-3))
    start = Embed(np.ones((1, 1), np.float32), np.zeros(1, np.float32), tokens=tokens)
    spread, bias = np.zeros((tokens, 5, tokens, 1), np.float32), np.zeros((tokens, 5), np.float32)
    spread[np.arange(tokens), 0, np.arange(tokens)] = 1.0
    bias[:, 1], bias[2:, 4] = 1.0, -4000.0
    bias[:2, 2], bias[:2, 3] = (-step, step), (-1000.0, 1000.0)
    query, key, value = (np.zeros((1, size, 5), np.float32) for size in (2, 2, 1))
    query[0, [0, 1], [0, 1]], key[0, [0, 1], [2, 4]], value[0, 0, 3] = 1.0, 1.0, 1.0
    reads = Attention(query, key, value, np.ones((1, 1, 1), np.float32))
    net = Network([start, Linear(spread, bias), reads, Linear(np.ones((1, 1, tokens, 1), np.float32))])
    stored = series([(-step, 0, -1000), (step, 0, 1000)], origin=-1000.0, shift=-1000.0)
    return Forged(net, 1.0, np.ones((1, tokens)), stored=[stored], low=0.0, high=0.06)


def skips_with_sums_of_their_own() -> Forged:
    """A skip with a bias is a sum of its own, of small numbers, to which a large one is added."""
    inputs = 1001
    start = Embed(np.eye(inputs, dtype=np.float32), np.zeros(inputs, np.float32), tokens=1)
    value, weight = np.eye(1, inputs, dtype=np.float32)[None], np.ones((1, inputs), np.float32)
    weight[0, 0] = 0.0
    skip = Linear(weight, np.zeros(1, np.float32))
    copy = Attention(np.zeros_like(value), np.zeros_like(value), value, np.ones((1, 1, 1), np.float32), skip=skip)
    ends = np.full((2, inputs), 0.03)
    ends[0, 0], ends[1, 0], ends[0, 1:] = 2.0**20, 2.0**20 + 1, 0.0
    return Forged(Network([start, copy]), 1.0, np.ones((1, inputs)), low=ends[0], high=ends[1])


def keys_folded_into_queries() -> Forged:
    """States that ask alone are spared the keys of others: K^T q may overflow where K x and q . K x do not."""
    start = Embed(np.eye(3, 1, dtype=np.float32), np.eye(3, dtype=np.float32)[1], tokens=1,
                  states=np.eye(3, dtype=np.float32)[2:])  # fmt: skip
    query, key, value = (np.zeros((1, 1, 3), np.float32) for _ in range(3))
    query[0, 0, 2], key[0, 0, 0], value[0, 0, 1] = 2.0**60, 2.0**100, 1.0
    net = Network([start, Attention(query, key, value, np.ones((1, 1, 1), np.float32))], output="state")
    return Forged(net, 0.75, np.zeros((1, 1)), constant=0.5, low=2.0**-81, high=2.0**-80)


def reads_beyond_the_dtype() -> Forged:
    """Of what a head reads the output takes 2^-100, and scale q is no number of float32, though scale q + shift is."""
    near, step, value = 2.0**108, 2.0**-108, float(np.float32(2.0**125.9))
    read, shift = value * np.tanh(1.0), -float(np.float32(2.0**127.95))
    net = Network([embed(anchors([(-step, -value), (step, value)])), head(read=2.0**-100, grid=(2,))])
    stored = series([(-step, 0, -value), (step, 0, value)], scale=(read - shift) / near, shift=shift)
    return Forged(
        net, 2.0**44, np.zeros((1, 1)), read * 2.0**-100, low=near, high=near * (1 + 2.0**-13), stored=[stored]
    )


def of_pieces(bound: float, *pieces: dict[str, Any], **more: Any) -> Forged:
    """A step from -1 to 1 by a series whose own quotient is 0 and of pieces beside it, each 1 + c where it is not said
    otherwise."""
    nowhere = {"origin": 0.0, "below": []}
    beside = [{**nowhere, "low": 1.0, "high": 1.0, "coefficients": [], **one} for one in pieces]
    stored = series([(-1, 0, -1), (1, 0, 1)], beside=beside, **{"low": 0.0, "high": 0.0, **more})
    net = Network([embed(anchors([(-1.0, -1.0), (1.0, 1.0)])), head(grid=(2,))])
    return Forged(net, bound, np.zeros((1, 1)), stored=[stored])


def pieces_of_which_nothing_is_taken() -> Forged:
    """2^-151 is 0 in float32, but of a piece of 1000 2^111, and times 2^40, it is 1000."""
    piece = {"coefficients": [[2, 1000 * 2.0**111]], "scale": 2.0**-151}
    return of_pieces(5.0, piece, scale=2.0**40, shift=-1000.0)


def pieces_beyond_the_dtype() -> Forged:
    """Two that cancel, each of 3e41, of which 2^-40 is taken behind them."""
    return of_pieces(1e25, *({"coefficients": [[2, 1e3]], "scale": one} for one in (3e38, -3e38)), scale=2.0**-40)


def factors_of_pieces_beyond_the_dtype() -> Forged:
    return of_pieces(1e36, *({"coefficients": [[2, -1 + 2.0**-20]], "scale": one} for one in (1e39, -1e39)))


def pieces_that_are_clipped_nowhere() -> Forged:
    return of_pieces(5.0, {"low": None, "high": None, "scale": -1.0}, low=None, high=None)


def logits_of_their_own(inputs: int) -> Forged:
    """A group that asks with the first input is said to compute tanh of the last one, each logit being a sum of its
    own; but it runs as any other group of one feature does."""
    count = 20
    slopes = 1 + np.arange(count) * 2.0**-12
    slopes, logits = np.concatenate([-slopes[::-1], slopes]), np.zeros((2 * count, inputs), np.float32)
    logits[:, 0], keys = slopes, np.sign(slopes)
    first = Embed(np.eye(inputs, dtype=np.float32), np.zeros(inputs, np.float32), tokens=1)
    net = Network([first, Linear(logits), Softmax((2 * count,)), Linear(keys[None].astype(np.float32))])
    of = zip(slopes.tolist(), np.zeros(2 * count).tolist(), keys.tolist(), strict=True)
    stored = series(list(of), scale=2.0**-30, shift=8.0)
    claims = replace(together(0, 1, 0.0), numbers=np.array([[0.0, 0.0, 1.0, 0.0, 0.0]]))
    return Forged(net, 1.5, np.zeros((1, inputs)), stored=[stored], claims=claims)


def logits_of_one_feature() -> Forged:
    return logits_of_their_own(1)


def logits_of_another_feature() -> Forged:
    return logits_of_their_own(2)


def keys_just_beyond_reach() -> Forged:
    """Of equal slopes one is SILENT below the others, by less than is noise: without it two groups are multiples of one
    row, with it they are not."""
    offsets = np.array([-800 - 5e-10, *np.repeat((-1.0, 0.0), 20)])
    count, first = len(offsets), Embed(np.eye(2), np.zeros(2), tokens=1)
    values = np.ones((2, count))
    values[:, 0] = 0.0, 0.5
    logits = Linear(np.repeat(np.eye(2), count, axis=0), np.tile(offsets, 2))
    net = Network([first, logits, Softmax((count, count)), Linear(values.reshape(1, -1))])
    stored = series([(1.0, one, 1.0) for one in offsets[1:].tolist()], scale=2.0**-30, shift=8.0)
    return Forged(net, 2.5, np.zeros((1, 2)), stored=[stored])


def of_groups(keys: list[tuple[float, float, float]], stored: dict[str, Any], count: int = 4, **more: Any) -> Forged:
    """Groups on one input, each of them a head of these keys in float64, and what is stored for their base."""
    slopes, offsets, values = (np.tile(column, count) for column in np.array(keys).T)
    layers = [Linear(slopes[:, None], offsets), Softmax((len(keys),) * count), Linear(values[None])]
    net = Network([Embed(np.eye(1), np.zeros(1), tokens=1), *layers])
    return Forged(net, **{"weight": np.zeros((1, 1)), "bound": 5.0, **more}, stored=[stored])


def keys_beyond_float64() -> Forged:
    """Where the last two lines meet, the first one is no number of float64; near 0 the last one is never heard."""
    keys = [(-2e155, 0.0, -1.0), (0.0, 0.0, 1.0), (1e150, -1e303, 1.0)]
    return of_groups(keys, series(keys, shift=1000.0), low=-1e-155, high=1e-155)


def sigmoids_of_groups() -> Forged:
    """One that has nothing of the two keys but their names."""
    stored = {"slopes": [-1.0, 1.0], "offsets": [0.0, 0.0], "values": [-1.0, 1.0]}
    return of_groups(
        [(-1.0, 0.0, -1.0), (1.0, 0.0, 1.0)], {**stored, "rate": 2.0, "lead": 0.0, "scale": 2.0, "shift": 7.0}
    )


def sums_of_groups() -> Forged:
    """The read of each is x/1000, but q and the shift are as large as 2^62: sums of many of them lose more than all."""
    step, far = 2.0**-10, 2.0**62
    keys = [(-step, 0.0, -1.0), (step, 0.0, 1.0)]
    read = np.tanh(step)
    stored = series(keys, origin=-far, scale=read, shift=-far * read)
    weight = np.full((1, 1), 1024 * read)
    return of_groups(keys, stored, 1024, bound=1100.0, weight=weight)


def groups_that_heads_ask() -> Forged:
    """A head that is said to be tanh, and groups that ask with what it reads, both by a series that they have not."""
    keys = [(-1.0, -1.0), (1.0, 1.0)]
    logits = np.zeros((4, 4), np.float32)
    logits[:, 0] = (-1.0, 1.0, -1.0, 1.0)
    behind = Linear(np.array([[-1.0, 1.0, -1.0, 1.0]], np.float32))
    net = Network([embed(anchors(keys)), head(outputs=4, grid=(2,)), Linear(logits), Softmax((2, 2)), behind])
    stored = series([(-1, 0, -1), (1, 0, 1)], shift=1000.0)
    claims = replace(together(0, 1, 0.0), numbers=np.array([[1.0, 0.0, 1.0, 0.0, 0.0]]))
    return Forged(net, 5.0, np.zeros((1, 1)), stored=[stored], claims=claims)


def shifts_near_the_largest_number() -> Forged:
    """Of float64: it is a number, and so are three times as much, but not 2^27 times as much."""
    registers, layer = anchors([(-1.0, -1.0), (1.0, 1.0)]).astype(np.float64), head(3.0)
    first = Embed(np.eye(4, 1), np.zeros(4), tokens=1, registers=registers)
    weights = (one.astype(np.float64) for one in (layer.query, layer.key, layer.value, layer.output))
    net = Network([first, Attention(*weights, grid=(2,))])
    return Forged(net, 1e304, np.zeros((1, 1)), stored=[series([(-1, 0, -1), (1, 0, 1)], shift=1e302)])


def heads_that_read_nothing() -> Forged:
    """Two heads are tanh, the second being 0, of which only a key that is never heard holds anything: by what is stored
    for both they are tanh, too, but the second one is not computed at all."""
    # 0: x, 1: 1, 2: slope, 3: offset, 4 and 5: values
    registers = np.zeros((3, 6), np.float32)
    registers[:2, [2, 4]], registers[2, [3, 5]] = [[-1.0, -1.0], [1.0, 1.0]], (-4000.0, 1.0)
    first = Embed(np.eye(6, 1, dtype=np.float32), np.eye(6, dtype=np.float32)[1], tokens=1, registers=registers)
    query, key, value = (np.eye(6, dtype=np.float32)[None, rows] for rows in ([0, 1], [2, 3], [4, 5]))
    net = Network([first, Attention(query, key, value, np.ones((1, 1, 2), np.float32), grid=(3,))])
    stored = [
        series([(-1, 0, -1), (1, 0, 1)], shift=1000.0),
        series([(-1, 0, 0), (1, 0, 0)], shift=-1000.0, low=0.0, high=0.0),
    ]
    claims = replace(together(0, 1, 0.0), numbers=np.array([[1.0, 0.0, 1.0, 0.0, 0.0]]),
                     softmaxes=np.array([[0, 0, 0, -1], [0, 0, 1, -1]]))  # fmt: skip
    return Forged(net, 5.0, np.zeros((1, 1)), stored=stored, claims=claims)


def keys_that_sums_may_leave_out() -> Forged:
    """Two heads are tanh, the second being tiny, one of whose keys is silent or not, as its offset is summed: by what
    is stored for both they are tanh, too, but where that key is heard the second one is a softmax."""
    # 0: x, 1 to 4: 1, 5: slope, 6 and 7: values, 8: the first head's offset, 9 to 12: what the second one's is a sum of
    far, width = 1e20, 13
    registers = np.zeros((3, width))
    registers[:2, 5], registers[:2, 6], registers[:, 7] = (-1.0, 1.0), (-1.0, 1.0), 1e-3
    registers[2, [8, 10, 11, 12]] = -4000.0, -far, far, -4000.0
    start = np.zeros(width)
    start[1:5] = 1.0
    first = Embed(np.eye(width, 1), start, tokens=1, registers=registers)
    query, key, value = np.zeros((2, 5, width)), np.zeros((2, 5, width)), np.zeros((2, 1, width))
    query[:, range(5), range(5)], key[:, 0, 5], key[0, 1, 8] = 1.0, 1.0, 1.0
    key[1, range(1, 5), range(9, 13)], value[[0, 1], 0, [6, 7]] = 1.0, 1.0
    net = Network([first, Attention(query, key, value, np.ones((2, 1, 1)), grid=(3,))])
    stored = [
        series([(-1, 0, -1), (1, 0, 1)], shift=1000.0),
        series([(-1, 0, 1e-3), (1, 0, 1e-3)], shift=-1000.0, low=0.0, high=0.0),
    ]
    claims = replace(together(0, 2, 0.0), numbers=np.array([[1.0, 0.0, 1.0, 0.0, 0.0]]))
    return Forged(net, 5.0, np.zeros((1, 1)), stored=stored, claims=claims)


def numbers_that_are_summed_twice() -> Forged:
    """A head reads tanh(a t) and its opposite, by two columns of values, for a sum t; other heads read the second one
    for other sums. Each column is computed for all that read it, from sums in an order of their own."""
    inputs, heads, rng = 64, 8, np.random.default_rng(0)
    # inputs, slope, values; and behind a map: what heads ask with, slope, values
    registers = np.zeros((2, inputs + 3), np.float32)
    registers[:, inputs:] = 2.0**22, 1000.0, -1000.0
    registers[0, inputs:] *= -1.0
    first = Embed(np.eye(inputs + 3, inputs, dtype=np.float32), np.zeros(inputs + 3, np.float32), tokens=1,
                  registers=registers)  # fmt: skip
    weight = np.zeros((heads + 3, inputs + 3), np.float32)
    weight[:heads, :inputs], weight[heads:, inputs:] = rng.uniform(0.5, 1.0, (heads, inputs)), np.eye(3)
    x = rng.uniform(0.5, 1.0, inputs) * rng.choice([-1.0, 1.0], inputs)
    x[-1] = -(weight[0, : inputs - 1] @ x[:-1]) / weight[0, inputs - 1]
    low, high = ((x + step).astype(np.float32).astype(float) for step in (-(2.0**-22), 2.0**-22))
    query, output = np.zeros((heads, 1, heads + 3), np.float32), np.zeros((heads, 1, 2), np.float32)
    query[range(heads), 0, range(heads)], output[1:, 0, 1], output[0] = 1.0, 2.0**-60, 1.0
    key, value = (np.eye(heads + 3, dtype=np.float32)[None, rows] for rows in ([heads], [heads + 1, heads + 2]))
    net = Network([first, Linear(weight), Attention(query, key, value, output, grid=(2,))])
    claims = replace(together(1, 1, 0.0), softmaxes=np.array([[0, 0, 0, -1], [0, 0, 1, -1]]))
    return Forged(net, 1.0, np.zeros((1, inputs)), low=low, high=high, claims=claims)


FORGED: tuple[Callable[[], Forged], ...] = (
    series_of_a_constant, sigmoid_of_a_constant, series_of_nothing, series_that_registers_ask, factors_beyond_the_dtype,
    factors_below_the_dtype, negative_zeros, sums_of_what_is_folded,
    skips_with_sums_of_their_own, keys_folded_into_queries, reads_beyond_the_dtype,
    pieces_of_which_nothing_is_taken, pieces_beyond_the_dtype, factors_of_pieces_beyond_the_dtype,
    pieces_that_are_clipped_nowhere, logits_of_one_feature, logits_of_another_feature,
    shifts_near_the_largest_number, keys_just_beyond_reach,
    keys_beyond_float64, sigmoids_of_groups, sums_of_groups, groups_that_heads_ask,
    heads_that_read_nothing, keys_that_sums_may_leave_out, numbers_that_are_summed_twice,
)  # fmt: skip


@pytest.mark.all_cases
@pytest.mark.parametrize("name", [forged.__name__ for forged in FORGED])
def test_what_is_accepted_holds(name: str) -> None:
    case = next(one for one in FORGED if one.__name__ == name)()
    with tempfile.TemporaryDirectory() as folder:
        case.made().save(Path(folder) / "network.safetensors")
        found = verify(Path(folder) / "network.safetensors")
    assert not found.verified or case.error() <= case.bound


def test_products_of_sums_do_not_underflow_one_by_one(tmp_path: Path) -> None:
    """A head asks with 2^-100 times a sum of 2,048 terms, where underflow goes to zero: that factor belongs to the sum,
    and to none of its terms."""
    inputs, much = 2048, 2.0**100
    registers = np.zeros((2, inputs + 2), np.float32)
    registers[:, inputs:] = [[-much, -1.0], [much, 1.0]]
    first = Embed(np.eye(inputs + 2, inputs, dtype=np.float32), np.zeros(inputs + 2, np.float32), tokens=1,
                  registers=registers)  # fmt: skip
    weight = np.zeros((3, inputs + 2), np.float32)
    weight[0, :inputs], weight[1:, inputs:] = 1.5, np.eye(2)
    query, key, value = (np.eye(3, dtype=np.float32)[None, [row]] for row in range(3))
    heads = Attention(query / np.float32(much), key, value, np.ones((1, 1, 1), np.float32), grid=(2,))
    claims = replace(together(1, 1, 0.0), numbers=np.array([[much, 0.0, 1.0, 0.0, 0.0]]))
    writer, high = Writer(), 2.0**-27
    x = writer.input([f"x{n}" for n in range(inputs)], np.zeros((1, inputs)), np.full((1, inputs), high), tokens=1)
    total = writer.affine({x: np.full((1, inputs), 1.5)}, np.zeros(1))
    program = writer.program(writer.apply(parse("tanh(x)"), (total,), ("x",), 1))
    case = Forged(
        Network([first, Linear(weight), heads]), 5e-6, np.zeros((1, inputs)), low=0.0, high=high, claims=claims
    )
    net = case.made().with_(program=program)
    net.save(tmp_path / "network.safetensors")
    assert verify(tmp_path / "network.safetensors").verified
    given = torch.full((1, 1, inputs), 0.9 * high)
    try:
        torch.set_flush_denormal(True)
        found = float(net(given))
    finally:
        torch.set_flush_denormal(False)
    assert abs(found - np.tanh(1.5 * inputs * float(given[0, 0, 0]))) <= case.bound


def test_series_are_read_where_they_are_run(tmp_path: Path) -> None:
    """Data that are pairs and no object: libraries make one of them."""
    keys = [(-1.0, -1.0), (1.0, 1.0)]
    stored = series([(-1, 0, -1), (1, 0, 1)], shift=1000.0)
    net = Network([embed(anchors(keys)), head(grid=(2,))])
    Forged(net, 1.5, np.zeros((1, 1)), stored=[stored]).made().save(tmp_path / "network.safetensors")
    with safe_open(tmp_path / "network.safetensors", framework="numpy") as file:
        header, tensors = json.loads(file.metadata()["anchorhead"]), {n: file.get_tensor(n) for n in file.keys()}  # noqa: SIM118
    header["derivation"]["data"] = [*header["derivation"]["data"].items()]
    save_file(tensors, tmp_path / "forged.safetensors", {"anchorhead": json.dumps(header)})
    assert not verify(tmp_path / "forged.safetensors").verified
