"""Activations by the names that transformers gives them: their expressions, and how steep and how large they are.

|phi'| <= steep on the whole line: gelu 1.1290 at sqrt 2 and its tanh forms 1.1290, silu and x sigmoid(1.702 x) 1.0999,
mish 1.0885, hardswish 1.5, the laplace form 1 / (0.282095 sqrt(2 pi)) = 1.41422. |phi(s)| <= max(1, |s|) for all but
the squared relu, of which both grow with the reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.expressions import Expression, read_expression

X = ["variable", "x"]


@dataclass(frozen=True)
class Activation:
    function: Expression
    steep: float
    square: bool = False

    def on(self, reach: float) -> tuple[float, float]:
        """L with |phi'| <= L, and M with |phi(s)| <= M max(1, |s|), for |s| <= reach."""
        return (self.steep * max(1.0, 2 * reach), max(1.0, reach)) if self.square else (self.steep, 1.0)


def _made(steep: float, *nodes: list[Any], square: bool = False, first: tuple[list[Any], ...] = (X,)) -> Activation:
    """As programs write them: by this form they are known in files."""
    return Activation(read_expression({"nodes": [*first, *nodes]}), steep, square)


_GELU, _TANH, _SILU = _made(1.13, ["gelu", 0]), _made(1.13, ["gelu_tanh", 0]), _made(1.1, ["silu", 0])
_FAST = _made(
    1.13, ["number", 0.7978845608], ["number", 0.044715], ["number", 1.0], ["number", 0.5], ["mul", 2, 0, 0],
    ["add", 3, 5], ["mul", 0, 1, 6], ["tanh", 7], ["add", 3, 8], ["mul", 4, 0, 9],
)  # fmt: skip
_LAPLACE = _made(
    1.4143, ["number", -0.707107], ["add", 1, 2], ["number", 0.282095], ["number", 2.0], ["sqrt", 5], ["mul", 4, 6],
    ["div", 3, 7], ["erf", 8], ["add", 0, 9], ["div", 10, 5], first=(["number", 1.0], X),
)  # fmt: skip

ACTIVATIONS = {
    "gelu": _GELU,
    "gelu_python": _GELU,
    **dict.fromkeys(("gelu_tanh", "gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate"), _TANH),
    "gelu_fast": _FAST,
    "gelu_10": _made(1.13, ["gelu", 0], ["number", -10.0], ["max", 1, 2], ["number", 10.0], ["min", 3, 4]),
    "quick_gelu": _made(1.1, ["number", 1.702], ["mul", 1, 0], ["sigmoid", 2], ["mul", 0, 3]),
    **dict.fromkeys(("silu", "swish"), _SILU),
    "mish": _made(1.09, ["mish", 0]),
    "relu": _made(1.0, ["relu", 0]),
    "relu6": _made(1.0, ["relu6", 0]),
    "relu2": _made(1.0, ["relu", 0], ["square", 1], square=True),
    "leaky_relu": _made(1.0, ["number", 0.01], ["leaky_relu", 0, 1]),
    "hardswish": _made(1.5, ["hardswish", 0]),
    "laplace": _LAPLACE,
    "linear": _made(1.0),
    "sigmoid": _made(0.25, ["sigmoid", 0]),
    "tanh": _made(1.0, ["tanh", 0]),
}


def activation_of(name: Any) -> Activation:
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise NotVerified(f"the activation {str(name)[:40]!r} is not known")
    return ACTIVATIONS[name]
