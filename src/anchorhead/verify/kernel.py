"""Attention as attention: a softmax mean whose exact logits the program states, so that nothing errs but rounding.

Exact:   f(x) = sum_k w_k y_k,  w = softmax_k(<(x, 1), key_k>),  keys known as balls.
Stored:  slopes K_k and offsets G_k of t = x - origin, values V_k = y_k less a middle, which is added at the end.

The program is an Attend of the input, by a network of one Attention: every query entry is an input less an origin, or
the constant 1; keys and values are numbers that tokens hold. Keys of the program may be any quantity that has values on
the whole box: they are what balls hold for all inputs.

Claim: for every x of the dtype in the box, |computed - f(x)| <= `rounding_error` in every output. Steps, each from
where the one before ended; S = max y - min y:

1. Stored logits less exact ones are affine in x: e_k(x) = D_k . (x - middle of the box) + E_k. What all keys share
   changes no softmax, so the middle of their range is taken off each entry of D and off E.
2. Computed logits: t_j errs by dt_j = u |t_j| unless the origin is 0, the dot product of d + 1 terms by gamma_(d+1) of
   its terms' sizes. With 1: |lambda_k| <= L. Odds of any set of keys change by at most e^(2 L), so its weight by at
   most tanh(L/2) = the largest |p e^l / (p e^l + q e^-l) - p|, l = L, p + q = 1; and a mean of the y by S tanh(L/2).
3. Taking the largest logit off rounds by u g_k, g_k the distance from it. The mean moves by at most
   S sum w_k (e^(u g_k) - 1) e^(sum w u g): and sum w_k g_k <= ln p, because sum w_k g_k = entropy(w) - ln sum e^(-g_k),
   the entropy is at most ln p and one g is 0. Keys with g > FAR weigh nothing before and after: p e^-FAR.
4. exp errs by a factor within e^(+-E): S tanh(E/2).
5. Stored values are off by dv. The sum of the exponentials errs by gamma_(p-1) in all weights alike, a division, a
   product and p - 1 sums give each term gamma_(p+1); adding the middle rounds once; what underflows is below tiny.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb

from anchorhead.verify.balls import above, below, exact, hull, precision, size
from anchorhead.verify.certificate import Certificate
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.programs.entries import entries
from anchorhead.verify.programs.exact import Exact
from anchorhead.verify.programs.numbers import POINTS
from anchorhead.verify.programs.program import Attend, Program
from anchorhead.verify.rounding import SLACK, arithmetic_of

FAR = 700.0
UP = 1 + 1e-9
REFUSED = "the network is not one Attention of an input to the keys of the program"


@dataclass(frozen=True, eq=False)
class Kernel:
    """What is stored, in float64: slopes (p, d), offsets (p,), values (p, m), origin (d,), middle (m,)."""

    slopes: np.ndarray
    offsets: np.ndarray
    values: np.ndarray
    origin: np.ndarray
    middle: np.ndarray


def kernel_bound(network: Network, program: Program, known: Exact, certificate: Certificate) -> float:
    """The bound that follows."""
    step = program.steps[program.outputs[0]]
    if not isinstance(step, Attend) or step.queries is None or step.keys is None or step.mask is not None:
        raise NotVerified(REFUSED)
    d = certificate.low.shape[1]
    queries, values = (known.of(place) for place in (step.queries, step.values))
    wanted = np.concatenate([np.eye(d), np.zeros((1, d))])
    same = queries.shape == (1, d + 1) and not queries.error.any() and len(queries.ids) == d
    same = same and np.array_equal(queries.coefficients[0], wanted) and (queries.ids == known.inputs).all()
    require(bool(same and np.array_equal(queries.constant[0], np.eye(d + 1)[d])), REFUSED)
    require(not len(values.ids) and not values.error.any(), REFUSED)
    low, high = certificate.low, certificate.high
    with precision():
        box = [[hull(*both) for both in row] for row in np.stack([low, high], axis=2).tolist()]
        keys = entries(program, box, {**POINTS, "number": arb}, step.keys)
    return rounding_error(_stored(network, d), keys, values.constant, low[0], high[0], network.dtype)


def rounding_error(
    kernel: Kernel,
    keys: Sequence[Sequence[arb]],
    responses: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    dtype: str,
) -> float:
    """The claim. keys: of the program, p of d + 1 balls, logits being those of (x, 1); responses: (p, m), exactly."""
    model = arithmetic_of(dtype)
    (p, d), u = kernel.slopes.shape, model.unit
    fits = len(keys) == p and len(keys[0]) == d + 1 and kernel.values.shape == responses.shape
    require(fits, "a kernel and a program of other sizes")
    known = all(entry.is_finite() for key in keys for entry in key)
    require(known, "keys of the program that are not known to be defined on the whole box")
    reach = np.maximum(np.abs(low - kernel.origin), np.abs(high - kernel.origin)) * UP
    moved = np.where(kernel.origin != 0, u * reach * UP, 0.0) + 2 * model.tiny
    sizes = np.abs(kernel.slopes) @ (reach + moved) + np.abs(kernel.offsets)
    require(float(sizes.max()) < model.largest / 8, f"logits overflow in {dtype}")
    rounded = (np.abs(kernel.slopes) @ moved + float(model.gamma(d + 1)) * sizes) * UP
    rounded = rounded + 4 * (d + 1) * model.tiny * (1 + float(reach.max()))
    with precision():
        logit = float((_logit_errors(kernel, keys, low, high) + rounded).max()) * UP
        wrong = _value_errors(kernel, responses)
    spread = np.ptp(responses, axis=0) * SLACK
    entropy = math.log(p) + 1e-12
    gaps = u * entropy * math.exp(u * FAR + u * entropy) + 2 * p * math.exp(-FAR)
    shares = math.tanh(logit / 2) + gaps + math.tanh(model.exp_error / 2)
    few, many = float(model.gamma(max(p - 1, 0))), float(model.gamma(p + 1))
    most, middle = np.abs(kernel.values).max(axis=0), np.abs(kernel.middle)
    summed = (few + many) * most / (1 - few)
    added = np.where(middle > 0, u * (most + middle + summed), 0.0)
    lost = 8 * p * model.tiny * (most + spread + 1)
    return float((spread * shares + wrong + summed + added + lost).max()) * UP


def _logit_errors(kernel: Kernel, keys: Sequence[Sequence[arb]], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Step 1: bounds on |e_k| over the box, up to what all keys share."""
    p, d = kernel.slopes.shape
    centre = low / 2 + high / 2
    half = np.maximum(high - centre, centre - low) * UP
    total, offsets = np.zeros(p), []
    for k in range(p):
        at = exact(kernel.offsets[k]) - keys[k][d]
        for j in range(d):
            at += exact(kernel.slopes[k, j]) * (exact(centre[j]) - exact(kernel.origin[j])) - keys[k][j] * exact(
                centre[j]
            )
        offsets.append(at)
    total += _less_middle(offsets)
    for j in range(d):
        total += _less_middle([exact(kernel.slopes[k, j]) - keys[k][j] for k in range(p)]) * half[j]
    return total * UP


def _value_errors(kernel: Kernel, responses: np.ndarray) -> np.ndarray:
    """|stored value + middle - response|, the largest for each output."""
    columns = zip(kernel.values.T, responses.T, kernel.middle, strict=True)
    return np.array(
        [max(size(exact(v) + exact(c) - exact(y)) for v, y in zip(a, b, strict=True)) for a, b, c in columns]
    )


def _less_middle(balls: list[arb]) -> np.ndarray:
    """Bounds on the sizes of numbers, less the middle of their range."""
    apart = [ball - balls[0].mid() for ball in balls]
    middle = exact(max(map(above, apart)) / 2 + min(map(below, apart)) / 2)
    return np.array([size(ball - middle) for ball in apart])


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
    query, key, value = (_picked(matrix) for matrix in (layer.query[0], layer.key[0], layer.value[0]))
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
