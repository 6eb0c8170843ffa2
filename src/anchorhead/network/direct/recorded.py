"""Operations on arrays that stay where they are, one after the other; on a GPU soon as one graph.

Of few rows a GPU is done with an operation before the next one is there. A graph of all of them is started at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import torch

from anchorhead.network.direct.heads import Operation

WARM = 2
"""Runs before a graph is made: kernels are compiled in the first, and what is run but once needs none."""


class Recorded:
    def __init__(self, operations: Sequence[Operation], device: torch.device) -> None:
        self.operations = operations
        self.graph: torch.cuda.CUDAGraph | None = None
        self.left = WARM if device.type == "cuda" else -1

    def __call__(self) -> None:
        if self.graph is not None:
            self.graph.replay()
            return
        for operation in self.operations:
            operation()
        if self.left == 0:
            with suppress(RuntimeError):  # then they are started one by one, as before
                self.graph = _graph(self.operations)
        self.left -= self.left >= 0


def _graph(operations: Sequence[Operation]) -> torch.cuda.CUDAGraph:
    """Recorded on a stream beside the current one: nothing runs meanwhile, and other threads go on."""
    graph, now, beside = torch.cuda.CUDAGraph(), torch.cuda.current_stream(), torch.cuda.Stream()
    beside.wait_stream(now)
    with torch.cuda.stream(beside):
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            for operation in operations:
                operation()
        finally:
            graph.capture_end()
    now.wait_stream(beside)
    return graph
