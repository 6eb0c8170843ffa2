"""The one form in which a program is saved: plain data, and arrays by name.

A step is {"step": kind, ...}; arrays are named by the place of the step and what they are, "3.weight.0" for the first
matrix of step 3; those of a body come after its Repeat's place, "5/2.bias". Reading builds every step anew, with the
checks and caps of a program that is written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

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
        conditions = tuple(conditions_from_json(data["conditions"]))
        outputs, names = _places(data["outputs"]), _texts(data["names"])
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
    match row["step"]:
        case "Input":
            tokens, most = (None if row[name] is None else _place(row[name]) for name in ("tokens", "most"))
            return Input(_texts(row["features"]), arrays.get(f"{at}.low"), arrays.get(f"{at}.high"), tokens, most)
        case "Affine":
            terms = [
                Term(place, arrays[f"{at}.weight.{number}"], arrays.get(f"{at}.radius.{number}"))
                for number, place in enumerate(_places(row["of"]))
            ]
            return Affine(tuple(terms), arrays[f"{at}.bias"], arrays.get(f"{at}.bias_radius"))
        case "Apply":
            functions = tuple(_read_function(one) for one in row["functions"])
            return Apply(functions, arrays[f"{at}.which"], _places(row["of"]), _texts(row["arguments"]))
        case "Dot":
            return Dot(*_places(row["of"]))
        case "Attend":
            queries, keys = (None if row[name] is None else _place(row[name]) for name in ("queries", "keys"))
            return Attend(_place(row["values"]), queries, keys, row["mask"])
        case "Normalise":
            return Normalise(_place(row["of"]), row["norm"], float(row["eps"]))
        case "Repeat":
            body = from_data(row["body"], arrays, f"{at}/", depth + 1)
            carried, given = (_places(row[name]) for name in ("carried", "given"))
            return Repeat(body, carried, _place(row["times"]), given, bool(row["collect"]))
        case kind:
            known = ", ".join(one.__name__ for one in get_args(Step))
            raise AnchorheadError(f"step {at} of a saved program is a {str(kind)[:40]!r}: one of {known}")


def _read_function(data: Mapping[str, Any]) -> Expression | Opaque:
    if "opaque" not in data:
        return Expression.from_json(dict(data))
    known = data["lipschitz"]
    lipschitz = None if known is None else tuple(float(one) for one in known)
    return Opaque(str(data["opaque"]), _texts(data["arguments"]), lipschitz)


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in values)


def _places(values: Any) -> tuple[int, ...]:
    return tuple(_place(one) for one in values)


def _place(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise AnchorheadError(f"{str(value)[:40]!r} in a saved program, where a whole number of at least 0 belongs")
    return value
