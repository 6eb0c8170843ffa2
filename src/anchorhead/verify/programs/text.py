"""What a program computes, as a text that is made from its steps alone: the report's own words for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anchorhead.verify.programs.expressions import Expression, is_plain
from anchorhead.verify.programs.program import Affine, Apply, Input, Opaque, Program

MAX_TEXT = 2_000
ONE_LINE = 200
Text = tuple[str, int]
"""A text, and how strongly its last operation binds: 1 for sums, 2 for products, 3 for powers, 4 for all else."""


class TooLong(Exception):
    """A text that nobody would read, or a step that has none."""


def formula(program: Program) -> str:
    """The functions that a program puts out, in the names of its inputs; of a long one its steps."""
    try:
        found: list[list[list[Text]]] = []
        for step in program.steps:
            found.append(_entries(step, found))
        entries = [text for row in found[program.outputs[0]] for text, _ in row]
    except TooLong:
        return "the program of the file, " + ", ".join(_step(step) for step in program.steps[:12])
    return entries[0] if len(entries) == 1 else f"[{', '.join(entries)}]"


def shortened(text: str) -> str:
    """The beginning of a text that is too long for one line, and that it is no more than that."""
    return text if len(text) <= ONE_LINE else f"{text[:ONE_LINE]} … and {len(text) - ONE_LINE:,} characters more"


def printable(text: str) -> str:
    """The text without characters that move the cursor, end the line or turn it around."""
    return "".join(one if one.isprintable() else "?" for one in text)


def _step(step: object) -> str:
    match step:
        case Input():
            return f"Input of {step.tokens or 'any number of'} x {len(step.features)}"
        case Affine():
            return f"Affine to {step.bias.shape[1]}"
        case Apply():
            return f"Apply {', '.join(str(one)[:40] for one in step.functions[:4] if isinstance(one, Expression))}"
    return type(step).__name__


def _entries(step: object, found: Sequence[list[list[Text]]]) -> list[list[Text]]:
    match step:
        case Input():
            return [[(name, 4) for name in row] for row in _names(step)]
        case Affine():
            return _affine(step, found)
        case Apply():
            given = [found[of] for of in step.of]
            rows = []
            for t in range(max(map(len, given))):
                at = [
                    {name: q[t % len(q)][f % len(q[0])] for name, q in zip(step.arguments, given, strict=True)}
                    for f in range(len(step.which))
                ]
                rows.append([_function(step.functions[k], one) for k, one in zip(step.which, at, strict=True)])
            return rows
    raise TooLong


def _names(step: Input) -> list[list[str]]:
    if step.tokens is None or step.tokens * len(step.features) > MAX_TEXT:
        raise TooLong
    if step.tokens > 1:
        return [[f"x[{i},{j}]" for j in range(len(step.features))] for i in range(step.tokens)]
    # names are the file's: one that reads like a formula, or two alike, would say what is not so
    plain = all(map(is_plain, step.features)) and len(set(step.features)) == len(step.features)
    return [list(step.features) if plain else [f"x{j}" for j in range(len(step.features))]]


def _affine(step: Affine, found: Sequence[list[list[Text]]]) -> list[list[Text]]:
    tokens, width = step.bias.shape
    for of, weight in zip(step.of, step.weights, strict=True):
        tokens = max(tokens, len(found[of]) if weight.ndim == 2 else len(weight))
    rows: list[list[Text]] = []
    for t in range(tokens):
        rows.append([])
        for f in range(width):
            terms: list[Text] = []
            for of, weight in zip(step.of, step.weights, strict=True):
                q = found[of]
                row = weight[f] if weight.ndim == 2 else weight[t % len(weight), f]
                entries = [one for token in q for one in token] if weight.ndim == 4 else q[t % len(q)]
                terms += [_term(w, one) for w, one in zip(np.ravel(row).tolist(), entries, strict=True) if w]
            bias = float(step.bias[t % len(step.bias), f])
            terms += [(_number(bias), 4 if bias >= 0 else 1)] if bias or not terms else []
            rows[-1].append(_joined(terms, " + ", 1))
    return rows


def _term(weight: float, of: Text) -> Text:
    return of if weight == 1 else (f"{_number(weight)}*{_inside(of, 3)}", 2)


def _function(function: Expression | Opaque, at: Mapping[str, Text]) -> Text:
    if isinstance(function, Opaque):
        return f"a function of {', '.join(at[name][0] for name in function.arguments)} known by its values", 1
    found: list[Text] = []
    for op, data, places in function.nodes:
        args = [found[place] for place in places]
        match op:
            case "number":
                found.append((_number(data), 4 if data >= 0 else 1))
            case "variable":
                found.append(at[data])
            case "pi" | "e":
                found.append((op, 4))
            case "add":
                found.append(_joined(args, " + ", 1))
            case "neg":
                found.append((f"-{_inside(args[0], 2)}", 1))
            case "mul":
                found.append(_joined([(_inside(one, 2), 2) for one in args], "*", 2))
            case "div":
                found.append((f"{_inside(args[0], 2)}/{_inside(args[1], 3)}", 2))
            case "integer_power":
                found.append((f"{_inside(args[0], 4)}**{data if data >= 0 else f'({data})'}", 3))
            case "power":
                found.append((f"{_inside(args[0], 4)}**{_inside(args[1], 4)}", 3))
            case "where":
                a, b, then, other = (text for text, _ in args)
                found.append((f"where({a} {data} {b}, {then}, {other})", 4))
            case _:
                found.append((f"{op}({', '.join(text for text, _ in args)})", 4))
        if len(found[-1][0]) > MAX_TEXT:
            raise TooLong
    return found[-1]


def _joined(terms: Sequence[Text], sign: str, strength: int) -> Text:
    if len(terms) == 1:
        return terms[0]
    text = sign.join(text for text, _ in terms).replace(" + -", " - ")
    if len(text) > MAX_TEXT:
        raise TooLong
    return text, strength


def _inside(of: Text, strength: int) -> str:
    return of[0] if of[1] >= strength else f"({of[0]})"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e16 else repr(float(value))
