"""The steps of a lowered network in torch, blocks of rows that stay in the cache one after the other.

An `Affine` maps a vector of entries to another. A `Neurons` is an affine map to queries, heads on them, and an affine
map of what is read:

    y = b' + sum over groups of W' h(W x + b),

in blocks, so that the queries of many rows are never held at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from anchorhead.network.direct.heads import ON_DEVICE, Operation, SeriesHead, SoftmaxHead
from anchorhead.network.stated_arithmetic import full_products, lasting_tensors

BLOCK = 1 << 19
"""Queries that each thread computes at a time: products of fewer rows with large matrices take longer."""
MIN_HELD, MAX_HELD = 1 << 16, 1 << 22
"""Numbers of an array that a thread keeps for its next call."""
MAX_KNOWN = 100
"""Numbers of rows for which operations are remembered."""

Head = SeriesHead | SoftmaxHead
Operator = Callable[[Tensor, Tensor], Tensor]
"""Rows of entries to rows of others, which are written to the second and returned."""
_Operators = list[tuple[Operator, Tensor | None]]
"""Each with where its result goes: None for what leaves."""


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

    def on(self, rows: int, scratch: Tensor) -> Operator:
        return self

    def __call__(self, v: Tensor, out: Tensor | None = None) -> Tensor:
        if self.columns is None:
            return torch.add(v, self.bias, out=out)
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

    def scratch(self, rows: int) -> int:
        """Numbers that reads of so many rows need, queries included."""
        return rows * self.width + self.head.scratch(rows * self.width)

    def on(self, rows: int, scratch: Tensor) -> _Reads:
        flat = scratch[: rows * self.width]
        operations = tuple(self.head.operations(flat, scratch[rows * self.width : self.scratch(rows)]))
        return _Reads(self, flat.view(rows, self.width), operations)


@dataclass(frozen=True, eq=False)
class _Reads:
    """Where the queries of a group stand, and the operations that turn them into what is read."""

    group: Group
    queries: Tensor
    operations: tuple[Operation, ...]

    def __call__(self, v: Tensor) -> Tensor:
        """What is read for some rows, (rows, width), in the units of the head."""
        self.group.before(v, self.queries)
        for operation in self.operations:
            operation()
        return self.queries


@dataclass(frozen=True, eq=False)
class Neurons:
    """Without a bias what is read leaves as it is, one group beside the other; weighed: see HeadsPlan."""

    groups: tuple[Group, ...]
    bias: Tensor | None
    weighed: bool = False

    @cached_property
    def width(self) -> int:
        return sum(group.width for group in self.groups) if self.bias is None else self.bias.shape[0]

    @cached_property
    def widest(self) -> int:
        return max(self.width, *(group.width for group in self.groups))

    def scratch(self, rows: int) -> int:
        return max(group.scratch(rows) for group in self.groups)

    def on(self, rows: int, scratch: Tensor) -> Operator:
        """(rows, entries) to (rows, outputs), in an array that groups share."""
        groups = tuple(group.on(rows, scratch) for group in self.groups)
        if self.bias is None:
            return partial(self._side_by_side, groups)
        return partial(_summed, groups, self.bias)

    def _side_by_side(self, groups: tuple[_Reads, ...], v: Tensor, y: Tensor) -> Tensor:
        for reads, part in zip(groups, y.split([group.width for group in self.groups], 1), strict=True):
            torch.mul(reads(v), reads.group.head.scale, out=part)
            if reads.group.head.shift:
                part += reads.group.head.shift
        return y


def _summed(groups: tuple[_Reads, ...], bias: Tensor, v: Tensor, y: Tensor) -> Tensor:
    total = bias
    for reads in groups:
        total = torch.addmm(total, reads(v), reads.group.after, out=y)  # type: ignore[arg-type]
    return y


Step = Affine | Neurons


class Outputs:
    """What leaves a row: entries of the last vector times powers of two, and constants.

    place   (tokens, features) the entry of each; below 0: none, and `factor` is the constant
    """

    def __init__(self, place: np.ndarray, factor: np.ndarray, dtype: str, device: torch.device) -> None:
        flat, self.shape = place.ravel(), place.shape
        self.place = torch.tensor(np.maximum(flat, 0), device=device)
        self.factor = torch.tensor(factor.ravel(), dtype=getattr(torch, dtype), device=device)
        self.constant = torch.tensor(flat < 0, device=device)

    def are_all_of(self, width: int) -> bool:
        """Whether the entries of a vector leave as they are."""
        every = torch.equal(self.place.cpu(), torch.arange(width)) and not bool(self.constant.any())
        return every and bool((self.factor == 1).all())

    def __call__(self, v: Tensor) -> Tensor:
        return torch.where(self.constant, self.factor, v.index_select(1, self.place) * self.factor)


class DirectModule:
    """x (rows, ...) to (rows, tokens * outputs), by steps on (rows, entries), in blocks of rows."""

    def __init__(self, steps: tuple[Step, ...], outputs: Outputs) -> None:
        self.steps, self.outputs = steps, outputs
        self.shape = outputs.shape
        """Tokens and outputs."""
        self.numbers = max([len(outputs.place), *(step.widest for step in steps)])
        """How many numbers one row takes between steps, at the widest place."""
        self.width = steps[-1].width if steps else 0
        self.as_they_are = bool(steps) and outputs.are_all_of(self.width)
        self.prepared = _Prepared()

    def __call__(self, x: Tensor) -> Tensor:
        """Outside of WithGradients without gradients."""
        with _NOTHING if x.dtype is torch.float64 else full_products(x.is_cpu):
            v = x if x.dim() == 2 else x.flatten(1)
            rows = max(1, (BLOCK * torch.get_num_threads() if v.is_cpu else ON_DEVICE) // self.numbers)
            if v.shape[0] <= rows:  # len of a tensor takes as long as a small product
                return self._block(v)
            return torch.cat([self._block(some) for some in v.split(rows)])

    def _block(self, v: Tensor) -> Tensor:
        y = v.new_empty(v.shape[0], self.width)
        for operator, out in self.prepared.of(self.steps, v):
            v = operator(v, y if out is None else out)
        return v if self.as_they_are else self.outputs(v)


class _Prepared(threading.local):
    """Operations on the array of a thread, for each number of rows that it has met."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], tuple[Tensor, _Operators]] = {}

    def of(self, steps: tuple[Step, ...], v: Tensor) -> _Operators:
        key = v.shape[0], torch.get_num_threads()
        array, operators = self.known.get(key, (None, []))
        if array is None or array is not _held.arrays.get(v.dtype):
            array, operators = _prepared(steps, v)
            if array is _held.arrays.get(v.dtype):
                if len(self.known) == MAX_KNOWN:
                    self.known.clear()
                self.known[key] = array, operators
        return operators


