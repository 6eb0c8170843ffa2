"""The activations of transformers models by the names of our heads, with what proofs need of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from anchorhead.errors import AnchorheadError

ACTIVATION_KEYS = ("hidden_act", "hidden_activation", "activation_function", "activation")
"""Where configs of transformers name an activation."""


@dataclass(frozen=True)
class Activation:
    """A function phi.

    name       as transformers has it
    head       how heads are asked for: a name, or an expression in x
    lipschitz  |phi'| is at most this on the whole line; for a square, times 2 |s| where |s| > 1/2
    gate       the name of its heads with a gate, if there are such
    square     |phi(s)| <= max(1, s^2), where otherwise |phi(s)| <= max(1, |s|)
    """

    name: str
    head: str
    lipschitz: float
    gate: str | None = None
    square: bool = False

    def on(self, reach: float) -> tuple[float, float]:
        """L with |phi'| <= L, and M with |phi(s)| <= M max(1, |s|), for |s| <= reach."""
        return (self.lipschitz * max(1.0, 2 * reach), max(1.0, reach)) if self.square else (self.lipschitz, 1.0)


LAPLACE = "(1 + erf((x - 0.707107)/(0.282095*sqrt(2))))/2"

# sup |phi'|: gelu 1.1290 at sqrt 2, its tanh form 1.1289, silu and quick_gelu 1.0999, mish 1.0885, hardswish 1.5,
# laplace 1 / (0.282095 sqrt(2 pi))
_BY_CLASS = {
    "GELUActivation": Activation("gelu", "gelu", 1.13, "gelu"),
    "GELU": Activation("gelu", "gelu", 1.13, "gelu"),
    "NewGELUActivation": Activation("gelu_new", "gelu_tanh", 1.13, "gelu_tanh"),
    "GELUTanh": Activation("gelu_pytorch_tanh", "gelu_tanh", 1.13, "gelu_tanh"),
    "AccurateGELUActivation": Activation("gelu_accurate", "gelu_tanh", 1.13, "gelu_tanh"),
    "FastGELUActivation": Activation("gelu_fast", "gelu_fast", 1.13),
    "QuickGELUActivation": Activation("quick_gelu", "quick_gelu", 1.1),
    "ClippedGELUActivation": Activation("gelu_10", "gelu_10", 1.13),
    "SiLUActivation": Activation("silu", "silu", 1.1, "silu"),
    "SiLU": Activation("silu", "silu", 1.1, "silu"),
    "MishActivation": Activation("mish", "mish", 1.09),
    "ReLU": Activation("relu", "relu", 1.0, "relu"),
    "ReLU6": Activation("relu6", "relu6", 1.0),
    "ReLUSquaredActivation": Activation("relu2", "relu2", 1.0, square=True),
    "LeakyReLU": Activation("leaky_relu", "leaky_relu", 1.0),
    "Hardswish": Activation("hardswish", "hardswish", 1.5),
    "LaplaceActivation": Activation("laplace", LAPLACE, 1.4143),
    "LinearActivation": Activation("linear", "linear", 1.0),
    "Sigmoid": Activation("sigmoid", "sigmoid", 0.25, "sigmoid"),
    "Tanh": Activation("tanh", "tanh", 1.0),
}


GELU_TANH = Activation("gelu_tanh", "gelu_tanh", 1.13, "gelu_tanh")


def activation_of(module: Any, gated: bool, where: str) -> Activation:
    """The activation that a module is, if there is a head for it."""
    found = _BY_CLASS.get(type(module).__name__) if is_activation(module) else None
    if isinstance(module, nn.GELU) and module.approximate == "tanh":
        found = GELU_TANH
    usual = (
        getattr(module, "negative_slope", 0.01) == 0.01
        and (getattr(module, "min", -10), getattr(module, "max", 10)) == (-10, 10)
    )  # fmt: skip
    if found is None or not usual or (gated and found.gate is None):
        raise AnchorheadError(
            f"the activation of {where} is {_shown(module)}, for which there is no head"
            f"{' with a gate' if gated else ''}: those of {', '.join(names_of_activations(gated))} can be converted"
        )
    return found


def activation_named(name: str) -> Activation:
    """The activation of a name that a report has."""
    found = next((one for one in _BY_CLASS.values() if one.name == name), None)
    if name == "gelu_tanh":
        found = GELU_TANH
    if found is None:
        raise AnchorheadError(f"the activation {name!r} is none of {', '.join(names_of_activations())}")
    return found


def names_of_activations(gated: bool = False) -> list[str]:
    """Those that can be converted, as transformers names them."""
    return list(dict.fromkeys(one.name for one in _BY_CLASS.values() if not gated or one.gate is not None))


def is_activation(module: Any) -> bool:
    """Whether it is one of these classes of torch or transformers: not one that is named so, nor a class below it."""
    kind = type(module)
    return kind.__name__ in _BY_CLASS and kind.__module__ in ("torch.nn.modules.activation", "transformers.activations")


def _shown(module: Any) -> str:
    if not isinstance(module, nn.Module):
        return repr(module)
    return f"{type(module).__name__}({module.extra_repr()})"
