"""What the heads of a feed-forward target may err by: ever smaller budgets, from what its outputs feel of each head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.compiler.budget import Budget
from anchorhead.compiler.estimate import anchors_for_a_digit
from anchorhead.constructions.neuron_layers import felt_by_outputs, shaped
from anchorhead.constructions.planning.uniform_estimates import UniformEstimates
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.errors import NotDefined
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.neurons import Layer
from anchorhead.targets.mlp import Mlp, merged

TRIES = 12


def budgets(
    target: Mlp, sources: Sources, within: float, margin: float, shapes: ActivationHeads | UniformEstimates
) -> Iterator[Budget]:
    """What the heads may err by, from the most that can do to ever less of it.

    Heads that are at hand are settled first: they often err by much less than their share, which the others get.
    """
    layers, felt = outlined_layers(target, sources, within, margin, shapes)
    growth = [np.array([anchors_for_a_digit(s.activation, s.low, s.high) for s in layer.shapes]) for layer in layers]
    for factor in np.geomspace(0.98, 1e-6, TRIES):
        budget = Budget(felt, growth, within * float(factor))
        for number, layer in enumerate(layers):
            for k, shape in enumerate(layer.shapes):
                if shapes.at_hand(shape):
                    chosen = shapes.choose(shape.activation, shape.low, shape.high, budget.share(number, k))
                    budget.settle(number, k, chosen.error)
        yield budget


def outlined_layers(
    target: Mlp, sources: Sources, within: float, margin: float, shapes: ActivationHeads | UniformEstimates
) -> tuple[list[Layer], list[Float[np.ndarray, "outputs shapes"]]]:
    """Layers whose shapes have no anchors yet, on ranges that have room for the errors that reach them; and what the
    outputs feel of each."""
    hidden, _ = merged(target)
    felt = [np.zeros((1, len(layer.activations))) for _, layer in hidden]
    layers, readout = shaped(target, sources, _equal(felt, 0.0), margin, shapes.outline)
    felt = felt_by_outputs(layers, readout, sources)
    for part in np.geomspace(1.0, 8.0 ** (1 - TRIES), TRIES):
        try:
            layers, readout = shaped(target, sources, _equal(felt, within * float(part)), margin, shapes.outline)
        except NotDefined:  # such errors would carry a neuron to where it is not defined
            continue
        return layers, felt_by_outputs(layers, readout, sources)
    return layers, felt


def _equal(felt: Sequence[Float[np.ndarray, "outputs shapes"]], within: float) -> Budget:
    return Budget(felt, [np.ones(one.shape[1]) for one in felt], within)