def _prepared(steps: tuple[Step, ...], v: Tensor) -> tuple[Tensor, _Operators]:
    rows = v.shape[0]
    sizes = [rows * step.width for step in steps[:-1]]
    with lasting_tensors():
        array = _held.array(v, sum(sizes) + max((step.scratch(rows) for step in steps), default=0))
        *parts, scratch = array.split([*sizes, array.shape[0] - sum(sizes)])
    results = [part.view(rows, step.width) for part, step in zip(parts, steps, strict=False)]
    return array, [(step.on(rows, scratch), result) for step, result in zip(steps, [*results, None], strict=False)]


class _Held(threading.local):
    """An array of each dtype that the calls of a thread share: fresh ones of a megabyte cost more than the work on
    them. It grows by factors of two, so that those of before, for which operations may be prepared, are no more."""

    def __init__(self) -> None:
        self.arrays: dict[torch.dtype, Tensor] = {}

    def array(self, like: Tensor, count: int) -> Tensor:
        """One of at least so many numbers."""
        held = self.arrays.get(like.dtype)
        if not like.is_cpu or held is None or held.shape[0] < count:
            if not like.is_cpu or count > MAX_HELD:
                return like.new_empty(count)
            held = self.arrays[like.dtype] = like.new_empty(max(MIN_HELD, 1 << (count - 1).bit_length()))
        return held


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
