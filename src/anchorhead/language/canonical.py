"""The one form in which a program is saved: plain data, and arrays by name.

A step is {"step": kind, ...}; arrays are named by the place of the step and what they are, "3.weight.0" for the first
matrix of step 3; those of a body come after its Repeat's place, "5/2.bias". Reading builds every step anew, with the
checks and caps of a program that is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from anchorhead.conditions import conditions_from_json
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.program import MAX_STEPS, Program
from anchorhead.language.steps import Affine, Apply, Attend, Dot, Input, Normalise, Opaque, Repeat, Step, Term

Arrays = dict[str, np.ndarray]
MAX_DEPTH = 8
"""How deep a Repeat may stand in others."""


def to_data(program: Program, prefix: str = "") -> tuple[dict[str, Any], Arrays]:
    """The program as plain data and arrays."""
    arrays: Arrays = {}
    steps = [_written(step, f"{prefix}{place}", arrays) for place, step in enumerate(program.steps)]
    data = {
        "steps": steps,
        "names": list(program.names),
        "outputs": list(program.outputs),
        "conditions": [one.to_json() for one in program.conditions],
        "token_axis": program.token_axis,
        "title": program.title,
    }
    return data, arrays


def from_data(data: Any, arrays: Mapping[str, np.ndarray], prefix: str = "", depth: int = 0) -> Program:
    """The program that was saved; raises where it is none."""
    if depth > MAX_DEPTH:
        raise AnchorheadError(f"a saved program with Repeats {depth} deep: at most {MAX_DEPTH}")
    try:
        rows = data["steps"]
        if not isinstance(rows, list) or len(rows) > MAX_STEPS:
            raise AnchorheadError(f"a saved program has a list of at most {MAX_STEPS:,} steps")
        steps = tuple(_read(row, f"{prefix}{place}", arrays, depth) for place, row in enumerate(rows))
        names = tuple(str(name) for name in data["names"])
        conditions = tuple(conditions_from_json(data["conditions"]))
        outputs = tuple(_place(one) for one in data["outputs"])
        return Program(steps, outputs, names, conditions, bool(data["token_axis"]), str(data["title"]))
    except AnchorheadError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise AnchorheadError(f"what is stored is no program: {error!r}"[:300]) from error


def _written(step: Step, at: str, arrays: Arrays) -> dict[str, Any]:
    def kept(name: str, array: np.ndarray | None) -> None:
        if array is not None:
            arrays[f"{at}.{name}"] = array

    row: dict[str, Any] = {"step": type(step).__name__}
    match step:
        case Input():
            kept("low", step.low)
            kept("high", step.high)
            row |= {"features": list(step.features), "tokens": step.tokens, "most": step.most}
        case Affine():
            kept("bias", step.bias)
            kept("bias_radius", step.bias_radius)
            for number, term in enumerate(step.terms):
                kept(f"weight.{number}", term.weight)
                kept(f"radius.{number}", term.radius)
            row["of"] = [term.step for term in step.terms]
        case Apply():
            kept("which", step.which)
            functions = [_function(one) for one in step.functions]
            row |= {"of": list(step.of), "arguments": list(step.arguments), "functions": functions}
        case Dot():
            row["of"] = [step.a, step.b]
        case Attend():
            row |= {"values": step.values, "queries": step.queries, "keys": step.keys, "mask": step.mask}
        case Normalise():
            row |= {"of": step.of, "norm": step.norm, "eps": step.eps}
        case Repeat():
            body, inside = to_data(step.body, f"{at}/")
            arrays |= inside
            row |= {"body": body, "carried": list(step.carried), "given": list(step.given)}
            row |= {"times": step.times, "collect": step.collect}
    return row


def _function(function: Expression | Opaque) -> dict[str, Any]:
    if isinstance(function, Expression):
        return function.to_json()
    known = None if function.lipschitz is None else list(function.lipschitz)
    return {"opaque": function.digest, "arguments": list(function.arguments), "lipschitz": known}


def _read(row: Mapping[str, Any], at: str, arrays: Mapping[str, np.ndarray], depth: int) -> Step:
    kind = row["step"]
    if kind not in _READERS:
        raise AnchorheadError(f"step {at} of a saved program is a {str(kind)[:40]!r}: one of {', '.join(_READERS)}")
    return _READERS[kind](row, at, arrays, depth)


def _input(row: Mapping[str, Any], at: str, arrays: Mapping[str, np.ndarray], depth: int) -> Step:
    features = tuple(str(name) for name in row["features"])
    tokens, most = (None if row[name] is None else _place(row[name]) for name in ("tokens", "most"))
    return Input(features, arrays.get(f"{at}.low"), arrays.get(f"{at}.high"), tokens, most)


def _affine(row: Mapping[str, Any], at: str, arrays: Mapping[str, np.ndarray], depth: int) -> Step:
    terms = [
        Term(_place(place), arrays[f"{at}.weight.{number}"], arrays.get(f"{at}.radius.{number}"))
        for number, place in enumerate(row["of"])
    ]
    return Affine(tuple(terms), arrays[f"{at}.bias"], arrays.get(f"{at}.bias_radius"))


def _apply(row: Mapping[str, Any], at: str, arrays: Mapping[str, np.ndarray], depth: int) -> Step:
    functions = tuple(_read_function(one) for one in row["functions"])
    arguments = tuple(str(name) for name in row["arguments"])
    return Apply(functions, arrays[f"{at}.which"], tuple(_place(one) for one in row["of"]), arguments)


def _read_function(data: Mapping[str, Any]) -> Expression | Opaque:
    if "opaque" not in data:
        return Expression.from_json(dict(data))
    known = data["lipschitz"]
    lipschitz = None if known is None else tuple(float(one) for one in known)
    return Opaque(str(data["opaque"]), tuple(str(one) for one in data["arguments"]), lipschitz)


def _attend(row: Mapping[str, Any], at: str, arrays: Mapping[str, np.ndarray], depth: int) -> Step:
    queries, keys = (None if row[name] is None else _place(row[name]) for name in ("queries", "keys"))
    return Attend(_place(row["values"]), queries, keys, row["mask"])


def _repeat(row: Mapping[str, Any], at: str, arrays: Mapping[str, np.ndarray], depth: int) -> Step:
    body = from_data(row["body"], arrays, f"{at}/", depth + 1)
    carried, given = (tuple(_place(one) for one in row[name]) for name in ("carried", "given"))
    return Repeat(body, carried, _place(row["times"]), given, bool(row["collect"]))


_READERS: dict[str, Callable[..., Step]] = {
    "Input": _input,
    "Affine": _affine,
    "Apply": _apply,
    "Dot": lambda row, *_: Dot(*(_place(one) for one in row["of"])),
    "Attend": _attend,
    "Normalise": lambda row, *_: Normalise(_place(row["of"]), row["norm"], float(row["eps"])),
    "Repeat": _repeat,
}


def _place(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise AnchorheadError(f"{str(value)[:40]!r} in a saved program, where a whole number of at least 0 belongs")
    return value
