"""Functions of affine quantities, as a program has them: what heads claim to compute."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from anchorhead.language.targets.mlp import Affine, Hidden
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources
from anchorhead.proof.enclosures.ranges import range_of
from anchorhead.proof.heads.activation_head import ActivationHead


def exact_forms(affine: Affine, sources: Sources) -> Forms:
    """What a program means by an affine map, as the features of one token."""
    weight_error, bias_error = affine.errors
    nothing = np.zeros((1, affine.outputs))
    return Forms(affine.weight[None], affine.bias[None], nothing, (weight_error @ sources.size + bias_error)[None])


@dataclass(frozen=True, eq=False)
class Layer(Hidden):
    """Neurons, an Apply on an Affine, with the heads that are to compute them.

    shapes  for each function the head that is to compute it; none: not chosen yet
    room    by how much the errors of a network may be expected to move each pre-activation: shapes leave room for it
    passing how many of the last sources pass by, and come after the neurons in what is made
    """

    shapes: tuple[ActivationHead, ...] = ()
    room: Float[np.ndarray, " neurons"] | float = 0.0
    passing: int = 0
    _known: dict[Sources, tuple[np.ndarray, np.ndarray, Sources]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def parts(self) -> int:
        """How many heads a neuron has: those of the largest shape. Asked for neuron by neuron, and found once."""
        return max(len(self.shapes[k].parts) for k in np.unique(self.which))

    def of_shapes(self, *names: str) -> list[np.ndarray]:
        """What the shapes of all neurons say, each by its name."""
        return [np.array([getattr(shape, name) for shape in self.shapes])[self.which] for name in names]

    def exact(self, sources: Sources) -> tuple[np.ndarray, np.ndarray, Sources]:
        """Intervals that hold the exact z_r, and those of the exact a_r; found once for the same sources."""
        if sources not in self._known:
            low, high = (end[0] for end in exact_forms(self.affine, sources).ends(sources))
            self._known[sources] = low, high, self._between(low, high)
        return self._known[sources]

    def after(self, sources: Sources) -> Sources:
        """Between what the exact a_r lie, and what passes by."""
        return self.exact(sources)[2].joined(sources.last(self.passing))

    def beside(self, others: int) -> Layer:
        """The same neurons, while so many other quantities pass by."""
        weight, error = (np.pad(array, ((0, 0), (0, others))) for array in (self.affine.weight, self.affine.errors[0]))
        affine = Affine(weight, self.affine.bias, error, self.affine.errors[1])
        return replace(self, affine=affine, passing=others)

    def _between(self, low: np.ndarray, high: np.ndarray) -> Sources:
        """Intervals that hold the exact a_r."""
        ends = np.empty((2, self.neurons))
        for k, function in enumerate(self.activations):
            own = self.which == k
            if own.any():
                ends[:, own] = range_of(function, low[own], high[own])
        return Sources(ends[0], ends[1])
