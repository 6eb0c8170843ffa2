"""Activations by the names that people use: torch's, and those of transformers' models."""

from __future__ import annotations

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.named import NAMED
from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.text import short_text

QUICK_GELU = "x*sigmoid(1.702*x)"

ALIASES: dict[str, str] = {
    **dict.fromkeys(("gelu_python", "gelu_erf"), "gelu(x)"),
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_accurate"), "gelu_tanh(x)"),
    "gelu_10": "min(max(gelu(x), -10), 10)",
    "quick_gelu": QUICK_GELU,
    "swish": "silu(x)",
    "hard_swish": "hardswish(x)",
    "hard_sigmoid": "hardsigmoid(x)",
    **dict.fromkeys(("linear", "identity"), "x"),
    **dict.fromkeys(("relu2", "relu_squared"), "square(relu(x))"),
    "logsigmoid": "-softplus(-x)",
    "tanhshrink": "x - tanh(x)",
    "softshrink": "soft_threshold(x)",
}
"""What each means, as an expression in x."""

NEARLY: dict[str, tuple[str, float]] = {"gelu_fast": ("gelu_tanh", 1e-12)}
"""Functions that differ from another by at most so much, relative to max(1, |x|).

gelu_fast writes 0.7978845608 for sqrt(2/pi), 3.6e-12 of it too small. x sigmoid(z) changes by |x| sup |z sigmoid'(z)|
times that, and the supremum is below 0.23.
"""


def activation_of(activation: str | Expression) -> tuple[str, Expression]:
    """The name and the expression of an activation: a name, an expression in x as text, or an Expression."""
    if isinstance(activation, Expression):
        function = activation
    elif activation in ALIASES:
        function = parse(ALIASES[activation])
    elif activation in NAMED and all(default is not None for _, default in NAMED[activation].parameters):
        function = parse(f"{activation}(x)")
    elif activation.isidentifier() and activation != "x":
        raise AnchorheadError(
            f"the activation {activation!r} is not known: {', '.join((*NAMED, *ALIASES, *NEARLY))} are"
        )
    else:
        function = parse(activation)
    if len(function.variables) != 1:
        raise AnchorheadError(f"the activation {activation} has {len(function.variables)} variables: it takes one, x")
    return name_of(function), function


def name_of(function: Expression) -> str:
    """ "gelu" for gelu(x); else the text."""
    if function.op == "variable":
        return "linear"
    if str(function) == str(parse(QUICK_GELU)):
        return "quick_gelu"
    return short_text(function)
