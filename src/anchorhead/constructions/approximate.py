"""Any continuous function as an attention-only network: name it, say where, say how well.

Structure comes first. A function of one variable is a head. Sums of functions of one linear combination each are one
hidden layer of neurons (targets.expression_network), built like any converted network. What is left over, a smooth
function of at most four variables, goes to one head over a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.constructions.grid import approximate_grid
from anchorhead.constructions.head import Placement, Progress, head
from anchorhead.constructions.mlp import Form, Layout, mlp_network, way_of
from anchorhead.constructions.opaque import approximate_callable
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grid_atom import MOST_VARIABLES
from anchorhead.network import Network, Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.targets.expression import Expression
from anchorhead.targets.expression_network import Found, expression_network
from anchorhead.targets.opaque_several import CallableSeveral
from anchorhead.targets.parser import parse
from anchorhead.targets.several import SeveralVariables
from anchorhead.targets.spec import expression_of

Texts = str | Expression | Sequence[Any] | Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Request:
    """Expressions, one for each output, in variables that have an interval each.

    tokens  None: the variables are the features of one vector; else x[i,j] is feature j of token i, and outputs are
            `tokens` rows
    """

    expressions: tuple[Expression, ...]
    variables: tuple[str, ...]
    on: Box
    tokens: int | None

    @property
    def interval(self) -> tuple[float, float]:
        """The domain of the only variable."""
        return float(self.on.low.reshape(-1)[0]), float(self.on.high.reshape(-1)[0])

    @property
    def ends(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The lower and the upper ends of all variables."""
        low, high = (tuple(end.reshape(-1).tolist()) for end in (self.on.low, self.on.high))
        return low, high

    @property
    def found(self) -> Found:
        return expression_network(self.expressions, self.variables, self.tokens)


def approximate(
    function: Texts,
    on: Any,
    within: float,
    *,
    tokens: int | None = None,
    features: int | None = None,
    form: Form | None = None,
    layout: Layout | None = None,
    placement: Placement = "solved",
    dtype: Any = "float64",
    causal: bool = False,
    prove: bool = True,
    outside: Outside = "warn",
    progress: Progress | None = None,
) -> Network:
    """An attention-only network that is proven within an error of a function, on a box of inputs.

    function   an expression such as "x*y + sin(z)", or a list of them, one for each output; with tokens=n, a list of
               expressions for each token, in the variables x[i,j]: feature j of token i; or a callable of at most
               four inputs, from (batch, inputs) or (batch, tokens, features), in numpy or torch: then measured
    on         an interval for each variable, {"x": (-1, 1), "y": (0, 2)}; with tokens, a box such as (0, 1)
    within     the error asked for, in the sup norm over the box, rounding included
    tokens, features   the input is (..., tokens, features), the output (..., tokens, outputs)
    form, layout, placement, causal   as in ah.convert; by default a function of one variable is one head
    prove      False: leave out the proof of a head over a grid, which is the one that may take long; the certificate
               then says "measured"
    """
    kind: Dtype = dtype_name(dtype)  # type: ignore[assignment]
    if callable(function) and not isinstance(function, Expression):
        words = {"form": form, "layout": layout, "causal": causal or None}
        words["placement"] = None if placement == "solved" else placement
        return _callable(function, on, within, tokens, features, kind, words, outside, progress)
    request = requested(function, on, tokens, features)
    plain = form is None and layout is None and not causal and tokens is None
    if plain and len(request.variables) == 1:
        return _one_head(request, within, kind, placement, outside, progress)
    found = request.found
    if found.network is None:
        _require_grid(request, found, form, layout, placement, causal)
        target = SeveralVariables(request.expressions, request.variables, *request.ends)
        return approximate_grid(target, within, kind, prove, progress, outside, request.tokens)
    way = way_of(found.network, form, layout or "transformer", placement, kind, causal)
    return mlp_network(found.network, request.on, within, way, outside, progress)


def _require_grid(request: Request, found: Found, form: Any, layout: Any, placement: Placement, causal: bool) -> None:
    """Refuses what a grid cannot be, with the term that would need one."""
    term = found.left_over[0]
    why = f"{term} is no sum of functions of one linear combination each, so it would go to a head over a grid"
    if len(request.variables) > MOST_VARIABLES:
        raise AnchorheadError(
            f"{why}, which takes at most {MOST_VARIABLES} variables, not {len(request.variables)}: write the function "
            "as a sum of functions of fewer variables"
        )
    words = {"form": form, "layout": layout, "causal": causal or None}
    words["placement"] = None if placement == "solved" else placement
    given = [f"{name}={value!r}" for name, value in words.items() if value is not None]
    if given:
        raise AnchorheadError(f"{', '.join(given)}: {why}, which has its own layers; leave this out")


