"""How many arguments a callable takes: one, an array of all its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from anchorhead.errors import AnchorheadError

NEEDED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def require_one_argument(f: Callable[..., Any], called: str, variables: Sequence[str] = ()) -> None:
    """Refuses `lambda a, b: …` with what to write instead.

    variables   the names of its inputs; none: a function of one number
    """
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # some builtins do not say
        return
    names = [one.name for one in parameters if one.kind in NEEDED and one.default is inspect.Parameter.empty]
    if len(names) < 2:
        return
    takes = f"{called} takes {len(names)} arguments, {', '.join(names)}"
    several = "on={" + ", ".join(f"'{name}': (-1, 1)" for name in names) + "}"
    columns = ", ".join(f"x[:, {j}]" for j in range(len(names)))
    instead = f"write lambda x: f({columns})"
    if not variables:
        raise AnchorheadError(
            f"{takes}, and a head is for a function of one: use ah.approximate with {several}, and there {instead}"
        )
    count = f"{len(variables)} input{'s' * (len(variables) != 1)}"
    fits = "" if len(variables) == len(names) else f"; on= has {count}, {', '.join(variables)}"
    raise AnchorheadError(f"{takes}, but is called with one array (batch, inputs): {instead}{fits}")
