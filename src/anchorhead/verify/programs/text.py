"""What a program computes, as a text that is made from its steps alone: the report's own words for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.programs.entries import entries
from anchorhead.verify.programs.expressions import OPERATIONS, Expression, evaluated, is_plain
from anchorhead.verify.programs.program import Affine, Apply, Input, Program

MAX_TEXT = 2_000
ONE_LINE = 200
Text = tuple[str, int]
"""A text, and how strongly its last operation binds: 1 for sums, 2 for products, 3 for powers, 4 for all else."""


class TooLong(Exception):
    """A text that nobody would read, or a step that has none."""


def formula(program: Program) -> str:
    """The functions that a program puts out, in the names of its inputs; of a long one its steps."""
    try:
        found = [text for row in entries(program, _names(program.steps[0]), TEXTS) for text, _ in row]
    except (TooLong, NotVerified):
        return "the program of the file, " + ", ".join(_step(step) for step in program.steps[:12])
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def written(function: Expression) -> str:
    """One function, in the names of its arguments."""
    names = {name: (name if is_plain(name) else "?", 4) for name in function.variables}
    try:
        return evaluated(function, names, TEXTS)[0]
    except TooLong:
        return f"an expression of {len(function.nodes)} nodes"


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
            return f"Apply {', '.join(written(one)[:40] for one in step.functions[:4] if isinstance(one, Expression))}"
    return type(step).__name__


def _names(step: object) -> list[list[Text]]:
    if not isinstance(step, Input) or step.tokens is None or step.tokens * len(step.features) > MAX_TEXT:
        raise TooLong
    if step.tokens > 1:
        return [[(f"x[{i},{j}]", 4) for j in range(len(step.features))] for i in range(step.tokens)]
    # names are the file's: one that reads like a formula, or two alike, would say what is not so
    plain = all(map(is_plain, step.features)) and len(set(step.features)) == len(step.features)
    return [[(name if plain else f"x{j}", 4) for j, name in enumerate(step.features)]]


def _rule(strength: int, write: Callable[..., str]) -> Callable[..., Text]:
    """An operation that binds so strongly; a sum or product of one thing is that."""

    def found(*args: Any) -> Text:
        if len(args) == 1 and write in (_sum, _product):
            return args[0]
        text = write(*args)
        if len(text) > MAX_TEXT:
            raise TooLong
        return text, strength

    return found


def _inside(of: Text, strength: int, first: bool = False) -> str:
    """A text where something binds that strongly; a sign may only stand first."""
    return of[0] if of[1] >= strength and (first or not of[0].startswith("-")) else f"({of[0]})"


def _sum(*terms: Text) -> str:
    return " + ".join(text for text, _ in terms).replace(" + -", " - ")


def _product(first: Text, *others: Text) -> str:
    return "*".join([_inside(first, 2, True), *(_inside(one, 2) for one in others)])


def _number(value: float, radius: float = 0.0) -> Text:
    whole = value == int(value) and abs(value) < 1e16
    return str(int(value)) if whole else repr(float(value)), 4 if value >= 0 else 2


def _called(name: str) -> Callable[..., str]:
    return lambda *args: f"{name}({', '.join(text for text, _ in args)})"


TEXTS: dict[str, Callable[..., Text]] = {
    **{name: _rule(4, _called(name)) for name in OPERATIONS},
    "number": _number,
    "pi": _rule(4, lambda: "pi"),
    "e": _rule(4, lambda: "e"),
    "add": _rule(1, _sum),
    "neg": _rule(1, lambda a: f"-{_inside(a, 2)}"),
    "mul": _rule(2, _product),
    "div": _rule(2, lambda a, b: f"{_inside(a, 2, True)}/{_inside(b, 3)}"),
    "integer_power": _rule(3, lambda n, a: f"{_inside(a, 4)}**{n if n >= 0 else f'({n})'}"),
    "power": _rule(3, lambda a, b: f"{_inside(a, 4)}**{_inside(b, 4)}"),
    "where": _rule(4, lambda relation, a, b, then, other: f"where({a[0]} {relation} {b[0]}, {then[0]}, {other[0]})"),
    "opaque": _rule(1, lambda *args: f"a function of {', '.join(text for text, _ in args)} known by its values"),
}
