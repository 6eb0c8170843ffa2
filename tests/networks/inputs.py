"""Inputs to try a network with."""

from __future__ import annotations

import numpy as np

from anchorhead import incontext
from anchorhead.network import Network


def inputs(net: Network, batch: int, seed: int = 0) -> np.ndarray:
    """A batch of inputs of its box, or near 0; of a learner, prompts."""
    rng = np.random.default_rng(seed)
    examples = 4 if net.embed.tokens is None else net.embed.tokens // 2
    if isinstance(net, incontext.ManyLearner):
        rates = rng.uniform(0.01, 0.1, size=batch)
        sets = [(rng.uniform(-1, 1, size=(examples, 2)), rng.normal(size=examples)) for _ in rates]
        return np.array([net.prompt(*one, "squared", rate=r) for one, r in zip(sets, rates, strict=True)], net.dtype)
    if isinstance(net, incontext.Learner):
        X, y = rng.uniform(-1, 1, size=(batch, examples, 2)), rng.integers(0, 2, size=(batch, examples))
        y = 2 * y - 1 if net.descent.loss.form == "y phi(y s)" else y
        return incontext.prompt(X, y, net.descent.loss).astype(net.dtype)
    shape = (net.embed.inputs,) if not net.token_axis else (net.embed.tokens or 4, net.embed.inputs)
    low, high = (-1.0, 1.0) if net.certificate is None else (net.certificate.on.low, net.certificate.on.high)
    return rng.uniform(low, high, size=(batch, *shape)).astype(net.dtype)
