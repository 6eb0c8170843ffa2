"""A head of several pieces in torch: a series, and others beside it, each of t clipped to where it counts.

What the others give is computed from t first, on a block that stays in the cache, then the first takes the place of t,
and the others are added to it. On a GPU all is one kernel (`heads_triton`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from anchorhead.network.direct.heads import ON_DEVICE, SERIES_BLOCK, Operation, SeriesHead, kernel_of
from anchorhead.network.direct.series import Series


class BentHead:
    """See series: q of t, in place."""

    def __init__(self, found: Series, dtype: str, device: str = "cpu") -> None:
        self.found, self.on_device = found, torch.device(device).type != "cpu"
        self.scale, self.shift = found.scale, found.shift
        self.itemsize = torch.tensor((), dtype=getattr(torch, dtype)).itemsize
        self.first = SeriesHead(replace(found, beside=()), dtype, device)
        nowhere = {"low": -math.inf, "high": math.inf}
        self.others = [
            (SeriesHead(replace(found, **piece.numbers, **nowhere, beside=()), dtype, device), piece)
            for piece in found.beside
        ]
        self.kernel = kernel_of("FusedSeries", device, self.quotients, getattr(torch, dtype), torch.device(device))

    @property
    def quotients(self) -> list[tuple]:
        """What a kernel is told of it."""
        beside = [(piece.scale, piece.low, piece.high, *head.quotient[3:]) for head, piece in self.others]
        return [self.first.quotient, *beside]

    @property
    def _block(self) -> int:
        return ON_DEVICE if self.on_device else SERIES_BLOCK // self.itemsize * torch.get_num_threads()

    def scratch(self, count: int) -> int:
        """Numbers that an evaluation of so many entries needs beside them."""
        if self.kernel is not None:
            return 0
        block = min(count, self._block)
        return len(self.others) * block + max(head.scratch(block) for head in (self.first, *self._heads))

    @property
    def _heads(self) -> list[SeriesHead]:
        return [head for head, _ in self.others]

    def operations(self, t: Tensor, scratch: Tensor) -> Iterator[Operation]:
        """From t (entries,), contiguous, to q."""
        if self.kernel is not None:
            yield partial(self.kernel, t)
            return
        block = min(len(t), self._block)
        for s in t.split(block) if block else ():
            *parts, rest = scratch.split([*[block] * len(self.others), len(scratch) - block * len(self.others)])
            parts = [part[: len(s)] for part in parts]
            for part, (head, piece) in zip(parts, self.others, strict=True):
                yield partial(torch.clamp, s, piece.low, piece.high, out=part)
                yield from head.operations(part, rest[: head.scratch(len(part))])
            yield from self.first.operations(s, rest[: self.first.scratch(len(s))])
            for part, (_, piece) in zip(parts, self.others, strict=True):
                yield partial(torch.add, s, part, alpha=piece.scale, out=s)
