"""Expressions in several variables as networks of ridges: one hidden layer, exactly the same function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorhead.targets.expression import Expression
from anchorhead.targets.mlp import IDENTITY, Affine, Hidden, Mlp
from anchorhead.targets.ridges import Structure, split_affine, split_constant, structure


@dataclass(frozen=True, eq=False)
class Found:
    """What was found in the expressions: the network, if all of them are sums of ridges, and what is left over."""

    network: Mlp | None
    structures: Sequence[Structure]

    @property
    def left_over(self) -> Sequence[Expression]:
        return tuple(term for one in self.structures for term in one.left_over)

    def words(self) -> str:
        """The structure in words."""
        ridges = [ridge for one in self.structures for ridge in one.ridges]
        single = sum(int((ridge.weight != 0).sum() == 1) for ridge in ridges)
        parts = []
        if single:
            parts.append(f"{single} function{'s' * (single > 1)} of one variable")
        if len(ridges) > single:
            several = len(ridges) - single
            parts.append(f"{several} function{'s' * (several > 1)} of one linear combination")
        if self.left_over:
            parts.append(f"{len(self.left_over)} left over: {', '.join(str(term) for term in self.left_over[:3])}")
        return ", ".join(parts) or "a constant"


def expression_network(expressions: Sequence[Expression], variables: Sequence[str], tokens: int | None = None) -> Found:
    """The network whose hidden neurons are the ridges; affine parts of an output are one neuron that is the identity.

    Neurons with the same weights and function serve several outputs.
    """
    structures = tuple(structure(expression, variables) for expression in expressions)
    if any(one.left_over for one in structures):
        return Found(None, structures)
    neurons: dict[tuple[bytes, Expression], int] = {}
    weights: list[np.ndarray] = []
    functions: list[Expression] = []
    takes: list[tuple[int, int, float]] = []
    bias = np.zeros(len(expressions))

    def neuron(weight: np.ndarray, function: Expression) -> int:
        key = (weight.tobytes(), function)
        if key not in neurons:
            neurons[key] = len(weights)
            weights.append(weight)
            functions.append(function)
        return neurons[key]

    for output, one in enumerate(structures):
        line = np.zeros(len(variables))
        for ridge in one.ridges:
            affine = split_affine(ridge.function)
            exact = (
                affine is not None
                and _exact_sum(line, affine[0], ridge.weight)
                and _exact_bias(bias[output], affine[1])
            )
            if affine is not None and exact:
                line = line + affine[0] * ridge.weight
                bias[output] += affine[1]
            else:
                scale, function = split_constant(ridge.function)
                takes.append((output, neuron(ridge.weight, function), scale))
        if line.any():
            takes.append((output, neuron(line, IDENTITY), 1.0))
    if not weights:
        weights, functions = [np.zeros(len(variables))], [IDENTITY]
    readout = np.zeros((len(expressions), len(weights)))
    for output, place, scale in takes:
        readout[output, place] += scale
    distinct = tuple(dict.fromkeys(functions))
    which = np.array([distinct.index(function) for function in functions])
    hidden = Hidden(Affine(np.stack(weights), np.zeros(len(weights))), distinct, which)
    name = ", ".join(str(expression) for expression in expressions)
    name = name if len(expressions) == 1 else f"[{name}]"
    return Found(Mlp((hidden,), Affine(readout, bias), tokens, name), structures)


def _exact_sum(line: np.ndarray, slope: float, weight: np.ndarray) -> bool:
    """Whether line + slope weight rounds nothing: no entry has two parts, and products are by 0 or 1."""
    plain = np.isin(np.abs(weight), (0.0, 1.0)).all() or abs(slope) == 1
    return bool(plain and not ((line != 0) & (weight != 0)).any())


def _exact_bias(bias: float, more: float) -> bool:
    return bias == 0 or more == 0
