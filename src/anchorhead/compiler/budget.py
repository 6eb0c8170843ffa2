"""How far every head may be off, so that the output is within the error asked for.

If the heads of group g err by d_g, output o errs by at most sum_g S_og d_g, where S_og is what the output feels of them:
carried backwards through the layers, exactly through affine maps, by the largest slope on its range through a function.
The number of anchors grows like log(1/d), so that the smallest network has

    S_og d_g  =  within * growth_g / sum of the growths of the groups that output o feels,

growth_g the anchors that a head takes for every factor e. Heads come in whole anchors and leave some of their share:
what they leave goes to those that are chosen after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

LEAST = 1 / 64
"""Of the error asked for: what is left for the heads that are still to be chosen, where others took more than theirs."""


@dataclass(frozen=True, eq=False)
class FeltLayer:
    """Neurons a_r = phi_r(w_r . before), in groups that share a head.

    slope  a bound on |phi_r'|          size   by how much a_r errs if the head of its group errs by 1
    group  which head computes it       count  how many heads there are
    """

    weight: Float[np.ndarray, "neurons before"]
    slope: Float[np.ndarray, " neurons"]
    size: Float[np.ndarray, " neurons"]
    group: Int[np.ndarray, " neurons"]
    count: int


def sensitivities(
    layers: Sequence[FeltLayer], readout: Float[np.ndarray, "outputs neurons"]
) -> list[Float[np.ndarray, "outputs groups"]]:
    """S for every layer: by how much each output errs at most if the heads of one group err by 1, all others by 0."""
    found = []
    felt = np.abs(readout)
    for layer in reversed(layers):
        each = felt * layer.size
        found.append(np.stack([each[:, layer.group == g].sum(axis=1) for g in range(layer.count)], axis=1))
        felt = (felt * layer.slope) @ np.abs(layer.weight)
    return found[::-1]


class Budget:
    """Shares of an error, given out head by head."""

    def __init__(
        self,
        felt: Sequence[Float[np.ndarray, "outputs groups"]],
        growth: Sequence[Float[np.ndarray, " groups"]],
        within: float,
    ) -> None:
        self.felt, self.within = felt, within
        # of each layer and group, for each output: its growth, 0 once it is chosen or where it is not felt
        self._open = [np.where(s > 0, g, 0.0) for s, g in zip(felt, growth, strict=True)]
        self._left = np.full(len(felt[0]) if felt else 0, within)

    def share(self, layer: int, group: int) -> float:
        """d of a head, from what is left: the same factor of all that are still to be chosen."""
        own = self._open[layer][:, group]
        felt = own > 0
        if not felt.any():
            return self.within
        every = sum(one.sum(axis=1) for one in self._open)
        left = np.maximum(self._left, LEAST * self.within)
        return float((left[felt] * own[felt] / every[felt] / self.felt[layer][felt, group]).min())

    def spend(self, layer: int, group: int, error: float) -> None:
        """The head has been chosen, and errs by so much."""
        self._left = self._left - self.felt[layer][:, group] * error
        self._open[layer][:, group] = 0.0

    @property
    def spent(self) -> float:
        """The most that any output errs by, of all that has been chosen."""
        return float((self.within - self._left).max(initial=0.0))
