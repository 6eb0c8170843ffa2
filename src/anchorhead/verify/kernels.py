"""Programs that are attention themselves: an Attend of the input to constant keys, by a network of one Attention.

Every query entry is an input less an origin, or the constant 1; keys and values are numbers that tokens hold. Then
`kernel.verify_kernel` bounds what rounding adds, and nothing else errs.
"""

from __future__ import annotations

import numpy as np
from flint import arb

from anchorhead.verify.certificate import Certificate
from anchorhead.verify.errors import require
from anchorhead.verify.exact import Exact
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.kernel import Kernel, verify_kernel
from anchorhead.verify.program import Attend, Program

REFUSED = "the network is not one Attention of an input to the keys of the program"


def kernel_bound(network: Network, program: Program, exact: Exact, certificate: Certificate) -> float:
    """The bound that follows, at most the stated one."""
    step = program.steps[program.outputs[0]]
    require(isinstance(step, Attend) and step.queries is not None and step.mask is None, REFUSED)
    d = certificate.low.shape[1]
    queries, keys, values = (exact.of(place) for place in (step.queries, step.keys, step.values))
    wanted = np.concatenate([np.eye(d), np.zeros((1, d))])
    same = queries.shape == (1, d + 1) and not queries.error.any() and len(queries.ids) == d
    same = same and np.array_equal(queries.coefficients[0], wanted) and (queries.ids == exact.inputs).all()
    require(bool(same and np.array_equal(queries.constant[0], np.eye(d + 1)[d])), REFUSED)
    require(not len(keys.ids) and not len(values.ids) and not values.error.any(), REFUSED)
    balls = [
        [arb(float(middle), float(radius)) for middle, radius in zip(*row, strict=True)]
        for row in zip(keys.constant, keys.error, strict=True)
    ]
    kernel = _stored(network, d)
    ends = (end[0].tolist() for end in (certificate.low, certificate.high))
    return verify_kernel(kernel, balls, values.constant, *ends, network.dtype, certificate.bound)


def _stored(network: Network, d: int) -> Kernel:
    """Slopes, offsets, values, origin and middle, as the one token and the registers hold them."""
    embed, layers = network.embed, network.layers
    require(len(layers) == 1 and isinstance(layers[0], Attention) and network.output == "input", REFUSED)
    layer = layers[0]
    plain = layer.mask is None and layer.grid is None and layer.skip is None and layer.heads == 1
    plain = plain and embed.tokens == 1 and embed.source is None and not len(embed.states)
    m = layer.outputs
    require(bool(plain and np.array_equal(layer.output[0], np.eye(m))), REFUSED)
    rows = np.concatenate([embed.bias, embed.registers])
    picks = [_picked(matrix) for matrix in (layer.query[0], layer.key[0], layer.value[0])]
    query, key, value = picks
    inputs = embed.weight[0]
    fits = len(query) == len(key) == d + 1 and len(value) == m
    require(bool(fits and np.array_equal(inputs[query], np.eye(d + 1, d))), REFUSED)
    require(not inputs[np.concatenate([key, value])].any() and embed.bias[0, query[d]] == 1, REFUSED)
    middle = np.zeros(m) if layer.bias is None else layer.bias
    return Kernel(rows[:, key[:d]], rows[:, key[d]], rows[:, value], -embed.bias[0, query[:d]], middle)


def _picked(matrix: np.ndarray) -> np.ndarray:
    """The features that a matrix picks, one a row, each as it is."""
    require(bool(np.isin(matrix, (0, 1)).all() and (matrix.sum(axis=1) == 1).all()), REFUSED)
    return matrix.argmax(axis=1)
