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
MAX_ROOMS = 100
"""Ways to share an array out that are remembered."""

Head = SeriesHead | SoftmaxHead


@dataclass(frozen=True, eq=False)
class Affine:
    """v becomes W v + b; columns are those of W, or its diagonal, if it has nothing else: one number, if that and b are
    the same everywhere."""

    columns: Tensor
    bias: Tensor
    width: int

    def __call__(self, v: Tensor, out: Tensor | None = None) -> Tensor:
        if self.columns.dim() < 2:
            return torch.addcmul(self.bias, v, self.columns, out=out)
        return torch.addmm(self.bias, v, self.columns, out=out)


@dataclass(frozen=True, eq=False)
class Group:
    """Entries of one head: their queries, and the columns of what outputs take of what is read."""

    before: Affine
    head: Head
    after: Tensor | None

    @property
    def width(self) -> int:
        return self.before.width

    def block(self, device: torch.device) -> int:
        """Queries that the head takes at a time."""
        if device.type == "cpu":
            return self.head.block * torch.get_num_threads()
        return max(1, ON_DEVICE // self.head.scratch)

    def __call__(self, v: Tensor) -> Tensor:
        """What is read for some rows, (rows, width), in the units of the head; overwritten by the next call."""
        rows, block = v.shape[0], self.block(v.device)
        room = _rooms.room(v, rows, self.width, self.head.scratch * min(block, rows * self.width))
        self.before(v, out=room.queries)
        for part in (room.flat,) if rows * self.width <= block else room.flat.split(block):
            self.head(part, room.scratch)
        return room.queries


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
        y = v.new_empty(rows, self.width)
        most = min(max(1, max(group.block(v.device), LEAST) // group.width) for group in self.groups)
        if rows <= most:
            self._read(v, y)
        else:
            for some, their in zip(v.split(most), y.split(most), strict=True):
                self._read(some, their)
        return y

    def _read(self, v: Tensor, y: Tensor) -> None:
        """A block of rows."""
        start, total = 0, self.bias
        for group in self.groups:
            t = group(v)
            if total is None or group.after is None:
                torch.mul(t, group.head.scale, out=y[:, start : start + group.width])
                if group.head.shift:
                    y[:, start : start + group.width] += group.head.shift
                start += group.width
            else:
                total = torch.addmm(total, t, group.after, out=y)


class _Room:
    """For what lasts no longer than a block: queries (rows, width), the same as one row, and scratch, of one array."""

    def __init__(self, array: Tensor, rows: int, width: int, scratch: int) -> None:
        self.flat, self.scratch = array.split((rows * width, scratch))
        self.queries = self.flat.view(rows, width)


class _Rooms(threading.local):
    """An array of each dtype that the calls of a thread share, and what they have made of it: fresh arrays of a
    megabyte cost more than the work on them."""

    def __init__(self) -> None:
        self.arrays: dict[torch.dtype, Tensor] = {}
        self.made: dict[tuple[torch.dtype, int, int, int], _Room] = {}

    def room(self, like: Tensor, rows: int, width: int, scratch: int) -> _Room:
        key = like.dtype, rows, width, scratch
        if key not in self.made or like.device.type != "cpu":
            count = rows * width + scratch
            if like.device.type != "cpu" or count > MAX_HELD:
                return _Room(like.new_empty(count), rows, width, scratch)
            held = self.arrays.get(like.dtype)
            with lasting_tensors():
                if held is None or held.shape[0] < count or len(self.made) == MAX_ROOMS:
                    held = self.arrays[like.dtype] = like.new_empty(count)
                    self.made.clear()
                self.made[key] = _Room(held[:count], rows, width, scratch)
        return self.made[key]


_rooms = _Rooms()


Step = Affine | Neurons


class Outputs:
    """What leaves a row: entries of the last vector times powers of two, and constants.

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
            return v
        return torch.where(self.constant, self.factor, v.index_select(1, self.place) * self.factor)


@dataclass(frozen=True, eq=False)
class DirectModule:
    """x (rows, ...) to (rows, tokens * outputs), by steps on (rows, entries)."""

    steps: tuple[Step, ...]
    outputs: Outputs

    @cached_property
    def numbers(self) -> int:
        """How many numbers one row takes between steps, at the widest place."""
        return max([len(self.outputs.place), *(step.width for step in self.steps)])

    @property
    def shape(self) -> tuple[int, ...]:
        """Tokens and outputs."""
        return self.outputs.shape

    def __call__(self, x: Tensor) -> Tensor:
        """Outside of WithGradients without gradients."""
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
    width, columns = len(bias), weight.T
    if weight.shape == (width, width) and not (weight - np.diag(np.diag(weight))).any():
        columns = np.diag(weight)
        if (columns == columns[0]).all() and (bias == bias[0]).all():
            columns, bias = columns[0], bias[0]
    numbers = [torch.tensor(np.array(one), dtype=getattr(torch, dtype), device=device) for one in (columns, bias)]
    return Affine(numbers[0], numbers[1], width)


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
