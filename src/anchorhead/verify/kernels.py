"""Programs that are attention themselves: an Attend of the input to constant keys, by a network of one Attention.

Every query entry is an input less an origin, or the constant 1; keys and values are numbers that tokens hold. Then
`kernel.verify_kernel` bounds what rounding adds, and nothing else errs.
"""

from __future__ import annotations

import numpy as np
from flint import arb

from anchorhead.verify.balls import precision
from anchorhead.verify.certificate import Certificate
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.kernel import Kernel, verify_kernel
from anchorhead.verify.programs.exact import Exact
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.programs.program import Affine, Apply, Attend, Program

REFUSED = "the network is not one Attention of an input to the keys of the program"


def kernel_bound(network: Network, program: Program, exact: Exact, certificate: Certificate) -> float:
    """The bound that follows, at most the stated one."""
    require(len(program.outputs) == 1, REFUSED)
    step = program.steps[program.outputs[0]]
    if not isinstance(step, Attend) or step.queries is None or step.mask is not None:
        raise NotVerified(REFUSED)
    d = certificate.low.shape[1]
    queries, values = (exact.of(place) for place in (step.queries, step.values))
    wanted = np.concatenate([np.eye(d), np.zeros((1, d))])
    same = queries.shape == (1, d + 1) and not queries.error.any() and len(queries.ids) == d
    same = same and np.array_equal(queries.coefficients[0], wanted) and (queries.ids == exact.inputs).all()
    require(bool(same and np.array_equal(queries.constant[0], np.eye(d + 1)[d])), REFUSED)
    require(not len(values.ids) and not values.error.any(), REFUSED)
    with precision():
        balls = _constant(program, step.keys)
    kernel = _stored(network, d)
    low, high = (end[0].tolist() for end in (certificate.low, certificate.high))
    return verify_kernel(kernel, balls.tolist(), values.constant, low, high, network.dtype, certificate.bound)


def _constant(program: Program, place: int | None) -> np.ndarray:
    """A quantity that depends on no input, as balls (tokens, features)."""
    step = program.steps[place] if place is not None else None
    if isinstance(step, Affine):
        total = _balls(step.bias, step.bias_radius)
        for of, weight, radius in zip(step.of, step.weights, step.radii, strict=True):
            require(weight.ndim == 2, REFUSED)
            total = _constant(program, of) @ _balls(weight, radius).T + total
        return total
    require(isinstance(step, Apply), REFUSED)
    given = [_constant(program, of) for of in step.of]  # type: ignore[union-attr]
    shape = max(len(one) for one in given), len(step.which)  # type: ignore[union-attr]
    given = [np.broadcast_to(one, shape) for one in given]
    found = np.empty(shape, dtype=object)
    for t, f in np.ndindex(shape):
        function = step.functions[step.which[f]]  # type: ignore[union-attr]
        require(isinstance(function, Expression), REFUSED)
        found[t, f] = function.ball({name: one[t, f] for name, one in zip(step.arguments, given, strict=True)})  # type: ignore[union-attr]
    return found


def _balls(middle: np.ndarray, radius: np.ndarray | None) -> np.ndarray:
    radii = np.zeros(middle.shape) if radius is None else radius
    found = np.empty(middle.shape, dtype=object)
    for place in np.ndindex(middle.shape):
        found[place] = arb(float(middle[place]), float(radii[place]))
    return found


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
