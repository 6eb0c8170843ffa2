"""Programs run: one interpreter of the seven steps, over any of the numbers in language.numbers.

Quantities are arrays (..., tokens, features), with any axes of a batch in front.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.numbers import Array, Floats, Numbers
from anchorhead.language.program import Program
from anchorhead.language.steps import Affine, Apply, Attend, Dot, Input, Normalise, Opaque, Repeat, Step, Term

Functions = Mapping[str, Callable[..., Any]]
"""Functions known by their values, by their digests: of arrays (...), one for each argument, to (..., outputs)."""


def values(program: Program, *x: Any, functions: Functions | None = None, **named: Any) -> np.ndarray:
    """What the program puts out, in extended precision where steps allow it and the machine has it."""
    if named:
        return values(program, _in_order(program, x, named), functions=functions)
    arrays = [_numbers(one) for one in x]
    if len(arrays) != len(program.inputs):
        raise AnchorheadError(f"{len(arrays)} inputs of a program that takes {len(program.inputs)}: give one for each")
    if not program.token_axis:
        arrays = [one[..., None, :] if one.ndim else one for one in arrays]
    for place, array in zip(program.inputs, arrays, strict=True):
        _require_shape(program, place, array)
    found = run(program, arrays, Floats(), functions)[program.output]
    return found if program.token_axis else found[..., 0, :]


def _numbers(x: Any) -> np.ndarray:
    try:
        return np.asarray(x, np.float64).astype(np.longdouble)
    except (TypeError, ValueError) as error:
        raise AnchorheadError(f"an input that is not an array of numbers: {error}") from error


def _in_order(program: Program, x: Sequence[Any], named: Mapping[str, Any]) -> np.ndarray:
    """Numbers or arrays (...) by the names of the features of a program of one token, as one array."""
    names = program.features
    if x or set(named) != set(names) or program.token_axis:
        known = (
            f"{', '.join(names)}, each by name" if all(names) and not program.token_axis else "an array, without names"
        )
        raise AnchorheadError(f"{', '.join(named)} given by name to a program: it takes {known}")
    try:
        return np.stack(np.broadcast_arrays(*(_numbers(named[name]) for name in names)), axis=-1)
    except ValueError as error:
        raise AnchorheadError(f"{', '.join(names)} have shapes that do not fit each other: {error}") from error


def run(program: Program, inputs: Sequence[Array], numbers: Numbers, functions: Functions | None = None) -> list[Array]:
    """Every quantity of the program."""
    given = iter(inputs)
    found: list[Array] = []
    for step in program.steps:
        if isinstance(step, Input):
            found.append(next(given))
        else:
            found.append(computed(step, [found[place] for place in step.uses], numbers, functions or {}))
    return found


def computed(step: Step, of: Sequence[Array], numbers: Numbers, functions: Functions) -> Array:
    """One step, of the quantities that it uses."""
    match step:
        case Affine():
            mapped = [_mapped(term, q, numbers) for term, q in zip(step.terms, of, strict=True)]
            return reduce(operator.add, (*mapped, numbers.constant(step.bias, step.bias_radius)))
        case Apply():
            return _applied(step, of, numbers, functions)
        case Dot():
            return of[0] @ np.swapaxes(of[1], -1, -2)
        case Attend():
            return _attended(step, of, numbers)
        case Normalise():
            q = of[0] - of[0].mean(axis=-1, keepdims=True) if step.norm == "layer" else of[0]
            eps = numbers.constant(np.array(step.eps), None)
            return q / numbers.sqrt((q * q).mean(axis=-1, keepdims=True) + eps)
        case Repeat():
            return repeated(step, of, lambda body, inputs: run(body, inputs, numbers, functions))
        case Input():
            raise AnchorheadError("an input is given, not computed")


def _mapped(term: Term, q: Array, numbers: Numbers) -> Array:
    weight = numbers.constant(term.weight, term.radius)
    if weight.ndim == 2:
        return q @ weight.T
    if weight.ndim == 3:
        return (weight @ q[..., None])[..., 0]
    tokens, outputs = weight.shape[:2]
    flat = q.reshape(*q.shape[:-2], -1) @ weight.reshape(tokens * outputs, -1).T
    return flat.reshape(*flat.shape[:-1], tokens, outputs)


def _applied(step: Apply, of: Sequence[Array], numbers: Numbers, functions: Functions) -> Array:
    shape = np.broadcast_shapes(*(q.shape[:-1] for q in of))
    arrays = [np.broadcast_to(q, (*shape, q.shape[-1])) for q in of]
    result = np.empty((*shape, len(step.which)), dtype=arrays[0].dtype)
    for k, function in enumerate(step.functions):
        own = np.flatnonzero(step.which == k)
        if not own.size:
            continue
        at = {
            name: q if q.shape[-1] == 1 and own.size == 1 else q[..., own if q.shape[-1] > 1 else [0] * own.size]
            for name, q in zip(step.arguments, arrays, strict=True)
        }
        result[..., own] = numbers.function(function, at) if isinstance(function, Expression) else _called(
            function, at, functions
        )  # fmt: skip
    return result


def _called(function: Opaque, at: Mapping[str, Array], functions: Functions) -> Array:
    if function.digest not in functions:
        raise AnchorheadError(f"{function}: give the function itself, a program holds no code")
    points = [np.asarray(array[..., 0], np.float64) for array in at.values()]
    outputs = next(iter(at.values())).shape
    return np.asarray(functions[function.digest](*points)).reshape(outputs)


def _attended(step: Attend, of: Sequence[Array], numbers: Numbers) -> Array:
    values = of[0]
    if step.queries is None:
        return values.sum(axis=-2, keepdims=True) / values.shape[-2]
    logits = of[1] @ np.swapaxes(of[2], -1, -2)
    if step.mask is None:
        return numbers.softmax_mean(logits, values)
    seen = range(1, logits.shape[-2] + 1)
    rows = [numbers.softmax_mean(logits[..., k - 1 : k, :k], values[..., :k, :]) for k in seen]
    return np.concatenate(rows, axis=-2)


def repeated(step: Repeat, of: Sequence[Array], run: Callable[[Program, Sequence[Array]], list[Array]]) -> Array:
    """The rounds of a Repeat; run: what gives every quantity of its body."""
    count = len(step.carried)
    state, given = list(of[:count]), list(of[count:])
    path = [state[0]]
    for _ in range(step.times):
        inside = run(step.body, [*state, *given])
        state = [inside[place] for place in step.body.outputs]
        path.append(state[0])
    if not step.collect:
        return state[0]
    batch = np.broadcast_shapes(*(one.shape for one in path))
    return np.concatenate([np.broadcast_to(one, batch) for one in path], axis=-2)


def _require_shape(program: Program, place: int, x: Array) -> None:
    step = program.steps[place]
    shape = program.shapes[place]
    most = step.most if isinstance(step, Input) else None
    fits = x.ndim >= 2 and x.shape[-1] == shape.width and x.shape[-2] == (shape.tokens or x.shape[-2])
    if not fits or (most is not None and x.shape[-2] > most):
        limit = f", at most {most:,} tokens" if most is not None else ""
        given = x.shape if program.token_axis else (*x.shape[:-2], *x.shape[-1:])
        needed = f"(..., {shape.tokens or 'n'}, {shape.width})" if program.token_axis else f"(..., {shape.width})"
        raise AnchorheadError(f"an input of shape {given}: needed is {needed}{limit}")
