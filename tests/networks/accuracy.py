"""How far apart two evaluations of one network may be: other orders of sums, other processors, other runtimes."""

from __future__ import annotations

import numpy as np
import torch

from anchorhead.network import Network

from .inputs import inputs

RELATIVE = {"float32": 1e-6, "float64": 1e-12}
"""Of the largest output, where nothing cancels."""


def last_digits(net: Network) -> float:
    """RELATIVE of the largest output, and four times what comes, somewhere in its box, of a change of every weight and
    input by up to four in its last digit: numbers may be large and cancel, and any two ways to compute it differ."""
    x, changed, rng = torch.from_numpy(inputs(net, 200)), net.module(), torch.Generator().manual_seed(0)

    def nudged(one: torch.Tensor) -> torch.Tensor:
        steps = torch.randint(-4, 5, one.shape, generator=rng).to(one.dtype)
        return one * (1 + float(np.finfo(net.dtype).eps) * steps)

    with torch.no_grad():
        for weight in changed.parameters():
            weight.copy_(nudged(weight))
        y = net.module()(x)
        return RELATIVE[net.dtype] * float(y.abs().max()) + 4 * float((changed(nudged(x)) - y).abs().max())
