"""What a user wrote, checked: expressions, one for each output, in variables that have an interval each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_count, pair, shown
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.parser import meant, names_in, parse
from anchorhead.language.expressions.sympy_expressions import without_sympy
from anchorhead.language.several import SeveralVariables
from anchorhead.language.targets.scalar import NARROWEST
from anchorhead.language.targets.spec import expression_of

Texts = str | Expression | Sequence[Any] | Callable[..., Any]

LACKS = "on= has no interval for"
MAX_ENTRIES = 100_000
"""Of a sequence: each is a variable with a name."""


def requested(function: Texts, on: Any, tokens: Any, features: Any) -> SeveralVariables:
    """What a user wrote, checked: every variable has an interval, and every interval a variable."""
    function = without_sympy(function)
    check_counts(tokens, features)
    if tokens is not None and features is not None:
        return _of_tokens(function, on, tokens, features)
    texts = [function] if isinstance(function, str | Expression) else _listed(function, "expressions")
    names, low, high = intervals(on, () if isinstance(on, Mapping) else _occurring(texts))
    expressions = tuple(_parsed(text, names) for text in texts)
    unused = [name for name in names if not any(name in one.variables for one in expressions)]
    if unused and any(one.variables for one in expressions):  # a constant is a function of anything
        raise AnchorheadError(
            f"on= has an interval for {', '.join(unused)}, which occurs in none of the expressions: leave it out"
        )
    return SeveralVariables(expressions, names, tuple(low), tuple(high))


def check_counts(tokens: Any, features: Any) -> None:
    if (tokens is None) != (features is None):
        raise AnchorheadError(f"tokens={tokens!r} and features={features!r}: give both, or neither")
    for name, count in (("tokens", tokens), ("features", features)):
        if count is not None:
            checked_count(name, count, 1, MAX_ENTRIES)
    if tokens is not None and int(tokens) * int(features) > MAX_ENTRIES:
        raise AnchorheadError(
            f"tokens={tokens} and features={features} are {tokens * features:,} entries: at most {MAX_ENTRIES:,}"
        )


def intervals(on: Any, occurring: Sequence[str] = ()) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The variables, in order, and the ends of their intervals.

    on         {"x": (-1, 1), "y": (0, 2)}; or (-1, 1), where there is one variable
    occurring  the variables of expressions; of a callable nothing is known, and its only one is called x
    """
    if not isinstance(on, Mapping) and _is_interval(on):
        on = {_only(occurring, on): on}
    if not isinstance(on, Mapping) or not on:
        raise AnchorheadError(
            f"on={shown(on)}: an interval for each variable, as in on={{'x': (-1, 1), 'y': (0, 2)}}, or for the only "
            "one, as in on=(-1, 1)"
        )
    names = tuple(str(name) for name in on)
    boxes = [Box.of(on[name]) for name in on]
    if any(box.low.size != 1 for box in boxes):
        raise AnchorheadError(f"on={shown(on)}: two numbers for each variable, the lower and the upper end")
    low, high = (np.array([float(getattr(box, end).reshape(-1)[0]) for box in boxes]) for end in ("low", "high"))
    _check_wide(names, low, high)
    return names, low, high


def _is_interval(on: Any) -> bool:
    """Whether it is a box of one number, or the two ends of one."""
    if isinstance(on, Box):
        return on.low.size == 1
    return all(np.ndim(one) == 0 and not isinstance(one, str) for one in pair(on) or ([],))


def _only(occurring: Sequence[str], on: Any) -> str:
    """The variable that an interval without a name is for."""
    if len(occurring) < 2:
        return next(iter(occurring), "x")
    each = ", ".join(f"'{name}': (-1, 1)" for name in occurring)
    raise AnchorheadError(
        f"on={shown(on)} is one interval, and there are {len(occurring)} variables, {', '.join(occurring)}: give each "
        f"its own, as in on={{{each}}}"
    )


def _occurring(texts: Sequence[Any]) -> tuple[str, ...]:
    """The variables of expressions, each once. A lone word is a function's name, or mistyped, and no variable."""
    found = [one.variables if isinstance(one, Expression) else names_in(str(one)) for one in texts]
    used = {name for text, names in zip(texts, found, strict=True) for name in names if str(text).strip() != name}
    for word in (str(text).strip() for text in texts):
        if word.isidentifier() and len(word) > 1 and any(word in names for names in found) and word not in used:
            raise AnchorheadError(
                f"{word} is no function that has a name here: {meant(word)}Write an expression such as "
                "'sin(3*x)*exp(x)', or name the variable: on={'x': (-1, 1)}"
            )
    return tuple(dict.fromkeys(name for names in found for name in names))


def entries(on: Any, tokens: int, features: int) -> tuple[tuple[str, ...], Box]:
    """The entries of a sequence as variables, x[i,j], and their box."""
    names = tuple(f"x[{i},{j}]" for i in range(tokens) for j in range(features))
    box = Box.of(on).broadcast_to((tokens, features))
    _check_wide(names, box.low.reshape(-1), box.high.reshape(-1))
    return names, box


def _check_wide(names: tuple[str, ...], low: np.ndarray, high: np.ndarray) -> None:
    flat = [name for name, a, b in zip(names, low, high, strict=True) if a == b]
    if flat:
        raise AnchorheadError(
            f"the interval of {', '.join(flat)} is a single point: put the number into the expression"
        )
    narrow = [name for name, a, b in zip(names, low, high, strict=True) if b - a < NARROWEST]
    if narrow:
        raise AnchorheadError(
            f"the interval of {', '.join(narrow)} is narrower than {NARROWEST:.3g}, where float64 has fewer digits: "
            "rescale"
        )


def _of_tokens(function: Any, on: Any, tokens: int, features: int) -> SeveralVariables:
    rows = [_listed(row, "lists, one for each token") for row in _listed(function, "lists, one for each token")]
    if len(rows) != tokens or len({len(row) for row in rows}) != 1:
        sizes = [len(row) for row in rows]
        raise AnchorheadError(
            f"lists of {sizes} expressions for tokens={tokens}: a list for each token, all of the same length"
        )
    names, box = entries(on, tokens, features)
    expressions = tuple(_parsed(text, names) for row in rows for text in row)
    low, high = (tuple(end.reshape(-1)) for end in (box.low, box.high))
    return SeveralVariables(expressions, names, low, high, int(tokens))


def _listed(given: Any, what: str) -> list[Any]:
    if isinstance(given, str | Expression) or not isinstance(given, Sequence) or not given:
        raise AnchorheadError(f"{shown(given)}: a list of {what} is needed")
    return list(given)


def _parsed(text: Any, names: tuple[str, ...]) -> Expression:
    """The expression; a bare name such as "gelu" stands for the function of the only variable."""
    if isinstance(text, Expression):
        unknown = set(text.variables) - set(names)
        if unknown:
            raise AnchorheadError(f"{text} has the variable {', '.join(sorted(unknown))}, which on= gives no interval")
        return text
    if not isinstance(text, str):
        raise AnchorheadError(f"{shown(text)} is not an expression: give a text such as 'x*y + sin(z)'")
    if len(names) == 1 and "[" not in names[0]:
        return expression_of(text, LACKS, names[0])
    return parse(text, names, "" if any("[" in name for name in names) else LACKS)
