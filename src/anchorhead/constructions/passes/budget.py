"""Budget: how far every head may be off, so that the output is within the error asked for.

If the heads of group g err by d_g, output o errs by at most sum_g S_og d_g, S_og being what the output feels of them:
carried backwards through the layers, exactly through affine maps, by the largest slope on its range through a function.
The number of anchors grows like log(1/d), so that the smallest network has

    S_og d_g  =  within * growth_g / sum of the growths of the groups that output o feels,

growth_g the anchors that a head takes for every factor e. Heads come in whole anchors and leave some of their share:
what they leave goes to those that are chosen after them.

A proof finds bound_o = sum_g S_og d_g + rest_o: the rest is what queries and sums round by, and what the parts of a
head add that are asked with different numbers. If it stays as it is, heads may err by within - rest_o in the next try.
But it often shrinks with their errors, as where heads of fewer anchors have larger values, and much finer heads would
be more than is needed: none is asked for less than a part of what it erred by. Where the rest alone is more than
`within`, finer heads are tried as long as it shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.layouts.neurons import units
from anchorhead.constructions.passes.estimate import anchors_for_a_digit
from anchorhead.language.targets.mlp import Affine
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer

FIRST = 0.98
"""Of the error asked for, what heads may take before anything is proven."""
FINER, FAR_FINER = 0.7, 0.3
"""Of what heads erred by, the least that they may in the next try; and where nothing was proven of them."""
STAYS = 0.95
"""Where more than this is left of a rest in the next try, it does not shrink with the heads' errors."""
SHARES = (0.9, 0.5, 0.1)
"""Of the error asked for, what grids get, in the order tried, where there are neurons as well. Grids have a power of
the anchors that one variable takes, and get most of it, unless the neurons cannot do with the rest."""
LEAST = 1 / 64
"""Of the error asked for: what heads that are still to be chosen share, where others took more than was theirs."""


class Budget:
    """Shares of an error, given out head by head.

    within   how far each output may be off
    """

    def __init__(
        self,
        felt: Sequence[Float[np.ndarray, "outputs groups"]],
        growth: Sequence[Float[np.ndarray, " groups"]],
        within: Float[np.ndarray, " outputs"],
    ) -> None:
        self.felt, self.growth, self.within = felt, growth, within
        self._errors: dict[tuple[int, int], float] = {}
        self._settled: dict[tuple[int, int], float] = {}

    def share(self, layer: int, group: int) -> float:
        """d of a head, from what is left: the same factor of all that are still to be chosen."""
        if (layer, group) in self._settled:
            return self._settled[layer, group]
        felt = self.felt[layer][:, group] > 0
        if not felt.any():
            return float(self.within.max())
        left = np.maximum(self.left, LEAST * self.within)[felt]
        part = self.growth[layer][group] / self._open()[felt]
        return float((left * part / self.felt[layer][felt, group]).min())

    def settle(self, layer: int, group: int, error: float) -> None:
        """The share of a head is what it would get now. That it then errs by so much is known before it is chosen, and
        the others share what it leaves."""
        self._settled[layer, group] = self.share(layer, group)
        self.spend(layer, group, error)

    def spend(self, layer: int, group: int, error: float) -> None:
        """The head has been chosen, and errs by so much."""
        self._errors[layer, group] = error

    @property
    def left(self) -> Float[np.ndarray, " outputs"]:
        """What is left of the error at each output; less than nothing where heads took more than their shares."""
        spent = (self.felt[layer][:, group] * error for (layer, group), error in self._errors.items())
        return self.within - sum(spent)

    def _open(self) -> Float[np.ndarray, " outputs"]:
        """For each output the growths of the heads that are still to be chosen and that it feels."""
        total = np.zeros(len(self.felt[0]))
        for layer, (felt, growth) in enumerate(zip(self.felt, self.growth, strict=True)):
            waiting = [(layer, group) not in self._errors for group in range(felt.shape[1])]
            total += (felt > 0) @ np.where(waiting, growth, 0.0)
        return total


def budget_of(
    layers: Sequence[Layer],
    felt: Sequence[Float[np.ndarray, "outputs shapes"]],
    within: Float[np.ndarray, " outputs"],
    at_hand: Callable[[ActivationHead, float], float | None],
) -> Budget:
    """What the heads may err by, so that each output is within its error.

    Heads that are at hand are settled first: they often err by much less than their share, which the others get.

    at_hand   of the outline of a head and its share of the error: what the head errs by, if it need not be solved for
    """
    growth = [np.array([anchors_for_a_digit(s.activation, s.low, s.high) for s in layer.shapes]) for layer in layers]
    budget = Budget(felt, growth, within)
    for number, layer in enumerate(layers):
        for k, shape in enumerate(layer.shapes):
            error = at_hand(shape, budget.share(number, k))
            if error is not None:
                budget.settle(number, k, error)
    return budget


def after_proof(
    found: Float[np.ndarray, " outputs"], spent: Float[np.ndarray, " outputs"], within: float
) -> Float[np.ndarray, " outputs"]:
    """What heads may make each output err by in the next try, where a proof found so much of heads that spent this."""
    finer = np.where(np.isfinite(found), FINER, FAR_FINER)
    return np.maximum(within - (found - spent), finer * spent)


def felt_by_outputs(
    layers: Sequence[Layer], readout: Affine, sources: Sources
) -> list[Float[np.ndarray, "outputs shapes"]]:
    """S for every layer: by how much each output errs at most if a shape errs by 1, all others by 0."""
    known = []
    for layer in layers:
        low, high, sources = layer.exact(sources)
        known.append((layer, *units(layer, low, high)))
    found, felt = [], np.abs(readout.weight)
    for layer, unit_in, unit_out in reversed(known):
        each = felt * unit_out
        found.append(np.stack([each[:, layer.which == k].sum(axis=1) for k in range(len(layer.shapes))], axis=1))
        slope = np.array([shape.slope for shape in layer.shapes])[layer.which]
        felt = (each * slope / unit_in) @ np.abs(layer.affine.weight)
    return found[::-1]
