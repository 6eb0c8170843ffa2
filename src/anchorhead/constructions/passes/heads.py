"""Heads: the smallest proven one for each function, range and error, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from anchorhead.constructions.layouts.neurons import units
from anchorhead.constructions.passes.budget import Budget
from anchorhead.errors import AnchorheadError, NotDefined, NotReached
from anchorhead.language.expressions.expression import Expression
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.heads.activation_head import ActivationHead
from anchorhead.proof.heads.neurons import Layer

ChooseHead = Callable[[Expression, float, float, float], ActivationHead]
"""A shape for an activation on [low, high], within an error."""
GUESSED_TIMES = 32.0
"""For a head of which nothing is known: floats often miss what is asked for by about so much."""


class HeadRefused(AnchorheadError):
    """A head cannot be had: the message says which, on which interval, within which error.

    times  how many times that error the best head errs by, or a guess
    """

    def __init__(self, message: str, times: float) -> None:
        super().__init__(message)
        self.times = times


def with_heads(
    neurons: Sequence[Layer], sources: Sources, budget: Budget, margin: float, choose: ChooseHead
) -> list[Layer]:
    """The layers with a shape for every activation of each, within its share of the budget (of unit scale).

    What the heads of a layer err by moves the arguments of the next ones, whose heads leave room for it.

    margin   room around a pre-activation's interval for what else reaches it, as a part of its size
    """
    layers = []
    reaching = np.zeros(sources.count)
    for number, layer in enumerate(neurons):
        low, high, after = layer.exact(sources)
        moved = np.abs(layer.affine.weight) @ reaching
        room = 1.01 * moved + margin * np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-3)
        shapes = []
        for k in range(len(layer.activations)):
            shapes.append(_shape(layer, k, low - room, high + room, budget.share(number, k), choose))
            budget.spend(number, k, shapes[k].error)
        layers.append(replace(layer, shapes=tuple(shapes), room=room))
        unit_in, unit_out = units(layers[-1], low, high)
        slope, left = (np.array([getattr(s, name) for s in shapes])[layer.which] for name in ("slope", "error"))
        reaching = unit_out * (left + slope * moved / unit_in)
        sources = after
    return layers


def _shape(layer: Layer, k: int, low: np.ndarray, high: np.ndarray, error: float, choose: ChooseHead) -> ActivationHead:
    own = layer.which == k
    activation, ends = layer.activations[k], (float(low[own].min()), float(high[own].max()))
    if not np.isfinite(ends).all():
        raise AnchorheadError(
            f"the argument of {activation} may be larger than float64 holds, as far as is known of its parts: choose a "
            "smaller box, or smaller weights"
        )
    try:
        return choose(activation, *ends, error)
    except NotDefined as why:
        raise NotDefined(
            f"a part of the function, {activation}, is needed for x in [{ends[0]:.6g}, {ends[1]:.6g}], the bounds on "
            f"its argument with room for errors: {why}"
        ) from why
    except AnchorheadError as why:
        times = why.bound / error if isinstance(why, NotReached) and error > 0 else GUESSED_TIMES
        raise HeadRefused(f"{activation} on [{ends[0]:.6g}, {ends[1]:.6g}] within {error:.3g}: {why}", times) from why
