"""From what a user writes to a target."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.given import shown
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.named import NAMED
from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.sympy_expressions import without_sympy
from anchorhead.language.targets.opaque import CallableTarget
from anchorhead.language.targets.scalar import ScalarTarget, interval

SUFFIXES = (".safetensors", ".onnx")
"""How files end that hold networks: a text that ends so is the path of one."""


def target_of(spec: Any, on: Any, lipschitz: Any = None) -> ScalarTarget | CallableTarget:
    """A target on `on`, from a name ("gelu"), a text in x, an expression, a list of these, or a callable.

    on   the two ends, or {"t": (-1, 1)}: texts are then in t
    """
    variable, ends = named_interval(on)
    low, high = interval(ends)
    spec = without_sympy(spec)
    if isinstance(spec, ScalarTarget):
        return ScalarTarget(spec.expressions, low, high)
    if isinstance(spec, CallableTarget):
        return CallableTarget(spec.f, low, high, spec.lipschitz if lipschitz is None else lipschitz)
    if isinstance(spec, str | Expression):
        return ScalarTarget((expression_of(spec, variable=variable),), low, high)
    if callable(spec):
        return CallableTarget(spec, low, high, lipschitz)
    if isinstance(spec, Sequence) and spec and all(isinstance(one, str | Expression) for one in spec):
        return ScalarTarget(tuple(expression_of(one, variable=variable) for one in spec), low, high)
    raise AnchorheadError(
        f"{shown(spec)} is not a target: give a name such as 'gelu', "
        "an expression in x such as 'sin(3*x)*exp(x)', a list of these, or a callable"
    )


def expression_of(spec: str | Expression, lacks: str = "", variable: str = "x") -> Expression:
    """gelu(x) for "gelu"; else the parsed text, or the expression itself. lacks: see parse."""
    if isinstance(spec, Expression):
        return spec
    named = NAMED.get(spec.strip())
    if named and all(default is not None for _, default in named.parameters):
        return parse(f"{named.name}({variable})", variable)
    return parse(spec, variable, lacks)


def named_interval(on: Any) -> tuple[str, Any]:
    """The name and the interval of the only variable: x, unless a mapping names it."""
    if not isinstance(on, Mapping):
        return "x", on
    if len(on) != 1:
        raise AnchorheadError(
            f"on={shown(on)}: a head is for one variable, as in on=(-10, 10); ah.approximate takes several"
        )
    name, ends = next(iter(on.items()))
    return str(name), ends


def is_expression(model: Any) -> bool:
    """Whether something is an expression or lists of them: a text that neither is a file nor has the name of one."""
    if isinstance(model, str):
        return not (model.lower().endswith(SUFFIXES) or os.path.isfile(model))
    if isinstance(model, Sequence):
        return bool(model) and all(is_expression(one) for one in model)
    return isinstance(model, Expression)