def _callable(
    function: Callable[..., Any],
    on: Any,
    within: float,
    tokens: int | None,
    features: int | None,
    dtype: Dtype,
    words: dict[str, Any],
    outside: Outside,
    progress: Progress | None,
) -> Network:
    """A function of which only values are known: one head, or one over a grid, measured."""
    given = [f"{name}={value!r}" for name, value in words.items() if value is not None]
    if given:
        raise AnchorheadError(f"{', '.join(given)}: a callable goes to a head over a grid, which has its own layers")
    _check_counts(tokens, features)
    if tokens is not None and features is not None:
        names = tuple(f"x[{i},{j}]" for i in range(tokens) for j in range(features))
        box = Box.of(on).broadcast_to((tokens, features))
        low, high = box.low.reshape(-1), box.high.reshape(-1)
    else:
        names, low, high = _intervals(on)
        if len(names) == 1:
            made = head(function, (float(low[0]), float(high[0])), within=within, dtype=dtype, progress=progress)
            return made.network.with_(token_axis=False, outside=outside)
    target = CallableSeveral(function, low, high, tokens, names)
    return approximate_callable(target, within, dtype, outside, progress)


def _one_head(
    request: Request, within: float, dtype: Dtype, placement: Placement, outside: Outside, progress: Progress | None
) -> Network:
    functions = list(request.expressions)
    made = head(
        functions if len(functions) > 1 else functions[0],
        request.interval,
        within=within,
        dtype=dtype,
        placement=placement,
        progress=progress,
    )
    return made.network.with_(token_axis=False, outside=outside)


def requested(function: Texts, on: Any, tokens: int | None, features: int | None) -> Request:
    """What a user wrote, checked: every variable has an interval, and every interval a variable."""
    _check_counts(tokens, features)
    if tokens is not None and features is not None:
        return _of_tokens(function, on, tokens, features)
    names, low, high = _intervals(on)
    texts = [function] if isinstance(function, str | Expression) else _listed(function, "expressions")
    expressions = tuple(_parsed(text, names) for text in texts)
    unused = [name for name in names if not any(name in one.variables for one in expressions)]
    if unused:
        raise AnchorheadError(
            f"on= has an interval for {', '.join(unused)}, which occurs in none of the expressions: leave it out"
        )
    return Request(expressions, names, Box.of((low, high)), None)


def _check_counts(tokens: Any, features: Any) -> None:
    if (tokens is None) != (features is None):
        raise AnchorheadError(f"tokens={tokens!r} and features={features!r}: give both, or neither")
    for name, count in (("tokens", tokens), ("features", features)):
        whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
        if count is not None and not (whole and count >= 1):
            raise AnchorheadError(f"{name}={count!r}: a whole number of at least 1")


def _intervals(on: Any) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The variables, in order, and the ends of their intervals."""
    if not isinstance(on, Mapping) or not on:
        raise AnchorheadError(f"on={on!r}: an interval for each variable, as in on={{'x': (-1, 1), 'y': (0, 2)}}")
    names = tuple(str(name) for name in on)
    boxes = [Box.of(on[name]) for name in on]
    if any(box.low.size != 1 for box in boxes):
        raise AnchorheadError(f"on={on!r}: two numbers for each variable, the lower and the upper end")
    low, high = (np.array([float(getattr(box, end).reshape(-1)[0]) for box in boxes]) for end in ("low", "high"))
    flat = [name for name, a, b in zip(names, low, high, strict=True) if a == b]
    if flat:
        raise AnchorheadError(
            f"the interval of {', '.join(flat)} is a single point: put the number into the expression"
        )
    return names, low, high


def _of_tokens(function: Any, on: Any, tokens: int, features: int) -> Request:
    rows = [_listed(row, "lists, one for each token") for row in _listed(function, "lists, one for each token")]
    if len(rows) != tokens or len({len(row) for row in rows}) != 1:
        sizes = [len(row) for row in rows]
        raise AnchorheadError(
            f"lists of {sizes} expressions for tokens={tokens}: a list for each token, all of the same length"
        )
    names = tuple(f"x[{i},{j}]" for i in range(tokens) for j in range(features))
    box = Box.of(on).broadcast_to((tokens, features))
    return Request(tuple(_parsed(text, names) for row in rows for text in row), names, box, int(tokens))


def _listed(given: Any, what: str) -> list[Any]:
    if isinstance(given, str | Expression) or not isinstance(given, Sequence) or not given:
        raise AnchorheadError(f"{given!r}: a list of {what} is needed")
    return list(given)


def _parsed(text: Any, names: tuple[str, ...]) -> Expression:
    """The expression; a bare name such as "gelu" stands for the function of the only variable."""
    if isinstance(text, Expression):
        unknown = set(text.variables) - set(names)
        if unknown:
            raise AnchorheadError(f"{text} has the variable {', '.join(sorted(unknown))}, which on= gives no interval")
        return text
    if not isinstance(text, str):
        raise AnchorheadError(f"{text!r} is not an expression: give a text such as 'x*y + sin(z)'")
    if names == ("x",):
        return expression_of(text)
    return parse(text, names)
