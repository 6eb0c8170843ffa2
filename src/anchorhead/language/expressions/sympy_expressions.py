"""Expressions of sympy, which is not imported here: they are known by the module of their class, and read as text."""

from __future__ import annotations

import re
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.given import shown
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.parser import parse

CALLED = {"Max": "max", "Min": "min", "Abs": "abs"}
"""Functions that sympy prints under another name than ours."""


def without_sympy(given: Any) -> Any:
    """What a user gave, with sympy's expressions read, in lists too; anything else as it is."""
    if isinstance(given, list | tuple):
        return [without_sympy(one) for one in given] if any(map(_holds_sympy, given)) else given
    return _read(given) if _is_sympy(given) else given


def _is_sympy(given: Any) -> bool:
    return type(given).__module__.partition(".")[0] == "sympy"


def _holds_sympy(given: Any) -> bool:
    return any(map(_holds_sympy, given)) if isinstance(given, list | tuple) else _is_sympy(given)


def _read(given: Any) -> Expression:
    """The expression that its text is; refused where that is none of ours, or has digits less than the number meant."""
    text = re.sub(r"\b(Max|Min|Abs)(?=\()", lambda match: CALLED[match[1]], str(given))
    atoms = given.atoms() if hasattr(given, "atoms") else ()
    for atom in atoms:
        if getattr(atom, "is_Float", False) and float(str(atom)) != float(atom):
            raise AnchorheadError(
                f"the sympy expression {shown(given)} has a number that sympy prints as {atom}, and means as "
                f"{float(atom)!r}: write the expression as a text, with all digits"
            )
    names = sorted(str(symbol) for symbol in getattr(given, "free_symbols", ()))
    try:
        return parse(text, names)
    except AnchorheadError as error:
        raise AnchorheadError(
            f"a sympy expression is read as its text, and this one cannot be: {error}. Write it as a text such as "
            "'sin(3*x)*exp(x)', or give sympy.lambdify((x,), f, 'numpy'), whose error is then measured"
        ) from error
