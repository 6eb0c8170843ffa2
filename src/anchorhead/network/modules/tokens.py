"""Linear maps and softmax within a token as torch modules, on a sequence kept as its three kinds of token."""

from __future__ import annotations

from functools import partial
from typing import overload

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from anchorhead.network.linear import Linear
from anchorhead.network.modules.picks import Picks, picks
from anchorhead.network.softmax import Softmax
from anchorhead.network.stream import KINDS, Kind

FEW = 16
"""Keys, or features of a group, of which torch takes each softmax by itself."""
Tokens = dict[Kind, Tensor]
"""(batch, tokens, features), or (tokens, features) where a kind of token is the same for the whole batch."""


@overload
def parameter(array: np.ndarray) -> nn.Parameter: ...
@overload
def parameter(array: None) -> None: ...
def parameter(array: np.ndarray | None) -> nn.Parameter | None:
    return None if array is None else nn.Parameter(torch.from_numpy(np.array(array)))


class LinearModule(nn.Module):
    def __init__(self, layer: Linear, kinds: tuple[Kind, ...]) -> None:
        super().__init__()
        self.weight, self.bias = parameter(layer.weight), parameter(layer.bias)
        self.mix = parameter(layer.mix)
        self.across, self.kinds = layer.across, kinds
        self.picks: Picks | None = None

    def take_shortcuts(self) -> None:
        self.picks = picks(self.weight.detach()) if self.weight.dim() == 2 else None

    def forward(self, tokens: Tokens, record: list[Tensor] | None = None) -> Tokens:
        if not self.across:
            return {kind: self.on(tokens[kind]) for kind in self.kinds}
        x = joined([tokens[kind] for kind in KINDS if kind in tokens])
        if self.mix is None:
            flat = self.weight.flatten(2).flatten(0, 1)
            y = F.linear(x.flatten(-2), flat).unflatten(-1, self.weight.shape[:2])
        else:
            y = torch.matmul(self.mix, self._features(x))
        return {"input": y if self.bias is None else y + self.bias}

    def on(self, x: Tensor) -> Tensor:
        """The map on the features of each token."""
        y = self._features(x)
        return y if self.bias is None else y + self.bias

    def _features(self, x: Tensor) -> Tensor:
        if self.picks is not None:
            return self.picks(x)
        if self.weight.dim() == 2:
            return F.linear(x, self.weight)
        blocks, _, size = self.weight.shape
        return torch.einsum("...gi,goi->...go", x.unflatten(-1, (blocks, size)), self.weight).flatten(-2)


class SoftmaxModule(nn.Module):
    def __init__(self, layer: Softmax, kinds: tuple[Kind, ...]) -> None:
        super().__init__()
        self.groups, self.kinds = layer.groups, kinds
        self.softmax = partial(torch.softmax, dim=-1)

    def take_shortcuts(self) -> None:
        self.softmax = softmax_of_few

    def forward(self, tokens: Tokens, record: list[Tensor] | None = None) -> Tokens:
        return {kind: self._softmax(tokens[kind]) for kind in self.kinds}

    def _softmax(self, x: Tensor) -> Tensor:
        if len(set(self.groups)) == 1:
            return self.softmax(x.unflatten(-1, (len(self.groups), self.groups[0]))).flatten(-2)
        return torch.cat([self.softmax(group) for group in x.split(self.groups, -1)], -1)


def softmax_of_few(x: Tensor) -> Tensor:
    """The softmax over the last axis; of a few numbers each, many at a time, it is ten times as fast over a first."""
    few = x.shape[-1]
    if few > FEW or x.numel() < 1000 * few or x.device.type != "cpu":
        return torch.softmax(x, -1)
    return torch.softmax(x.reshape(-1, few).t().contiguous(), 0).t().reshape(x.shape)


def joined(parts: list[Tensor], axis: int = -2) -> Tensor:
    """What there is of several kinds of token, one behind the other along an axis, that of tokens unless said; all with
    the axis of the batch in front where any of them has it."""
    if len(parts) == 1:
        return parts[0]
    axes = max(part.dim() for part in parts)
    batch = next(part.shape[0] for part in parts if part.dim() == axes)
    return torch.cat([part if part.dim() == axes else part.expand(batch, *part.shape) for part in parts], axis)
