"""Operations of ONNX that act entry by entry, as expressions in x; definitions and defaults are ONNX's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from anchorhead.convert.onnx_model import Node
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.build import ONE, add, div, make, mul, number
from anchorhead.language.expressions.expression import Expression

SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875
Function = Callable[[Expression], Expression]


def clipped(x: Expression, low: float | None, high: float | None) -> Expression:
    if (low, high) == (0.0, 6.0):
        return make("relu6", (x,))
    x = x if low is None else make("max", (x, number(low)))
    return x if high is None else make("min", (x, number(high)))


def _named(name: str, **parameters: float) -> Callable[[Node], Function]:
    """A function that has a name here; parameters: attributes with their defaults, in its order."""
    return lambda node: lambda x: make(name, (x, *(number(real(node, *one)) for one in parameters.items())))


def _hard_sigmoid(node: Node) -> Function:
    alpha, beta = number(real(node, "alpha", 0.2)), number(real(node, "beta", 0.5))
    return lambda x: clipped(add(mul(alpha, x), beta), 0.0, 1.0)


def _gelu(node: Node) -> Function:
    form = node.attributes.get("approximate", "none")
    if form not in ("none", "tanh"):
        raise AnchorheadError(f"its approximate is {form!r}: none or tanh")
    return lambda x: make("gelu" if form == "none" else "gelu_tanh", (x,))


def _selu(node: Node) -> Function:
    alpha, gamma = number(real(node, "alpha", SELU_ALPHA)), number(real(node, "gamma", SELU_GAMMA))
    return lambda x: mul(gamma, make("elu", (x, alpha)))


def _shrink(node: Node) -> Function:
    lambd, bias = real(node, "lambd", 0.5), real(node, "bias", 0.0)
    if lambd != bias or not lambd > 0:
        raise AnchorheadError(f"with lambd={lambd:g} and bias={bias:g} it jumps: only lambd = bias > 0 is continuous")
    return lambda x: make("soft_threshold", (x, number(lambd)))


def _swish(node: Node) -> Function:
    alpha = number(real(node, "alpha", 1.0))
    return lambda x: mul(x, make("sigmoid", (x if alpha is ONE else mul(alpha, x),)))


FUNCTIONS: dict[str, Callable[[Node], Function]] = {
    "Relu": _named("relu"),
    "LeakyRelu": _named("leaky_relu", alpha=0.01),
    "Elu": _named("elu", alpha=1.0),
    "Selu": _selu,
    "Celu": _named("celu", alpha=1.0),
    "Sigmoid": _named("sigmoid"),
    "Tanh": _named("tanh"),
    "Softplus": _named("softplus"),
    "Softsign": _named("softsign"),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _named("hardswish"),
    "Gelu": _gelu,
    "Mish": _named("mish"),
    "Swish": _swish,
    "Shrink": _shrink,
    "Erf": _named("erf"),
    "Abs": _named("abs"),
    "Exp": _named("exp"),
    "Log": _named("log"),
    "Sqrt": _named("sqrt"),
    "Reciprocal": lambda node: lambda x: div(ONE, x),
    "Sin": _named("sin"),
    "Cos": _named("cos"),
}
"""What makes the function of each operation from its attributes."""


def real(node: Node, name: str, default: float) -> float:
    """A float attribute, of 32 bits as the defaults are."""
    value: Any = node.attributes.get(name, float(np.float32(default)))
    if isinstance(value, bool) or not isinstance(value, float) or not math.isfinite(value):
        raise AnchorheadError(f"its attribute {name} is {value!r}: a finite float is needed")
    return value


def whole(node: Node, name: str, default: int) -> int:
    """An attribute that is a whole number."""
    value: Any = node.attributes.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise AnchorheadError(f"its attribute {name} is {value!r}: a whole number is needed")
    return value


def wholes(node: Node, name: str) -> tuple[int, ...] | None:
    """An attribute that is a list of whole numbers; None if it is left out."""
    value: Any = node.attributes.get(name)
    if value is None:
        return None
    if not isinstance(value, tuple) or not all(isinstance(one, int) for one in value):
        raise AnchorheadError(f"its attribute {name} is {value!r}: a list of whole numbers is needed")
    return value
