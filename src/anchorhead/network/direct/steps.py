"""The steps of a lowered network in torch, blocks of rows that stay in the cache one after the other.

An `Affine` maps a vector of entries to another. A `Neurons` is an affine map to queries, heads on them, and an affine
map of what is read:

    y = b' + sum over groups of W' h(W x + b),

in blocks, so that the queries of many rows are never held at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from anchorhead.network.direct.heads import SeriesHead, SoftmaxHead
from anchorhead.network.stated_arithmetic import lasting_tensors, stated_arithmetic

LEAST = 1 << 17
"""Queries that are computed at a time: products of fewer rows with large matrices take longer."""
ON_DEVICE = 1 << 24
"""Numbers of a block where there is no cache to stay in."""
MAX_HELD = 1 << 22
"""Numbers of an array that a thread keeps for its next call."""

Head = SeriesHead | SoftmaxHead


@dataclass(frozen=True, eq=False)
class Affine:
    """v becomes W v + b."""

    weight: Tensor
    bias: Tensor

    @property
    def width(self) -> int:
        return self.bias.shape[0]

    def __call__(self, v: Tensor) -> Tensor:
        return torch.addmm(self.bias, v, self.weight.t())


@dataclass(frozen=True, eq=False)
class Group:
    """Entries of one head: their queries, and what the outputs take of what is read."""

    before: Affine
    head: Head
    after: Tensor | None

    @property
    def width(self) -> int:
        return self.before.width


@dataclass(frozen=True, eq=False)
class Neurons:
    """Without a bias what is read leaves as it is, one group beside the other; weighed: see HeadsPlan."""

    groups: tuple[Group, ...]
    bias: Tensor | None
    weighed: bool = False

    @property
    def width(self) -> int:
        return sum(group.width for group in self.groups) if self.bias is None else self.bias.shape[0]

    def __call__(self, v: Tensor) -> Tensor:
        """(rows, entries) to (rows, outputs)."""
        rows = v.shape[0]  # len of a tensor takes as long as a small product
        y = v.new_empty(rows, self.width) if self.bias is None else self.bias.expand(rows, -1).clone()
        start = 0
        for group in self.groups:
            self._add(group, v, y if group.after is not None else y[:, start : start + group.width])
            start += group.width
        return y

    def _add(self, group: Group, v: Tensor, y: Tensor) -> None:
        on_cpu = v.device.type == "cpu"
        most = group.head.block * torch.get_num_threads() if on_cpu else ON_DEVICE // group.head.scratch
        rows = max(1, min(v.shape[0], max(most, LEAST) // group.width))
        small = max(1, most)
        queries = _buffer("queries", rows * group.width, v).view(rows, -1)
        scratch = _buffer("scratch", group.head.scratch * min(small, queries.numel()), v)
        for start in range(0, v.shape[0], rows):
            some = v[start : start + rows]
            t = torch.addmm(group.before.bias, some, group.before.weight.t(), out=queries[: some.shape[0]])
            for part in t.view(-1).split(small):
                group.head(part, scratch[: group.head.scratch * part.shape[0]])
            if group.after is None:
                y[start : start + rows] = t if group.head.scale == 1 else t.mul_(group.head.scale)
                if group.head.shift:
                    y[start : start + rows] += group.head.shift
            else:
                y[start : start + rows].addmm_(t, group.after.t())


class _Buffers(threading.local):
    """Arrays of a thread that calls share: fresh ones of a megabyte cost more than the work on them."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, torch.dtype], Tensor] = {}


_buffers = _Buffers()


def _buffer(name: str, count: int, like: Tensor) -> Tensor:
    """An array (count,) for what lasts no longer than a block."""
    if like.device.type != "cpu" or count > MAX_HELD:
        return like.new_empty(count)
    held = _buffers.held.get((name, like.dtype))
    if held is None or held.shape[0] < count:
        with lasting_tensors():
            held = _buffers.held[name, like.dtype] = like.new_empty(count)
    return held[:count]


Step = Affine | Neurons


class Outputs:
    """What leaves: entries of the last vector times powers of two, and constants, in some shape.

    place   (tokens, features) the entry of each; below 0: none, and `factor` is the constant
    """

    def __init__(self, place: np.ndarray, factor: np.ndarray, dtype: str, device: torch.device) -> None:
        flat, self.shape = place.ravel(), place.shape
        self.as_they_are = bool((flat == np.arange(len(flat))).all() and (factor == 1).all())
        self.place = torch.tensor(np.maximum(flat, 0), device=device)
        self.factor = torch.tensor(factor.ravel(), dtype=getattr(torch, dtype), device=device)
        self.constant = torch.tensor(flat < 0, device=device)

    def __call__(self, v: Tensor) -> Tensor:
        if self.as_they_are and v.shape[1] == self.place.shape[0]:
            return v.view(v.shape[0], *self.shape)
        picked = v.index_select(1, self.place) * self.factor
        return torch.where(self.constant, self.factor, picked).view(len(v), *self.shape)


@dataclass(frozen=True, eq=False)
class DirectModule:
    """x (rows, ...) to (rows, tokens, outputs), by steps on (rows, entries)."""

    steps: tuple[Step, ...]
    outputs: Outputs

    @cached_property
    def numbers(self) -> int:
        """How many numbers one row takes between steps, at the widest place."""
        return max([len(self.outputs.place), *(step.width for step in self.steps)])

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        with stated_arithmetic(x.device):
            v = x.flatten(1)
            for step in self.steps:
                v = step(v)
            return self.outputs(v)


def is_traced() -> bool:
    """Whether a program is being made of a call, or a derivative forwards: those are for the layers as written."""
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[reportPrivateImportUsage]
    return traced or torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


class WithGradients(torch.autograd.Function):
    """The direct evaluation forwards; backwards the layers as they are written, from the inputs once more."""

    @staticmethod
    def forward(ctx: Any, direct: DirectModule, module: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        ctx.module = module
        ctx.save_for_backward(x)
        return direct(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (gradient,), (x,) = gradients, ctx.saved_tensors
        again = torch.is_grad_enabled()  # a second derivative is wanted, so the graph is
        with torch.enable_grad():
            x = x if again else x.detach().requires_grad_()
            y = ctx.module(x)
            (found,) = torch.autograd.grad(y, x, gradient.reshape(y.shape), create_graph=again)
        return None, None, found


def affine(weight: np.ndarray, bias: np.ndarray, dtype: str, device: torch.device) -> Affine:
    kind = getattr(torch, dtype)
    return Affine(*(torch.tensor(one, dtype=kind, device=device) for one in (weight, bias)))


__all__ = [
    "Affine",
    "DirectModule",
    "Group",
    "Head",
    "Neurons",
    "Outputs",
    "Step",
    "WithGradients",
    "affine",
    "is_traced",
]
