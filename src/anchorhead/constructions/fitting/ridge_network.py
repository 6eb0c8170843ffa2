"""From what was fitted on [-1, 1]^d to a feed-forward target on the box, straight parts carried by identity neurons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.fitting.ridge_model import Ridges, TwoLayers
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp

LINE = "x"


@dataclass(frozen=True, eq=False)
class Block:
    """Hidden layers (weight, bias, names of activations), and what reads the last of them."""

    hidden: tuple[tuple[np.ndarray, np.ndarray, tuple[str, ...]], ...]
    weight: Float[np.ndarray, "outputs last"]
    bias: Float[np.ndarray, " outputs"]

    @property
    def inputs(self) -> int:
        return self.hidden[0][0].shape[1]

    def deeper(self, layers: int) -> Block:
        """The same function with so many hidden layers; the added ones carry the outputs."""
        block = self
        while len(block.hidden) < layers:
            more = (block.weight, block.bias, (LINE,) * len(block.bias))
            block = Block((*block.hidden, more), np.eye(len(block.bias)), np.zeros(len(block.bias)))
        return block

    def bent(self, low: np.ndarray, high: np.ndarray) -> Block:
        """The same function on a box, straight neurons v as relu(v + k) - k, k so large that nothing is cut off."""
        weights = [weight for weight, _, _ in self.hidden] + [self.weight]
        biases = [bias.copy() for _, bias, _ in self.hidden] + [self.bias.copy()]
        hidden = []
        for layer, (weight, _, names) in enumerate(self.hidden):
            up, down = np.maximum(weight, 0), np.minimum(weight, 0)
            least, most = (up @ a + down @ b + biases[layer] for a, b in ((low, high), (high, low)))
            straight = np.array([name == LINE for name in names])
            k = np.where(straight, np.maximum(-least, 0) + 1e-6 * (most - least), 0.0)
            biases[layer] += k
            biases[layer + 1] -= weights[layer + 1] @ k
            hidden.append((weight, biases[layer], tuple("relu" if name == LINE else name for name in names)))
            low, high = np.maximum(least + k, 0), np.maximum(most + k, 0)
        return Block(tuple(hidden), self.weight, biases[-1])


def block_of(model: Ridges | TwoLayers, low: np.ndarray, high: np.ndarray) -> Block:
    """The network on the box from low to high: u = (x - middle) / half enters what was fitted."""
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    scale = np.divide(1.0, half, out=np.zeros_like(half), where=half > 0)

    def entered(weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weight = weight * scale
        return weight, bias - weight @ middle

    if isinstance(model, Ridges):
        weight, bias, names, readout, shift = _read(model.weight, model.bias, model.activation, model.outer)
        return Block(((*entered(weight, bias), names),), readout, shift)
    first, d = model.weight.shape
    weight, bias = np.concatenate([model.weight, np.eye(d)]), np.append(model.bias, np.zeros(d))
    second, move, names, readout, shift = _read(model.second, model.shift, "relu", model.outer)
    one = (*entered(weight, bias), ("relu",) * first + (LINE,) * d)
    return Block((one, (second, move, names)), readout, shift)


def _read(
    weight: np.ndarray, bias: np.ndarray, activation: str, outer: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], np.ndarray, np.ndarray]:
    """The last hidden layer with neurons for the straight part: one for each output, or for each entry if fewer."""
    count, m = len(bias), outer.shape[1]
    c, line, shift = outer[:count], outer[count:-1], outer[-1]
    straight, back = (line.T, np.eye(m)) if m <= len(line) else (np.eye(len(line)), line.T)
    names = (activation,) * count + (LINE,) * len(straight)
    return (
        np.concatenate([weight, straight]),
        np.append(bias, np.zeros(len(straight))),
        names,
        np.concatenate([c.T, back], axis=1),
        shift,
    )


def network_of(blocks: Sequence[Block], tokens: int | None, inputs: int, variables: tuple[str, ...] = ()) -> Mlp:
    """Blocks side by side: each reads the first inputs, as many as it takes, and gives outputs of its own."""
    depth = max(len(block.hidden) for block in blocks)
    blocks = [block.deeper(depth) for block in blocks]
    hidden = []
    for layer in range(depth):
        weights = [block.hidden[layer][0] for block in blocks]
        if layer == 0:
            weight = np.concatenate([np.pad(one, ((0, 0), (0, inputs - one.shape[1]))) for one in weights])
        else:
            weight = _diagonal(weights)
        names = [name for block in blocks for name in block.hidden[layer][2]]
        kinds = list(dict.fromkeys(names))
        activations = tuple(IDENTITY if kind == LINE else parse(f"{kind}(x)") for kind in kinds)
        bias = np.concatenate([block.hidden[layer][1] for block in blocks])
        hidden.append(Hidden(Affine(weight, bias), activations, np.array([kinds.index(name) for name in names])))
    readout = Affine(_diagonal([block.weight for block in blocks]), np.concatenate([block.bias for block in blocks]))
    return Mlp(tuple(hidden), readout, tokens, variables=variables)


def _diagonal(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """Matrices along the diagonal of a larger one."""
    result = np.zeros(np.sum([block.shape for block in blocks], axis=0))
    row = column = 0
    for block in blocks:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result
