"""What a head over a grid approximates: one or several functions of a few variables on a box."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from anchorhead.errors import AnchorheadError
from anchorhead.given import numbers, shown
from anchorhead.targets.expressions.expression import Expression


@dataclass(frozen=True)
class SeveralVariables:
    """The functions x -> (f_1(x), …, f_m(x)) of d variables on the box low <= x <= high, known as expressions."""

    expressions: tuple[Expression, ...]
    variables: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        expressions, variables = tuple(self.expressions), tuple(self.variables)
        if not expressions or not all(isinstance(one, Expression) for one in expressions):
            raise AnchorheadError("a target without expressions: give at least one, as parse(text, variables) makes it")
        if not variables or len(set(variables)) != len(variables):
            raise AnchorheadError(f"variables={variables!r}: give the name of each variable once")
        for one in expressions:
            unknown = [name for name in one.variables if name not in variables]
            if unknown:
                raise AnchorheadError(
                    f"{one} depends on {', '.join(unknown)}; the variables are {', '.join(variables)}: give them all"
                )
        low, high = (_ends(end, len(variables)) for end in (self.low, self.high))
        if not all(a < b and math.isfinite(b - a) for a, b in zip(low, high, strict=True)):
            raise AnchorheadError(f"low={low}, high={high} is not a box: give finite ends, the lower one first")
        for name, value in (("expressions", expressions), ("variables", variables), ("low", low), ("high", high)):
            object.__setattr__(self, name, value)

    @property
    def outputs(self) -> int:
        return len(self.expressions)

    def values(self, x: Any) -> Float[np.ndarray, "... m"]:
        """f_k(x) in float64, for x (..., d)."""
        x = np.asarray(x, dtype=np.float64)
        if x.ndim < 1 or x.shape[-1] != len(self.variables):
            raise AnchorheadError(f"points of shape {x.shape}: needed is (..., {len(self.variables)})")
        at = {name: x[..., j] for j, name in enumerate(self.variables)}
        return np.stack([expression.values(at) for expression in self.expressions], axis=-1)

    def __str__(self) -> str:
        shown = ", ".join(str(expression) for expression in self.expressions)
        box = ", ".join(
            f"{name} in [{a:g}, {b:g}]" for name, a, b in zip(self.variables, self.low, self.high, strict=True)
        )
        return f"{shown if self.outputs == 1 else f'[{shown}]'} for {box}"


def _ends(given: Any, count: int) -> tuple[float, ...]:
    """An end for each variable, from one number or one each."""
    ends = numbers(given)
    if ends is None or ends.size not in (1, count):
        raise AnchorheadError(f"{shown(given)} for the ends of {count} variables: give a number, or one each")
    if not np.isfinite(ends).all():
        raise AnchorheadError(f"{shown(given)} is not bounded: give finite ends")
    return tuple(float(end) for end in np.broadcast_to(ends.reshape(-1), (count,)))
