"""A program as expressions in the entries of its input, one for each entry of its output, by running it over them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.build import ONE, ZERO, add, check_size, div, make, mul, neg, number, variable
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.text import name_of
from anchorhead.language.interpret import run
from anchorhead.language.numbers import Array, each, entries
from anchorhead.language.program import Program
from anchorhead.language.steps import Repeat

MAX_TERMS = 20_000
"""How many numbers that are not 0 the maps of a program may have in all: beyond, expressions are of no use."""


def expressions_of(program: Program) -> tuple[tuple[Expression, ...], tuple[str, ...]]:
    """The expressions, token by token, and the names of the entries of the input.

    Raises where a step has no expression: functions that are known by values alone, tokens that are not counted,
    constants that are not written exactly, Repeats; and where they would be too large.
    """
    given = program.input
    if given.tokens is None:
        raise AnchorheadError("a program of any number of tokens has no expressions: fix their number")
    if any(isinstance(step, Repeat) for step in program.steps):
        raise AnchorheadError("a Repeat has no expressions: its rounds are layers, not a formula")
    names = given.entries if all(given.entries) else tuple(f"x{j}" for j in range(len(given.features)))
    x = each(lambda name: Sum((variable(name),)), np.array(names, dtype=object).reshape(given.tokens, -1))
    found = run(program, [x], Symbols())[program.output]
    return tuple(check_size(one.expression) for one in found.ravel()), names


def formula(program: Program) -> str:
    """The program as a text, in expressions; its title where it has none."""
    try:
        expressions, _ = expressions_of(program)
    except AnchorheadError:
        return program.title
    return name_of(expressions)


class Sum:
    """A sum of expressions, which is added to and multiplied as numbers are; that of none is 0."""

    __slots__ = ("terms",)

    def __init__(self, terms: tuple[Expression, ...]) -> None:
        self.terms = terms

    @property
    def expression(self) -> Expression:
        return add(*self.terms) if self.terms else ZERO

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.terms + other.terms) if other.terms else self

    def __sub__(self, other: Sum) -> Sum:
        return Sum((*self.terms, neg(other.expression)))

    def __mul__(self, other: Sum) -> Sum:
        if not self.terms or not other.terms:
            return NOTHING
        a, b = self.expression, other.expression
        a, b = (b, a) if b.op == "number" else (a, b)
        return Sum((b if a is ONE else make("square", (a,)) if a is b else mul(a, b),))

    def __truediv__(self, other: Sum | int) -> Sum:
        return Sum((div(self.expression, number(other) if isinstance(other, int) else other.expression),))


NOTHING = Sum(())


class Symbols:
    """Expressions as numbers, exactly; what is written of them is counted."""

    def __init__(self) -> None:
        self.room = MAX_TERMS

    def constant(self, values: Array, radius: Array | None) -> Array:
        if radius is not None:
            raise AnchorheadError("a map whose numbers are not written exactly has no expression")
        self.room -= np.count_nonzero(values)
        if self.room < 0:
            raise AnchorheadError(f"a program of more than {MAX_TERMS:,} terms has no expressions that are of use")
        return each(lambda value: Sum((number(float(value)),)) if value else NOTHING, values)

    def function(self, expression: Expression, at: Mapping[str, Array]) -> Array:
        return entries(
            lambda point: _single(expression.substitute({name: one.expression for name, one in point.items()})), at
        )

    def softmax_mean(self, logits: Array, values: Array) -> Array:
        weights = each(lambda z: Sum((make("exp", (z.expression,)),)), logits)
        return weights @ values / weights.sum(axis=-1, keepdims=True)

    def sqrt(self, a: Array) -> Array:
        return each(lambda one: Sum((make("sqrt", (one.expression,)),)), a)


def _single(expression: Expression) -> Sum:
    return NOTHING if expression is ZERO else Sum((expression,))
