"""Ranges: between which ends the arguments of all functions stay, with room for the errors that reach them.

The heads of a layer are known by their interval and their slope alone (`ActivationHeads.outline`): their errors are an
equal share each of the error asked for, and widen the ranges of the layers after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.passes.budget import Budget, felt_by_outputs
from anchorhead.constructions.passes.heads import ChooseHead, with_heads
from anchorhead.errors import NotDefined
from anchorhead.language.targets.merge import Merged
from anchorhead.language.targets.mlp import Affine
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.neurons import Layer

MARGIN = {"float32": 1e-3, "float64": 1e-6}
"""Room around a pre-activation's interval for the errors that reach it, as a part of its size."""
TRIES = 12


@dataclass(frozen=True, eq=False)
class Ranged:
    """Layers whose heads have ranges and no anchors yet, and what the outputs feel of each head (passes.budget)."""

    layers: Sequence[Layer]
    felt: Sequence[Float[np.ndarray, "outputs shapes"]]


def ranged(
    neurons: Sequence[Merged], readout: Affine, sources: Sources, within: float, margin: float, outline: ChooseHead
) -> Ranged:
    """The ranges at the largest errors that carry no neuron to where it is not defined."""
    felt = [np.zeros((1, len(one.hidden.activations))) for one in neurons]
    layers = with_heads(neurons, sources, _equal(felt, 0.0), margin, outline)
    felt = felt_by_outputs(layers, readout, sources)
    for part in np.geomspace(1.0, 8.0 ** (1 - TRIES), TRIES):
        try:
            layers = with_heads(neurons, sources, _equal(felt, within * float(part)), margin, outline)
        except NotDefined:  # such errors would carry a neuron to where it is not defined
            continue
        return Ranged(layers, felt_by_outputs(layers, readout, sources))
    return Ranged(layers, felt)


def _equal(felt: Sequence[Float[np.ndarray, "outputs shapes"]], within: float) -> Budget:
    growth = [np.ones(one.shape[1]) for one in felt]
    return Budget(felt, growth, np.full(len(felt[0]) if felt else 0, within))
