"""Ranges: between which ends the arguments of all functions stay, with room for the errors that reach them.

The heads of a layer are known by their interval and their slope alone (`ActivationHeads.outline`): their errors are an
equal share each of the error asked for, and widen the ranges of the layers after them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.passes.budget import Budget, felt_by_outputs
from anchorhead.constructions.passes.heads import ChooseHead, with_heads
from anchorhead.errors import NotDefined
from anchorhead.language.targets.mlp import Affine
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.neurons import Layer

MARGIN = {"float32": 1e-3, "float64": 1e-6}
"""Room around a pre-activation's interval for the errors that reach it, as a part of its size."""
TRIES = 12


def ranged(
    neurons: Sequence[Layer], readout: Affine, sources: Sources, within: float, margin: float, outline: ChooseHead
) -> list[Layer]:
    """Heads with ranges and without anchors, at the largest errors that carry no neuron to where it is not defined."""
    nothing = [np.zeros((1, len(layer.activations))) for layer in neurons]
    layers = with_heads(neurons, sources, _equal(nothing, 0.0), margin, outline)
    felt = felt_by_outputs(layers, readout, sources)
    for part in np.geomspace(1.0, 8.0 ** (1 - TRIES), TRIES):
        try:
            return with_heads(neurons, sources, _equal(felt, within * float(part)), margin, outline)
        except NotDefined:  # such errors would carry a neuron to where it is not defined
            continue
    return layers


def _equal(felt: Sequence[Float[np.ndarray, "outputs shapes"]], within: float) -> Budget:
    growth = [np.ones(one.shape[1]) for one in felt]
    return Budget(felt, growth, np.full(len(felt[0]) if felt else 0, within))
