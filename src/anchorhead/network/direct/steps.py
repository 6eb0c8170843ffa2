"""The steps of a lowered network in torch, blocks of rows that stay in the cache one after the other.

An `Affine` maps a vector of entries to another. A `Neurons` is an affine map to queries, heads on them, and an affine
map of what is read:

    y = b' + sum over groups of W' h(W x + b),

in blocks, so that the queries of many rows are never held at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from anchorhead.network.direct.heads import ON_DEVICE, Operation, SeriesHead, SoftmaxHead
from anchorhead.network.direct.recorded import Recorded
from anchorhead.network.direct.series import Series
from anchorhead.network.direct.two_keys import SigmoidHead
from anchorhead.network.stated_arithmetic import full_products, lasting_tensors

BLOCK = 1 << 19
"""Queries that each thread computes at a time: products of fewer rows with large matrices take longer."""
MAX_HELD, HELD_ON_DEVICE = 1 << 22, 1 << 25
"""Numbers of an array that a thread keeps for its next call; on a GPU, of each stream."""
MAX_KNOWN, KNOWN_ON_DEVICE = 100, 8
"""Numbers of rows for which operations are remembered; a graph of them has memory of its own."""

Head = SeriesHead | SigmoidHead | SoftmaxHead


@dataclass(frozen=True, eq=False)
class Affine:
    """v becomes W v + b; columns are those of W, or its diagonal, if it has nothing else: one number, if that and b are
    the same everywhere, and None if W is the identity."""

    columns: Tensor | None
    bias: Tensor
    width: int

    @property
    def widest(self) -> int:
        return self.width

    def scratch(self, rows: int) -> int:
        return 0

    def operations(self, v: Tensor, out: Tensor, scratch: Tensor) -> Iterator[Operation]:
        """From v (rows, entries) to out (rows, width)."""
        if self.columns is None:
            yield partial(torch.add, v, self.bias, out=out)
        elif self.columns.dim() < 2:
            yield partial(torch.addcmul, self.bias, v, self.columns, out=out)
        else:
            yield partial(torch.addmm, self.bias, v, self.columns, out=out)


@dataclass(frozen=True, eq=False)
class Picked:
    """Entries of v, times powers of two, or as they are: nothing is rounded."""

    index: Tensor
    factor: Tensor | None

    @classmethod
    def of(cls, index: np.ndarray, factor: np.ndarray, dtype: str, device: torch.device) -> Picked:
        own = None if (factor == 1).all() else torch.tensor(factor, dtype=getattr(torch, dtype), device=device)
        return cls(torch.tensor(index, device=device), own)

    @property
    def width(self) -> int:
        return self.index.shape[0]

    def operations(self, v: Tensor, out: Tensor, scratch: Tensor) -> Iterator[Operation]:
        """From v (rows, entries) to out (rows, width)."""
        yield partial(torch.index_select, v, 1, self.index, out=out)
        if self.factor is not None:
            yield partial(out.mul_, self.factor)


@dataclass(frozen=True, eq=False)
class Group:
    """Entries of one head: their queries, and the columns of what outputs take of what is read."""

    before: Affine | Picked
    head: Head
    after: Tensor | None

    @property
    def width(self) -> int:
        return self.before.width


@dataclass(frozen=True, eq=False)
class Neurons:
    """Without a bias what is read leaves as it is, one group beside the other; unread: the series of heads that are
    not computed, for they are 0."""

    groups: tuple[Group, ...]
    bias: Tensor | None
    unread: tuple[Series, ...] = ()

    @property
    def width(self) -> int:
        return sum(group.width for group in self.groups) if self.bias is None else self.bias.shape[0]

    @property
    def widest(self) -> int:
        return max(self.width, *(group.width for group in self.groups))

    def scratch(self, rows: int) -> int:
        """Numbers that so many rows need between v and out."""
        sizes = [(rows * group.width, group.head) for group in self.groups]
        return max(size + head.scratch(size) for size, head in sizes)

    def operations(self, v: Tensor, out: Tensor, scratch: Tensor) -> Iterator[Operation]:
        """From v (rows, entries) to out (rows, width), group after group."""
        total, start = self.bias, 0
        for group in self.groups:
            head, size = group.head, v.shape[0] * group.width
            queries = scratch[:size].view(-1, group.width)
            yield from group.before.operations(v, queries, scratch)
            yield from head.operations(scratch[:size], scratch[size : size + head.scratch(size)])
            if total is None or group.after is None:
                part = out[:, start : start + group.width]
                yield partial(torch.mul, queries, head.scale, out=part)
                if head.shift:
                    yield partial(part.add_, head.shift)
                start += group.width
            else:
                yield partial(torch.addmm, total, queries, group.after, out=out)
                total = out


Step = Affine | Neurons


class Outputs:
    """What leaves a row: entries of the last vector times powers of two, and constants.

    place   (tokens, features) the entry of each; below 0: none, and `factor` is the constant
    width   how many entries there are
    """

    def __init__(self, place: np.ndarray, factor: np.ndarray, width: int, dtype: str, device: torch.device) -> None:
        flat, self.shape = place.ravel(), place.shape
        self.as_they_are = np.array_equal(flat, np.arange(width)) and bool((factor == 1).all())
        self.place = torch.tensor(np.maximum(flat, 0), device=device)
        self.factor = torch.tensor(factor.ravel(), dtype=getattr(torch, dtype), device=device)
        self.constant = torch.tensor(flat < 0, device=device)

    def __call__(self, v: Tensor) -> Tensor:
        """A new array, since that of v is written to again."""
        if self.as_they_are:
            return v.clone()
        return torch.where(self.constant, self.factor, v.index_select(1, self.place) * self.factor)


class DirectModule:
    """x (rows, ...) to (rows, tokens * outputs), by steps on (rows, entries), in blocks of rows."""

    def __init__(self, steps: tuple[Step, ...], outputs: Outputs) -> None:
        self.steps, self.outputs = steps, outputs
        self.shape = outputs.shape
        """Tokens and outputs."""
        self.numbers = max([len(outputs.place), *(step.widest for step in steps)])
        """How many numbers one row takes at the widest place."""
        self.known = _Known()

    def __call__(self, x: Tensor) -> Tensor:
        """Outside of WithGradients without gradients."""
        with _NOTHING if x.dtype is torch.float64 else full_products(x.is_cpu):
            v = x if x.dim() == 2 else x.flatten(1)
            rows = max(1, (BLOCK * torch.get_num_threads() if v.is_cpu else ON_DEVICE) // self.numbers)
            if v.shape[0] <= rows:  # len of a tensor takes as long as a small product
                return self._block(v)
            return torch.cat([self._block(some) for some in v.split(rows)])

    def _block(self, v: Tensor) -> Tensor:
        place = _place(v)
        key = v.shape[0], torch.get_num_threads(), place
        work = self.known.work.get(key)
        if work is None or work.array is not _held.arrays.get(place):
            work = _Work(self.steps, v)
            if len(self.known.work) >= (MAX_KNOWN if v.is_cpu else KNOWN_ON_DEVICE):
                self.known.work.clear()
            if work.array is _held.arrays.get(place):
                self.known.work[key] = work
        work.enters.copy_(v)
        work.run()
        return self.outputs(work.leaves)


class _Work:
    """Steps on as many rows as v has, in an array of this thread: v is copied to where they begin."""

    def __init__(self, steps: Sequence[Step], v: Tensor) -> None:
        rows = v.shape[0]
        widths = [v.shape[1], *(step.width for step in steps)]
        scratch = max((step.scratch(rows) for step in steps), default=0)
        with lasting_tensors():
            self.array = _held.array(v, rows * sum(widths) + scratch)
            *parts, rest = self.array.split([*(rows * w for w in widths), self.array.shape[0] - rows * sum(widths)])
            vectors = [part.view(rows, width) for part, width in zip(parts, widths, strict=True)]
            self.enters, self.leaves = vectors[0], vectors[-1]
            operations = [
                operation
                for step, (before, after) in zip(steps, pairwise(vectors), strict=True)
                for operation in step.operations(before, after, rest)
            ]
            self.run = Recorded(operations, v.device)


class _Known(threading.local):
    """What a thread has prepared, for numbers of rows and of threads, at each place."""

    def __init__(self) -> None:
        self.work: dict[tuple[int, int, Any], _Work] = {}


class _Held(threading.local):
    """An array of each place that the calls of a thread share: fresh ones of a megabyte cost more than the work on
    them. It grows by factors of two, so that those of before, for which operations may be prepared, are no more."""

    def __init__(self) -> None:
        self.arrays: dict[Any, Tensor] = {}

    def array(self, like: Tensor, count: int) -> Tensor:
        """One of at least so many numbers."""
        if count > (MAX_HELD if like.is_cpu else HELD_ON_DEVICE):
            return like.new_empty(count)
        held = self.arrays.get(_place(like))
        if held is None or held.shape[0] < count:
            held = self.arrays[_place(like)] = like.new_empty(1 << count.bit_length())
        return held


def _place(like: Tensor) -> Any:
    """Whose work comes one after the other: that of a dtype; on a GPU of one stream."""
    if like.is_cpu:
        return like.dtype
    return like.dtype, like.device, torch.cuda.current_stream(like.device).cuda_stream if like.is_cuda else None


_held = _Held()
_NOTHING = nullcontext()


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
    return Affine(None if columns.ndim < 2 and (columns == 1).all() else numbers[0], numbers[1], width)
