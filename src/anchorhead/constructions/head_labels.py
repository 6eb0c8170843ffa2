"""What heads do, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.neuron_layers import Neurons

MOST_TERMS = 4


def neuron_labels(neurons: Neurons, names: Sequence[str]) -> tuple[str, ...]:
    """What the head of each neuron and part computes, in the names of the features before."""
    return tuple(
        f"{neurons.shapes[neurons.assigned[r]].activation} at x = {affine_text(weight, neurons.bias[r], names)}"
        + (f", part {p}" if neurons.parts > 1 else "")
        for r, weight in enumerate(neurons.weight)
        for p in range(neurons.parts)
    )


def affine_text(weight: Float[np.ndarray, " n"], bias: float, names: Sequence[str]) -> str:
    """The largest few terms of w . x + b, such as `2 (x 0 of token 1) - (x 1 of token 0) + 0.5`."""
    heaviest = np.argsort(-np.abs(weight[: len(names)]), kind="stable")
    terms = [(float(weight[i]), f"({names[i]})") for i in heaviest if weight[i] != 0]
    shown, hidden = terms[:MOST_TERMS], len(terms) - MOST_TERMS
    text = "".join(_signed(factor, name) for factor, name in shown)
    if hidden > 0:
        text += f" + {hidden} smaller terms"
    if bias or not terms:
        text += _signed(float(bias), "")
    return "-" + text[3:] if text.startswith(" - ") else text[3:]


def _signed(factor: float, name: str) -> str:
    size = f"{abs(factor):.4g}"
    number = "" if name and size == "1" else size + (" " if name else "")
    return f" {'-' if factor < 0 else '+'} {number}{name}"
