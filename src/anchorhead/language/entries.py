"""Programs of functions of the entries of an input: what expressions and callables of any number of variables are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.canonical import to_data
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.program import Program, Writer
from anchorhead.language.steps import Affine, Apply, Opaque


@dataclass(frozen=True)
class Entries:
    """Functions of the entries of an input: what every program of expressions or callables is.

    tokens   the variables are the entries of so many tokens, x[i,j] feature j of token i, and the functions those of
             the output, token by token; None: of one token, without an axis of tokens
    """

    functions: tuple[Expression | Opaque, ...]
    variables: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    tokens: int | None = None

    def program(self) -> Program:
        writer = Writer()
        count = self.tokens or 1
        shape = (count, len(self.variables) // count)
        names = self.variables if count == 1 else tuple(f"x[i,{j}]" for j in range(shape[1]))
        x = writer.input(names, *(np.reshape(end, shape) for end in (self.low, self.high)), tokens=count)
        y = applied_to_entries(writer, x, self.functions, self.variables, count)
        if count > 1:
            outputs = len(self.functions) // count
            apart = np.eye(len(self.functions)).reshape(count, outputs, 1, -1)
            y = writer.affine({y: apart}, np.zeros((1, outputs)))
        return writer.program(y, token_axis=self.tokens is not None)

    @staticmethod
    def of(program: Program) -> Entries:
        given = program.input
        last = program.steps[program.output]
        apply = program.steps[last.terms[0].step] if isinstance(last, Affine) else last
        if not isinstance(apply, Apply) or given.low is None or given.high is None:
            raise AnchorheadError("the stored program is not one of functions of the entries of its input")
        if not set(apply.arguments) <= set(given.entries):
            raise AnchorheadError("the stored program is not one of functions of the entries of its input")
        functions = tuple(apply.functions[k] for k in apply.which)
        low, high = (tuple(float(v) for v in end.reshape(-1)) for end in (given.low, given.high))
        found = Entries(functions, given.entries, low, high, given.tokens if program.token_axis else None)
        require_same(program, found.program(), "one of functions of the entries of its input")
        return found

    @property
    def expressions(self) -> tuple[Expression, ...]:
        found = tuple(one for one in self.functions if isinstance(one, Expression))
        if len(found) < len(self.functions):
            raise AnchorheadError("the program has functions that are known by their values alone")
        return found


def applied_to_entries(
    writer: Writer, x: int, functions: Sequence[Expression | Opaque], variables: tuple[str, ...], tokens: int
) -> int:
    """Functions of the entries of x, all as features of one token."""
    named = [one.arguments if isinstance(one, Opaque) else one.variables for one in functions]
    used = [name for name in variables if any(name in names for names in named)] or [variables[0]]
    features = len(variables) // tokens
    picks = []
    for name in used:
        place = variables.index(name)
        weight = np.zeros((1, len(functions), tokens, features))
        weight[0, :, place // features, place % features] = 1.0
        picks.append(writer.affine({x: weight if tokens > 1 else weight[0, :, 0]}, np.zeros(len(functions)), name))
    return writer.apply(list(functions), tuple(picks), tuple(used), len(functions))


def same(a: Program, b: Program) -> bool:
    """Whether two programs have the same steps; boxes, names and titles aside."""
    (one, arrays), (two, others) = to_data(a), to_data(b)
    boxes = {f"{place}.{end}" for place in a.inputs for end in ("low", "high")}
    kept = arrays.keys() - boxes
    return (
        one["steps"] == two["steps"]
        and one["outputs"] == two["outputs"]
        and kept == others.keys() - boxes
        and all(np.array_equal(arrays[name], others[name]) for name in kept)
    )


def require_same(program: Program, again: Program, what: str) -> None:
    if not same(program, again):
        raise AnchorheadError(f"the stored program is not {what}")
