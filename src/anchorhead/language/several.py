"""Expressions in any number of variables as a target: functions on a box, and the parts that they are built of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import numbers, require_even_tokens, shown
from anchorhead.language.analysis.summands import MAX_IN_A_GRID, USUALLY_IN_A_GRID, Parts, parts_of
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.text import name_of


@dataclass(frozen=True)
class SeveralVariables(Entries):
    """The functions x -> (f_1(x), …, f_m(x)) of d variables on the box low <= x <= high, known as expressions.

    join, in_a_grid   see parts_of
    """

    join: bool = True
    in_a_grid: int = USUALLY_IN_A_GRID

    def __post_init__(self) -> None:
        expressions = tuple(one for one in self.functions if isinstance(one, Expression))
        variables = tuple(self.variables)
        if not expressions or len(expressions) < len(self.functions):
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
        for name, value in (("functions", expressions), ("variables", variables), ("low", low), ("high", high)):
            object.__setattr__(self, name, value)
        if self.tokens is not None:
            require_even_tokens(self.tokens, len(variables), len(expressions))

    @property
    def outputs(self) -> int:
        return len(self.expressions)

    @property
    def columns(self) -> int:
        """How many outputs a token has."""
        return self.outputs // (self.tokens or 1)

    @property
    def input_shape(self) -> tuple[int, ...]:
        count = len(self.variables)
        return (count,) if self.tokens is None else (self.tokens, count // self.tokens)

    @property
    def on(self) -> Box:
        """The box, in the shape of an input."""
        return Box.of(tuple(np.reshape(end, self.input_shape) for end in (self.low, self.high)))

    @cached_property
    def parts(self) -> Parts:
        """What the expressions are made of."""
        return parts_of(self.expressions, self.variables, self.tokens, (self.low, self.high), self.join, self.in_a_grid)

    @property
    def ways(self) -> list[SeveralVariables]:
        """The same functions taken apart as usual; then, where that is something else, all that can be, and no more
        than must be."""
        found: dict[tuple[str, ...], SeveralVariables] = {}
        for count in (self.in_a_grid, 1, MAX_IN_A_GRID):
            one = replace(self, in_a_grid=count)
            found.setdefault(tuple(term.becomes for term in one.parts.terms), one)
        return list(found.values())

    @property
    def needs_layers(self) -> bool:
        """Whether some term is a composition that no single layer of neurons computes, and no grid."""
        return any(term.becomes == "layers" for term in self.parts.terms)

    @property
    def one_grid(self) -> bool:
        """Whether the whole function goes to one grid of all variables."""
        grids = self.parts.grids
        return self.parts.network is None and len(grids) == 1 and grids[0].variables == self.variables

    def becomes(self, form: Any, layout: Any) -> Literal["head", "layers", "neurons", "grids"]:
        """What the expressions are built as: a function of one variable is one head, unless it is to have layers."""
        if form is None and layout is None and len(self.variables) == 1:
            return "head"
        if self.needs_layers:
            return "layers"
        return "grids" if self.parts.grids or self.parts.network is None else "neurons"

    def found(self) -> list[tuple[str, str]]:
        """What was found: each term in words, and what it becomes; beside layers of neurons, grids come second."""
        grids = [term.becomes == "grid" and self.needs_layers for term in self.parts.terms]
        return [
            (text, "neurons in layers" if layers else words)
            for layers, (text, words) in zip(grids, self.parts.found(), strict=True)
        ]

    def values(self, x: Any) -> Float[np.ndarray, "... m"]:
        """f_k(x) in float64, for x (..., d)."""
        x = np.asarray(x, dtype=np.float64)
        if x.ndim < 1 or x.shape[-1] != len(self.variables):
            raise AnchorheadError(f"points of shape {x.shape}: needed is (..., {len(self.variables)})")
        at = {name: x[..., j] for j, name in enumerate(self.variables)}
        return np.stack([expression.values(at) for expression in self.expressions], axis=-1)

    def __str__(self) -> str:
        return f"{name_of(self.expressions)} for {self.where}"

    @property
    def where(self) -> str:
        """The variables and their intervals."""
        return ", ".join(
            f"{name} in [{a:g}, {b:g}]" for name, a, b in zip(self.variables, self.low, self.high, strict=True)
        )


def _ends(given: Any, count: int) -> tuple[float, ...]:
    """An end for each variable, from one number or one each."""
    ends = numbers(given)
    if ends is None or ends.size not in (1, count):
        raise AnchorheadError(f"{shown(given)} for the ends of {count} variables: give a number, or one each")
    if not np.isfinite(ends).all():
        raise AnchorheadError(f"{shown(given)} is not bounded: give finite ends")
    return tuple(float(end) for end in np.broadcast_to(ends.reshape(-1), (count,)))
