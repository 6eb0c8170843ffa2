"""A network as a bare torch module: no guard, no chunk loop unless asked for, every weight in its state_dict.

Inside, a sequence is kept as its three kinds of token. A tensor of shape (batch, tokens, features) depends on
the input; one of shape (tokens, features) is the same for the whole batch (registers, until they have read
something), so its keys and values are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anchorhead.errors import AnchorheadError
from anchorhead.network.attention import Attention
from anchorhead.network.embed import Embed
from anchorhead.network.linear import Linear
from anchorhead.network.liveness import Inner, Needed, everything, steady_needs, streams, through
from anchorhead.network.modules.attention import AttentionModule, Columns
from anchorhead.network.modules.picks import Picks, picks
from anchorhead.network.modules.tokens import LinearModule, SoftmaxModule, Tokens, parameter
from anchorhead.network.repeat import Repeat
from anchorhead.network.softmax import Softmax
from anchorhead.network.stated_arithmetic import lasting_tensors, stated_arithmetic
from anchorhead.network.stream import Kind, Stream


def build(layers: tuple[Any, ...], output: Kind, token_axis: bool = True) -> NetworkModule:
    """The torch module of a chain of layers that ends with the tokens of one kind."""
    with lasting_tensors():
        return NetworkModule(layers[0], layers[1:], output, token_axis)


class NetworkModule(nn.Module):
    """x (..., tokens, inputs) to (..., tokens of the output's kind, outputs); without a token axis, (..., inputs) to
    (..., outputs)."""

    def __init__(self, embed: Embed, layers: tuple[Inner, ...], output: Kind, token_axis: bool = True) -> None:
        super().__init__()
        self.token_axis = token_axis
        start = embed.start()
        self.output: Kind = output
        last = streams(layers, start)[-1]
        needed = through(layers, everything(last, (output,)), start)
        self.embed = EmbedModule(embed, needed[0])
        self.steps = nn.ModuleList(_modules(layers, needed, start))

    def forward(self, x: Tensor, record: list[Tensor] | None = None) -> Tensor:
        x = x if self.token_axis else x.unsqueeze(-2)
        batch = x.shape[:-2]
        with stated_arithmetic(x.device):
            tokens: Tokens = self.embed(x.reshape(-1, *x.shape[-2:]))
            for step in self.steps:
                tokens = step(tokens, record)
        y = tokens[self.output]
        y = y if y.dim() == 3 else y.expand(math.prod(batch), *y.shape)
        y = y.reshape(*batch, *y.shape[1:])
        return y if self.token_axis else y.squeeze(-2)

    def path(self, x: Tensor) -> Tensor:
        """What would leave the network after 0, 1, ... steps of its Repeat: (..., steps + 1, tokens, outputs)."""
        with stated_arithmetic(x.device):
            found = [tokens[self.output] for tokens in self._path(x.reshape(-1, *x.shape[-2:]))]
        y = torch.stack([one.expand(max(1, math.prod(x.shape[:-2])), *one.shape[-2:]) for one in found], 1)
        return y.reshape(*x.shape[:-2], *y.shape[1:])

    def _path(self, x: Tensor) -> list[Tokens]:
        tokens: Tokens = self.embed(x)
        leaving: list[Tokens] = []
        rest: list[nn.Module] = []
        for step in self.steps:
            if isinstance(step, RepeatModule) and not leaving:
                leaving, before = [tokens], step.nothing_yet()
                for _ in range(step.times):
                    leaving.append(step.once(leaving[-1], None, before))
            elif leaving:
                rest.append(step)
            else:
                tokens = step(tokens)
        if not leaving:
            raise AnchorheadError("a network without a Repeat has no path: only repeated steps leave one")
        return [_through(rest, tokens) for tokens in leaving]

    def take_shortcuts(self) -> None:
        """See picks: for calls only, since weights are then no longer all weights."""
        for module in self.modules():
            if isinstance(module, AttentionModule | LinearModule | EmbedModule | SoftmaxModule):
                module.take_shortcuts()

    def attentions(self) -> Iterator[AttentionModule]:
        return (module for module in self.modules() if isinstance(module, AttentionModule))

    def recorded(self, tokens: int) -> int:
        """How many attention weights one element of the batch has when `tokens` tokens enter."""
        return _recorded(self.steps, tokens)


def _modules(layers: tuple[Inner, ...], needed: list[Needed], stream: Stream) -> list[nn.Module]:
    modules: list[nn.Module] = []
    for layer, after, enters in zip(layers, needed[1:], streams(layers, stream), strict=False):
        match layer:
            case Linear():
                modules.append(LinearModule(layer, tuple(after)))
            case Softmax():
                modules.append(SoftmaxModule(layer, tuple(after)))
            case Attention():
                modules.append(AttentionModule(layer, after, enters))
            case Repeat():
                modules.append(RepeatModule(layer, after, enters))
    return modules


def _through(steps: Iterable[nn.Module], tokens: Tokens) -> Tokens:
    for step in steps:
        tokens = step(tokens)
    return tokens


def _recorded(steps: Iterable[nn.Module], tokens: int) -> int:
    total = 0
    for step in steps:
        if isinstance(step, AttentionModule):
            total += step.recorded(tokens)
        elif isinstance(step, RepeatModule):
            total += step.times * _recorded(step.steps, tokens)
    return total


class EmbedModule(nn.Module):
    def __init__(self, embed: Embed, needed: Needed) -> None:
        super().__init__()
        self.weight, self.bias = parameter(embed.weight), parameter(embed.bias)
        self.register = parameter(embed.registers)
        self.state = parameter(embed.states)
        source = None if embed.source is None else torch.from_numpy(np.array(embed.source))
        self.source: Tensor | None
        self.register_buffer("source", source)
        self.kinds = tuple(needed)
        self.picks: Picks | None = None
        self.adds = True

    def take_shortcuts(self) -> None:
        self.picks = picks(self.weight.detach()) if self.weight.dim() == 2 else None
        self.adds = bool((self.bias.detach() != 0).any())

    def forward(self, x: Tensor) -> Tokens:
        tokens: Tokens = {}
        if "input" in self.kinds:
            x = x if self.source is None else x.index_select(1, self.source)
            if self.picks is not None:
                tokens["input"] = self.picks(x) + self.bias if self.adds else self.picks(x)
            elif self.weight.dim() == 2:
                tokens["input"] = F.linear(x, self.weight) + self.bias
            else:
                tokens["input"] = torch.einsum("bni,noi->bno", x, self.weight) + self.bias
        if "register" in self.kinds and self.register is not None:
            tokens["register"] = self.register
        if "state" in self.kinds and self.state is not None:
            tokens["state"] = self.state
        return tokens


class RepeatModule(nn.Module):
    def __init__(self, layer: Repeat, needed: Needed, stream: Stream) -> None:
        super().__init__()
        steady = steady_needs(layer, needed, stream)
        self.steps = nn.ModuleList(_modules(layer.layers, through(layer.layers, steady, stream), stream))
        self.times, self.kinds = layer.times, tuple(needed)

    def forward(self, tokens: Tokens, record: list[Tensor] | None = None) -> Tokens:
        before = self.nothing_yet()
        for _ in range(self.times):
            tokens = self.once(tokens, record, before)
        return {kind: tokens[kind] for kind in self.kinds}

    def nothing_yet(self) -> list[Columns]:
        """For each step what it has been shown, before the first."""
        return [{} for _ in self.steps]

    def once(self, tokens: Tokens, record: list[Tensor] | None = None, before: list[Columns] | None = None) -> Tokens:
        for step, shown in zip(self.steps, before or self.nothing_yet(), strict=True):
            tokens = step(tokens, record, shown) if isinstance(step, AttentionModule) else step(tokens, record)
        return tokens
