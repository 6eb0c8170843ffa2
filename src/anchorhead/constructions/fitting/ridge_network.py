"""From what was fitted on [-1, 1]^d to a feed-forward target on the box, straight parts carried by identity neurons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg import block_diag

from anchorhead.constructions.fitting.ridge_model import Ridges, TwoLayers
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp

RELU = parse("relu(x)")


def network_on(model: Ridges | TwoLayers, low: Float[np.ndarray, " inputs"], high: Float[np.ndarray, " inputs"]) -> Mlp:
    """The network on the box from low to high: u = (x - middle) / half enters what was fitted."""
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    scale = np.divide(1.0, half, out=np.zeros_like(half), where=half > 0)

    def entered(weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weight = weight * scale
        return weight, bias - weight @ middle

    if isinstance(model, Ridges):
        weight, bias, readout = _straight_beside(model.weight, model.bias, model.outer)
        hidden = (_hidden(*entered(weight, bias), parse(f"{model.activation}(x)"), model.neurons),)
    else:
        first, d = model.weight.shape
        weight, bias = np.concatenate([model.weight, np.eye(d)]), np.append(model.bias, np.zeros(d))
        second, shift, readout = _straight_beside(model.second, model.shift, model.outer)
        hidden = _hidden(*entered(weight, bias), RELU, first), _hidden(second, shift, RELU, len(model.shift))
    return Mlp(hidden, readout)


def _hidden(weight: np.ndarray, bias: np.ndarray, activation: Expression, bent: int) -> Hidden:
    """Neurons of which the first so many have the activation, and the others are straight."""
    return Hidden(Affine(weight, bias), (activation, IDENTITY), (np.arange(len(bias)) >= bent).astype(int))


def _straight_beside(weight: np.ndarray, bias: np.ndarray, outer: np.ndarray) -> tuple[np.ndarray, np.ndarray, Affine]:
    """The last hidden layer with neurons for the straight part, one for each output, or for each entry if fewer; and
    what reads them."""
    count, m = len(bias), outer.shape[1]
    c, line, shift = outer[:count], outer[count:-1], outer[-1]
    straight, back = (line.T, np.eye(m)) if m <= len(line) else (np.eye(len(line)), line.T)
    readout = Affine(np.concatenate([c.T, back], axis=1), shift)
    return np.concatenate([weight, straight]), np.append(bias, np.zeros(len(straight))), readout


def bent(network: Mlp, low: Float[np.ndarray, " inputs"], high: Float[np.ndarray, " inputs"]) -> Mlp:
    """The same function on a box, straight neurons v as relu(v + k) - k, k so large that nothing is cut off."""
    hidden, taken = [], np.zeros(network.inputs)
    for layer in network.hidden:
        weight, bias = layer.affine.weight, layer.affine.bias - layer.affine.weight @ taken
        up, down = np.maximum(weight, 0), np.minimum(weight, 0)
        least, most = (up @ a + down @ b + bias for a, b in ((low, high), (high, low)))
        straight = np.array([layer.activations[k] is IDENTITY for k in layer.which])
        taken = np.where(straight, np.maximum(-least, 0) + 1e-6 * (most - least), 0.0)
        activations = tuple(RELU if one is IDENTITY else one for one in layer.activations)
        hidden.append(Hidden(Affine(weight, bias + taken), activations, layer.which))
        low, high = np.maximum(least + taken, 0), np.maximum(most + taken, 0)
    readout = network.readout
    return Mlp(tuple(hidden), Affine(readout.weight, readout.bias - readout.weight @ taken))


def _deeper(network: Mlp, layers: int) -> Mlp:
    """The same function with so many hidden layers; the added ones carry the outputs."""
    hidden, readout = list(network.hidden), network.readout
    while len(hidden) < layers:
        hidden.append(Hidden.of(readout.weight, readout.bias, IDENTITY))
        readout = Affine(np.eye(readout.outputs), np.zeros(readout.outputs))
    return Mlp(tuple(hidden), readout)


def network_of(parts: Sequence[Mlp], tokens: int | None, inputs: int, variables: tuple[str, ...] = ()) -> Mlp:
    """Networks side by side: each reads the first inputs, as many as it takes, and gives outputs of its own."""
    parts = [_deeper(part, max(len(one.hidden) for one in parts)) for part in parts]
    hidden = []
    for layers in zip(*(part.hidden for part in parts), strict=True):
        weights = [layer.affine.weight for layer in layers]
        if hidden:
            weight = np.asarray(block_diag(*weights))
        else:
            weight = np.concatenate([np.pad(one, ((0, 0), (0, inputs - one.shape[1]))) for one in weights])
        functions = [layer.activations[k] for layer in layers for k in layer.which]
        kinds = tuple(dict.fromkeys(functions))
        bias = np.concatenate([layer.affine.bias for layer in layers])
        hidden.append(Hidden(Affine(weight, bias), kinds, np.array([kinds.index(one) for one in functions])))
    readouts = [part.readout for part in parts]
    weight = np.asarray(block_diag(*(one.weight for one in readouts)))
    readout = Affine(weight, np.concatenate([one.bias for one in readouts]))
    return Mlp(tuple(hidden), readout, tokens, variables=variables)
