"""A head of two keys as one sigmoid: no axis of keys, and one exponential a query.

    r(t) = v_1 + (v_2 - v_1) sigmoid((a_2 - a_1) t + g_2 - g_1)  =  shift + scale sigmoid(rate t + lead),

where the latter are numbers of the dtype. Reads are handed on as they are, with scale and shift: what is summed behind
them is what a softmax would have read. A network's derivation stores which heads are computed so (`stored_series`);
proof.heads.two_keys and anchorhead.verify.two_keys bound how far they are off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from anchorhead.network.direct.heads import Operation, kernel_of, numbers_at_a_time


@dataclass(frozen=True)
class TwoKeys:
    """See above; sorted by slope."""

    slopes: tuple[float, ...]
    offsets: tuple[float, ...]
    values: tuple[float, ...]
    rate: float
    lead: float
    scale: float
    shift: float


class SigmoidHead:
    """What is read takes the place of t."""

    scale, shift = 1.0, 0.0

    def __init__(self, found: TwoKeys, dtype: str, device: str = "cpu") -> None:
        self.found = found
        kind, numbers = getattr(torch, dtype), (found.rate, found.lead, found.scale, found.shift)
        self.kernel = kernel_of("FusedSigmoid", device, numbers, kind, torch.device(device))
        self.lead, self.after = (torch.tensor(one, dtype=kind, device=device) for one in (found.lead, found.shift))

    def scratch(self, count: int) -> int:
        return 0

    def operations(self, t: Tensor, scratch: Tensor) -> Iterator[Operation]:
        """From t (entries,), contiguous, to reads."""
        if self.kernel is not None:
            yield partial(self.kernel, t)
            return
        for part in t.split(numbers_at_a_time(t.itemsize, t.is_cpu)):
            yield from _affine(part, self.found.rate, self.lead)
            yield partial(torch.sigmoid, part, out=part)
            yield from _affine(part, self.found.scale, self.after)


def _affine(t: Tensor, factor: float, constant: Tensor) -> Iterator[Operation]:
    if float(constant):
        yield partial(torch.add, constant, t, alpha=factor, out=t)
    elif factor != 1:
        yield partial(t.mul_, factor)
