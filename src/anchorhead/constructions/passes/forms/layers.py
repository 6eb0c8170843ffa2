"""A program of quantities as a feed-forward network: every quantity as early as may be, what is read later carried."""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb

from anchorhead.constructions.passes.forms.quantities import Combination, Quantities
from anchorhead.errors import AnchorheadError
from anchorhead.language.targets.layered import MAX_NEURONS, Layered, Read
from anchorhead.language.targets.mlp import Mlp


def in_layers(quantities: Quantities, outputs: Sequence[Combination], tokens: int | None = None, name: str = "") -> Mlp:
    """The network that gives these outputs; what they do not depend on is left out."""
    layered, inputs = Layered(quantities.variables), len(quantities.variables)
    needed = _needed(quantities, outputs)
    reads = {i: Read(0, {i: arb(1)}, arb(0)) for i in range(inputs)}

    def read(of: Combination) -> Read:
        return layered.total([reads[i].scaled(c) for i, c in of.coefficients.items()]).shifted(of.constant)

    for place, step in enumerate(quantities.steps, start=inputs):
        if place in needed:
            reads[place] = layered.neuron(read(step.of), step.function)
        if layered.neurons > MAX_NEURONS:
            raise AnchorheadError(
                f"{name[:60]} takes more than {MAX_NEURONS:,} neurons, those that carry on included, and no more are "
                "built: split it up"
            )
    return layered.mlp([read(of) for of in outputs], tokens, name)


def _needed(quantities: Quantities, outputs: Sequence[Combination]) -> set[int]:
    """The quantities on which the outputs depend."""
    inputs = len(quantities.variables)
    needed = {i for of in outputs for i in of.coefficients}
    for place in range(len(quantities.ranges) - 1, inputs - 1, -1):
        if place in needed:
            needed |= set(quantities.steps[place - inputs].of.coefficients)
    return needed
