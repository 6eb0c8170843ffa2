"""A network of neurons as what is left to compute: affine maps in a row multiplied out, constant neurons folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from flint import arb
from jaxtyping import Float, Int

from anchorhead.language.expressions.precision import precision
from anchorhead.language.expressions.underflow import lost
from anchorhead.language.of_targets import step_of
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp

UNIT = 2.0**-53
BITS = 120


def merged(target: Mlp) -> Mlp:
    """The same network of the hidden layers that do more than an affine map, affine maps in a row multiplied out.

    A neuron whose weights are all 0, exactly, is a constant of the map behind it and no neuron: nothing is solved for
    it, and no head computes it. Where a whole layer is constant its first neuron stays, and nothing takes it.
    """
    waiting: list[Affine] = []
    found: list[Hidden] = []
    constants: tuple[np.ndarray, np.ndarray] | None = None
    for place, layer in enumerate((*target.hidden, None)):
        affine = target.readout if layer is None else layer.affine
        waiting.append(affine if constants is None else _with_constants(affine, *constants))
        constants = None
        if layer is not None and not layer.linear:
            whole, waiting = _product(waiting), []
            constants = _constants(layer, whole)
            found.append(_restricted(whole, layer, _kept(constants[1]), place))
    return replace(target, hidden=tuple(found), readout=_product(waiting))


def _restricted(affine: Affine, layer: Hidden, own: Int[np.ndarray, " some"], place: int) -> Hidden:
    """Some neurons of layer number `place`, with the activations that these have, of another map."""
    used, which = np.unique(layer.which[own], return_inverse=True)
    own_affine = Affine(affine.weight[own], affine.bias[own], *(error[own] for error in affine.errors))
    names = np.stack([np.full(len(own), step_of(place)), np.zeros(len(own), int), own], axis=1)
    return Hidden(own_affine, tuple(layer.activations[k] for k in used), which.reshape(-1), layer.kept, names)


def _constants(layer: Hidden, affine: Affine) -> tuple[Float[np.ndarray, " neurons"], Float[np.ndarray, " neurons"]]:
    """phi(bias) of neurons whose weights are 0, and how far that may be off: infinitely, where some input moves them,
    or where phi has no value there."""
    numbers, errors = np.zeros(layer.neurons), np.full(layer.neurons, np.inf)
    moved = ((affine.weight != 0) | (affine.errors[0] != 0)).any(axis=1)
    with precision(BITS):
        for r in np.flatnonzero(~moved):
            phi, z = layer.activations[layer.which[r]], arb(float(affine.bias[r]), float(affine.errors[1][r]))
            value = z if phi is IDENTITY else phi.ball({(phi.variables or ("x",))[0]: z})
            if value.is_finite():
                numbers[r] = float(value.mid())
                errors[r] = float(abs(value - arb(numbers[r])).upper()) * (1 + 4 * UNIT)
    return numbers, errors


def _kept(errors: Float[np.ndarray, " neurons"]) -> Int[np.ndarray, " some"]:
    """The neurons that are no constants; of none the first."""
    return np.flatnonzero(np.isinf(errors)) if np.isinf(errors).any() else np.zeros(1, int)


def _with_constants(
    affine: Affine, numbers: Float[np.ndarray, " inputs"], errors: Float[np.ndarray, " inputs"]
) -> Affine:
    """The map on the inputs that are kept; where errors are finite inputs are these numbers, off by so much at most."""
    constant, kept = np.isfinite(errors), _kept(errors)
    if not constant.any():
        return affine
    bias = affine.bias
    weight_error, bias_error = affine.errors
    felt = np.flatnonzero(constant & ((numbers != 0) | (errors != 0)))
    if len(felt):
        weight, own, terms = affine.weight[:, felt], weight_error[:, felt], len(felt) + 2
        gamma, size = 4 * terms * UNIT, np.abs(weight) + own  # this sum, and that of whoever checks it in float64
        taken = terms * lost((weight, own), (numbers[felt], errors[felt]))
        sizes = np.abs(numbers[felt])
        off = size @ errors[felt] + own @ sizes + gamma * (size @ sizes + np.abs(bias))
        bias, bias_error = bias + weight @ numbers[felt], (bias_error + off + taken) * (1 + 4 * gamma)
    weight, weight_error = (np.where(constant, 0.0, one)[:, kept] for one in (affine.weight, weight_error))
    return Affine(weight, bias, weight_error, bias_error)


def _product(maps: Sequence[Affine]) -> Affine:
    """W_k (... (W_1 x + b_1) ...) + b_k in float64; a sum of n products errs by gamma_(n+1) of its terms' sizes, and by
    what underflow takes."""
    first = maps[0]
    weight, bias = first.weight, first.bias
    weight_error, bias_error = first.errors
    for one in maps[1:]:
        n = one.inputs + 2
        gamma = 2 * n * UNIT
        own_weight, own_bias = one.errors
        size = np.abs(one.weight) + own_weight
        taken = [n * lost((one.weight, own_weight), pair) for pair in ((weight, weight_error), (bias, bias_error))]
        weight_error = size @ weight_error + own_weight @ np.abs(weight) + gamma * (size @ np.abs(weight))
        bias_error = size @ bias_error + own_weight @ np.abs(bias) + own_bias + gamma * (size @ np.abs(bias))
        bias_error = bias_error + gamma * np.abs(one.bias)
        weight_error, bias_error = (
            (weight_error + taken[0]) * (1 + 4 * gamma),
            (bias_error + taken[1]) * (1 + 4 * gamma),
        )
        weight, bias = one.weight @ weight, one.weight @ bias + one.bias
    return Affine(weight, bias, weight_error, bias_error)
