"""What heads do, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.layouts.neurons import Queries
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.targets.mlp import IDENTITY

MAX_TERMS = 4
ARGUMENTS = ("s", "t", "u", "z")


def neuron_labels(layer: Queries, before: Sequence[str]) -> tuple[str, ...]:
    """What the head of each neuron and part computes, such as `square(s) at s = 0.5 x + 0.5 y, divided by 4`.

    before   what the neurons before, or the inputs, are called
    """
    argument = argument_beside(before)
    names = [f"({name})" if " " in name else name for name in before]
    functions = [_at(shape.activation, argument) for shape in layer.shapes]
    return tuple(
        functions[layer.which[r]]
        + affine_text(weight, float(layer.affine.bias[r]), names)
        + _units(float(layer.scale[r]), float(layer.shift[r]))
        + (f", part {p}" if layer.parts > 1 else "")
        for r, weight in enumerate(layer.affine.weight)
        for p in range(layer.parts)
    )


def _at(activation: Expression, argument: str) -> str:
    """`square(s) at s = `; of a neuron that changes nothing, nothing."""
    if activation is IDENTITY:
        return ""
    return f"{in_argument(activation, argument)} at {argument} = "


def argument_beside(names: Sequence[str]) -> str:
    """What the argument of a function of one variable is called, beside these names."""
    return next((name for name in ARGUMENTS if name not in names), "its argument")


def in_argument(activation: Expression, argument: str) -> Expression:
    """The function of one variable with its variable called so."""
    return activation.substitute({name: Expression("variable", data=argument) for name in activation.variables})


def _units(scale: float, shift: float) -> str:
    less = "" if shift == 0 else f", {'less' if shift > 0 else 'plus'} {abs(shift):.4g}"
    return less if scale == 1 else f"{less}, divided by {scale:.4g}"


def affine_text(weight: Float[np.ndarray, " n"], bias: float, names: Sequence[str]) -> str:
    """The largest few terms of w . x + b, such as `2 (x 0 of token 1) - y + 0.5`."""
    heaviest: list[int] = np.argsort(-np.abs(weight), kind="stable").tolist()
    terms = [(float(weight[i]), names[i]) for i in heaviest if weight[i] != 0]
    shown, hidden = terms[:MAX_TERMS], len(terms) - MAX_TERMS
    text = "".join(_signed(factor, name) for factor, name in shown)
    if hidden > 0:
        text += f" + {hidden} smaller term{'s' if hidden > 1 else ''}"
    if bias or not terms:
        text += _signed(float(bias), "")
    return "-" + text[3:] if text.startswith(" - ") else text[3:]


def _signed(factor: float, name: str) -> str:
    size = f"{abs(factor):.4g}"
    number = "" if name and size == "1" else size + (" " if name else "")
    return f" {'-' if factor < 0 else '+'} {number}{name}"
