"""What the two layouts of neurons share: sizes, names, anchors, and how far away is out of reach."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorhead.constructions.neuron_layers import Laid
from anchorhead.proof.shape import Shape

FAR = 1000.0


def out_of_reach(largest_logit: float) -> float:
    """M: a power of two, so that products are exact, beyond all logits by far more than exp can tell from 0."""
    return float(2.0 ** np.ceil(np.log2(4 * (largest_logit + FAR))))


def anchors_of(shape: Shape, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes, offsets and values; a part that the shape does not have is one anchor of value 0."""
    if p < len(shape.parts):
        slopes, offsets, values = shape.parts[p].astype(np.float64)
        return slopes, offsets, values[:, 0]
    return np.zeros(1), np.zeros(1), np.zeros(1)


@dataclass(frozen=True, eq=False)
class LaidOut:
    """Neurons that become a network of `tokens` tokens with `inputs` features each."""

    laid: Laid
    tokens: int
    dtype: str

    @property
    def inputs(self) -> int:
        return len(self.laid.middle) // self.tokens

    @property
    def outputs(self) -> int:
        return len(self.laid.bias) // self.tokens

    @cached_property
    def far(self) -> float:
        return out_of_reach(self.laid.largest_logit)

    def _cast(self, array: np.ndarray) -> np.ndarray:
        return np.asarray(array).astype(self.dtype)

    def _output_names(self) -> tuple[str, ...]:
        return tuple(f"output {o}" for o in range(self.outputs))
