"""From what a user writes to a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.targets.expression import Expression
from anchorhead.targets.named import NAMED
from anchorhead.targets.opaque import CallableTarget
from anchorhead.targets.parser import parse
from anchorhead.targets.scalar import ScalarTarget, interval

Spec = str | Expression | Sequence[str | Expression] | Callable[..., Any]


def target_of(
    spec: Spec | ScalarTarget | CallableTarget, on: Any, lipschitz: Any = None
) -> ScalarTarget | CallableTarget:
    """A target on `on`, from a name ("gelu"), a text in x, an expression, a list of these, or a callable."""
    low, high = interval(on)
    if isinstance(spec, ScalarTarget):
        return ScalarTarget(spec.expressions, low, high)
    if isinstance(spec, CallableTarget):
        return CallableTarget(spec.f, low, high, spec.lipschitz if lipschitz is None else lipschitz)
    if isinstance(spec, str | Expression):
        return ScalarTarget((expression_of(spec),), low, high)
    if callable(spec):
        return CallableTarget(spec, low, high, lipschitz)
    if isinstance(spec, Sequence) and spec and all(isinstance(one, str | Expression) for one in spec):
        return ScalarTarget(tuple(expression_of(one) for one in spec), low, high)
    raise AnchorheadError(
        f"{spec!r} is not a target: give a name such as 'gelu', "
        "an expression in x such as 'sin(3*x)*exp(x)', a list of these, or a callable"
    )


def expression_of(spec: str | Expression, lacks: str = "") -> Expression:
    """gelu(x) for "gelu"; else the parsed text, or the expression itself. lacks: see parse."""
    if isinstance(spec, Expression):
        return spec
    named = NAMED.get(spec.strip())
    if named and all(default is not None for _, default in named.parameters):
        return parse(f"{named.name}(x)")
    return parse(spec, lacks=lacks)
