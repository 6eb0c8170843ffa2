"""What the two layouts of neurons share: sizes, names, anchors, and how far away is out of reach."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorhead.constructions.layouts.feature_names import inputs_called, less
from anchorhead.constructions.layouts.neurons import Laid, Queries
from anchorhead.proof.heads.activation_head import ActivationHead

FAR, ABSENT = 1000.0, 10_000.0
"""By how much the logit of a key that is sought is above others, and that of one that is not there below: all weights
that are not to be are 0 in floating point."""


def out_of_reach(largest_logit: float) -> float:
    """M: a power of two, so that products are exact, beyond all logits by far more than exp can tell from 0."""
    return float(2.0 ** np.ceil(np.log2(4 * (largest_logit + FAR))))


def anchors_of(shape: ActivationHead, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes, offsets and values; a part that the shape does not have is one anchor of value 0."""
    if p < len(shape.parts):
        slopes, offsets, values = shape.parts[p].astype(np.float64)
        return slopes, offsets, values[:, 0]
    return np.zeros(1), np.zeros(1), np.zeros(1)


def length_of(shape: ActivationHead, p: int) -> int:
    """How many anchors these are."""
    return shape.lengths[p] if p < len(shape.lengths) else 1


def longest(layer: Queries) -> int:
    """The anchors of the longest part of any shape."""
    return max(max(shape.lengths) for shape in layer.shapes)


@dataclass(frozen=True, eq=False)
class LaidOut:
    """Neurons that become a network of `tokens` tokens with `inputs` features each.

    variables  what the entries of all tokens are called, where they have names
    """

    laid: Laid
    tokens: int
    variables: tuple[str, ...] = ()

    @property
    def inputs(self) -> int:
        return len(self.laid.middle) // self.tokens

    @property
    def outputs(self) -> int:
        return len(self.laid.bias) // self.tokens

    @cached_property
    def far(self) -> float:
        return out_of_reach(self.laid.largest_logit)

    @cached_property
    def _entries(self) -> list[str]:
        """What the entries of the input are called, token by token."""
        if self.variables:
            return inputs_called(self.variables)
        of = [f" of token {j}" for j in range(self.tokens)] if self.tokens > 1 else [""]
        return [f"x {f}{which}" for which in of for f in range(self.inputs)]

    def _input_names(self, centred: bool) -> list[str]:
        """What the features are called that hold a token's inputs, or these less the middle of their interval."""
        names = self._entries if self.tokens == 1 else [f"x {f}" for f in range(self.inputs)]
        if not centred:
            return names
        middles = self.laid.middle.reshape(self.tokens, self.inputs).T
        return [less(name, *middle) for name, middle in zip(names, middles, strict=True)]

    def _output_names(self) -> tuple[str, ...]:
        return tuple(f"output {o}" for o in range(self.outputs))
