"""A layer of neurons of a target, and the shapes that are to compute it: the claim that heads have to meet."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from anchorhead.proof.arithmetic.affine_forms import Sources, own_error
from anchorhead.proof.heads.shape import Shape, range_of
from anchorhead.targets.mlp import Hidden, Merged


@dataclass(frozen=True, eq=False)
class Layer:
    """The target's neurons a_r = phi_r(w_r . source + b_r), each with the shape that is to compute it.

    room  by how much the errors of a network may be expected to move each pre-activation: shapes leave room for it
    """

    merged: Merged
    hidden: Hidden
    shapes: tuple[Shape, ...]
    assigned: Int[np.ndarray, " neurons"]
    room: Float[np.ndarray, " neurons"] | float = 0.0
    _known: dict[Sources, tuple[np.ndarray, np.ndarray, Sources]] = field(default_factory=dict, init=False, repr=False)

    @property
    def neurons(self) -> int:
        return self.hidden.neurons

    @property
    def parts(self) -> int:
        """How many heads a neuron has: those of the largest shape."""
        return max(len(self.shapes[k].parts) for k in np.unique(self.assigned))

    def exact(self, sources: Sources) -> tuple[np.ndarray, np.ndarray, Sources]:
        """Intervals that hold the exact z_r, and those of the exact a_r; found once for the same sources."""
        if sources not in self._known:
            low, high = self.pre_activations(sources)
            self._known[sources] = low, high, self.activations(low, high)
        return self._known[sources]

    def pre_activations(self, sources: Sources) -> tuple[np.ndarray, np.ndarray]:
        """Intervals that hold the exact z_r."""
        affine = self.merged.affine
        middle = affine.weight @ sources.middle + affine.bias
        reach = np.abs(affine.weight) @ sources.radius
        size = np.abs(affine.weight) @ sources.size + np.abs(affine.bias)
        slack = own_error(affine.inputs) * size + self.merged.weight_error @ sources.size + self.merged.bias_error
        return middle - reach - slack, middle + reach + slack

    def activations(self, low: np.ndarray, high: np.ndarray) -> Sources:
        """Intervals that hold the exact a_r."""
        ends = np.empty((2, self.neurons))
        for k, activation in enumerate(self.hidden.activations):
            own = self.hidden.which == k
            if own.any():
                ends[:, own] = range_of(activation, low[own], high[own])
        return Sources(ends[0], ends[1])
