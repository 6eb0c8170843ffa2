"""A program as expressions in the entries of its input, one for each entry of its output."""

from __future__ import annotations

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.build import ZERO, add, check_size, div, make, mul, number, variable
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.text import name_of
from anchorhead.language.program import Program
from anchorhead.language.steps import Affine, Apply, Attend, Dot, Input, Normalise, Opaque, Repeat, Term

MAX_TERMS = 20_000
"""How many terms the sums of a program may have in all, written out: beyond, expressions are of no use."""


def expressions_of(program: Program) -> tuple[tuple[Expression, ...], tuple[str, ...]]:
    """The expressions, token by token, and the names of the entries of the input.

    Raises where a step has no expression: functions that are known by values alone, tokens that are not counted,
    constants that are not written exactly, Repeats; and where they would be too large.
    """
    given = program.input
    if given.tokens is None:
        raise AnchorheadError("a program of any number of tokens has no expressions: fix their number")
    names = given.entries if all(given.entries) else tuple(f"x{j}" for j in range(len(given.features)))
    room = [MAX_TERMS]
    found: list[np.ndarray] = []
    for place, step in enumerate(program.steps):
        of = [found[use] for use in step.uses]
        entries = [variable(name) for name in names] if isinstance(step, Input) else _entries(step, of, room)
        shape = program.shapes[place]
        made = np.empty(len(entries), dtype=object)
        made[:] = entries
        found.append(made.reshape(shape.tokens or 1, shape.width))
    return tuple(check_size(one) for one in found[program.output].ravel()), names


def formula(program: Program) -> str:
    """The program as a text, in expressions; its title where it has none."""
    try:
        expressions, _ = expressions_of(program)
    except AnchorheadError:
        return program.title
    return name_of(expressions)


def _entries(step: object, of: list[np.ndarray], room: list[int]) -> list[Expression]:
    match step:
        case Affine():
            return _affine(step, of, room)
        case Apply():
            return _apply(step, of)
        case Dot():
            a, b = of
            return [_sum([mul(x, y) for x, y in zip(row, other, strict=True)]) for row in a for other in b]
        case Attend() if step.queries is None:
            values = of[0]
            return [div(_sum(list(column)), number(float(len(values)))) for column in values.T]
        case Attend():
            return _attend(step, *of)
        case Normalise():
            return [entry for row in of[0] for entry in _normalised(step, list(row))]
        case Repeat():
            raise AnchorheadError("a Repeat has no expressions: its rounds are layers, not a formula")
    raise AnchorheadError(f"a {type(step).__name__} has no expression")


def _affine(step: Affine, of: list[np.ndarray], room: list[int]) -> list[Expression]:
    if step.bias_radius is not None or any(term.radius is not None for term in step.terms):
        raise AnchorheadError("a map whose numbers are not written exactly has no expression")
    tokens = max([step.bias.shape[0], *(_tokens_out(term, q) for term, q in zip(step.terms, of, strict=True))])
    bias = np.broadcast_to(step.bias, (tokens, step.bias.shape[1]))
    result = []
    for i in range(tokens):
        for o in range(bias.shape[1]):
            terms = [one for term, q in zip(step.terms, of, strict=True) for one in _row(term, q, i, o)]
            room[0] -= len(terms)
            if room[0] < 0:
                raise AnchorheadError(f"a program of more than {MAX_TERMS:,} terms has no expressions that are of use")
            constant = [number(float(bias[i, o]))] if bias[i, o] or not terms else []
            result.append(_sum([*terms, *constant]))
    return result


def _tokens_out(term: Term, q: np.ndarray) -> int:
    return len(q) if term.weight.ndim == 2 else term.weight.shape[0]


def _row(term: Term, q: np.ndarray, token: int, output: int) -> list[Expression]:
    weight = term.weight
    if weight.ndim == 4:
        row, entries = weight[token, output].ravel(), q.ravel()
    else:
        row, entries = (weight[output] if weight.ndim == 2 else weight[token, output]), q[token % len(q)]
    return [e if w == 1 else mul(number(float(w)), e) for w, e in zip(row, entries, strict=True) if w and e is not ZERO]


def _apply(step: Apply, of: list[np.ndarray]) -> list[Expression]:
    tokens = max(len(q) for q in of)
    result = []
    for i in range(tokens):
        for r, k in enumerate(step.which):
            function = step.functions[k]
            if isinstance(function, Opaque):
                raise AnchorheadError(f"{function} has no expression")
            at = {name: q[i % len(q), r % q.shape[1]] for name, q in zip(step.arguments, of, strict=True)}
            result.append(function.substitute(at))
    return result


def _attend(step: Attend, values: np.ndarray, queries: np.ndarray, keys: np.ndarray) -> list[Expression]:
    result = []
    for i, query in enumerate(queries):
        seen = len(keys) if step.mask is None else i + 1
        weights = [make("exp", (_sum([mul(a, b) for a, b in zip(query, key, strict=True)]),)) for key in keys[:seen]]
        total = _sum(weights)
        result += [
            div(_sum([mul(w, v) for w, v in zip(weights, column[:seen], strict=True)]), total) for column in values.T
        ]
    return result


def _normalised(step: Normalise, row: list[Expression]) -> list[Expression]:
    count = number(float(len(row)))
    if step.norm == "layer":
        mean = div(_sum(row), count)
        row = [add(one, make("neg", (mean,))) for one in row]
    square = div(_sum([make("square", (one,)) for one in row]), count)
    root = make("sqrt", (add(square, number(step.eps)),))
    return [div(one, root) for one in row]


def _sum(terms: list[Expression]) -> Expression:
    return add(*terms) if terms else ZERO
