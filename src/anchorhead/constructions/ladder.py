"""The ladder that building climbs: heads that may err by ever less, and the neurons that they make.

What each head may err by comes from what the outputs feel of it. Building stops at the first rung whose network is
proven within the error, a plan at the first of which that is foreseen; neither makes a rung that it does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float

from anchorhead.compiler.budget import Budget
from anchorhead.compiler.estimate import anchors_for_a_digit
from anchorhead.constructions.neuron_layers import Laid, felt_by_outputs, laid_out, shaped
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotDefined
from anchorhead.language.targets.merge import merged
from anchorhead.language.targets.mlp import Mlp
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.neurons import Layer

MARGIN = {"float32": 1e-3, "float64": 1e-6}
"""Room around a pre-activation's interval for the errors that reach it, as a part of its size."""
TRIES = 12


@dataclass(eq=False)
class Ladder:
    """The neurons for one error, with heads from coarse to fine, each found once; the same for all forms and layouts.

    shapes  which heads stand in for activations
    ended   why there are no more rungs, or not all of them, if so
    """

    target: Mlp
    on: Box
    within: float
    shapes: ActivationHeads
    ended: AnchorheadError | None = None
    _found: list[Laid] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._more = self._climbed()

    @cached_property
    def sources(self) -> Sources:
        """The inputs' intervals."""
        box = self.on.broadcast_to(self.target.input_shape)
        return Sources(*(end.reshape(-1).astype(np.float64) for end in (box.low, box.high)))

    def __iter__(self) -> Iterator[Laid]:
        place = 0
        while True:
            if place == len(self._found):
                laid = next(self._more, None)
                if laid is None:
                    return
                self._found.append(laid)
            yield self._found[place]
            place += 1

    def _climbed(self) -> Iterator[Laid]:
        margin, middle = MARGIN[self.shapes.dtype], self.sources.middle.astype(self.shapes.dtype).astype(np.float64)
        tried: set[tuple[int, ...]] = set()
        try:
            for budget in _budgets(self.target, self.sources, self.within, margin, self.shapes):
                try:
                    layers, readout = shaped(self.target, self.sources, budget, margin, self.shapes.choose)
                except (
                    NotDefined
                ) as error:  # smaller errors keep the next layer's arguments closer to where they belong
                    self.ended = error
                    continue
                these = tuple(id(shape) for layer in layers for shape in layer.shapes)
                if these not in tried:
                    tried.add(these)
                    yield laid_out(layers, readout, self.sources, middle)
        except AnchorheadError as error:
            self.ended = error


def _budgets(target: Mlp, sources: Sources, within: float, margin: float, shapes: ActivationHeads) -> Iterator[Budget]:
    """What the heads may err by, from the most that can do to ever less of it.

    Heads that are at hand are settled first: they often err by much less than their share, which the others get.
    """
    layers, felt = _outlined_layers(target, sources, within, margin, shapes)
    growth = [np.array([anchors_for_a_digit(s.activation, s.low, s.high) for s in layer.shapes]) for layer in layers]
    for factor in np.geomspace(0.98, 1e-6, TRIES):
        budget = Budget(felt, growth, within * float(factor))
        for number, layer in enumerate(layers):
            for k, shape in enumerate(layer.shapes):
                if shapes.at_hand(shape):
                    chosen = shapes.choose(shape.activation, shape.low, shape.high, budget.share(number, k))
                    budget.settle(number, k, chosen.error)
        yield budget


def _outlined_layers(
    target: Mlp, sources: Sources, within: float, margin: float, shapes: ActivationHeads
) -> tuple[list[Layer], list[Float[np.ndarray, "outputs shapes"]]]:
    """Layers whose shapes have no anchors yet, on ranges that have room for the errors that reach them; and what the
    outputs feel of each."""
    hidden, _ = merged(target)
    felt = [np.zeros((1, len(one.hidden.activations))) for one in hidden]
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
