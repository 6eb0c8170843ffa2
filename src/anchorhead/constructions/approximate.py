"""Any continuous function as an attention-only network: name it, say where, say how well.

Expressions are written as a program, which is compiled. Of a callable values are known alone: one of few inputs is a
head, or one over a grid; one of many is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from anchorhead.constructions.build_options import Form, Layout
from anchorhead.constructions.causal import require_causal_values
from anchorhead.constructions.compile import compiled
from anchorhead.constructions.fitting.fitted import approximate_fitted
from anchorhead.constructions.fitting.opaque import approximate_callable
from anchorhead.constructions.functions import check_words, of_variables
from anchorhead.constructions.grids.grid import SolvedGrid
from anchorhead.constructions.grids.grid_network import GridPlacement, place_grid
from anchorhead.constructions.request import Texts, check_counts, entries, intervals, requested
from anchorhead.constructions.single.head import Placement, head
from anchorhead.decimals import beyond_float64
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.given import checked_within
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.sympy_expressions import without_sympy
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.network import Network, Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.progress import Progress, progress_line


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
    lipschitz: float | tuple[float, ...] | None = None,
    seed: int = 0,
    outside: Outside = "warn",
    progress: Progress | bool | None = True,
) -> Network:
    """An attention-only network that is proven within an error of a function, on a box of inputs.

    function   an expression such as "x*y + sin(z)", or a list of them, one for each output; with tokens=n, a list of
               expressions for each token, in the variables x[i,j]: feature j of token i; or a callable, from
               (batch, inputs) or (batch, tokens, features), in numpy or torch: then measured. Expressions of sympy are
               read as their texts
    on         an interval for each variable, {"x": (-1, 1), "y": (0, 2)}, or (-1, 1) for the only one; with tokens, a
               box such as (0, 1)
    within     the error asked for, in the sup norm over the box, rounding included
    tokens, features   the input is (..., tokens, features), the output (..., tokens, outputs)
    form, layout, placement   as in ah.convert; by default a function of one variable is one head
    causal     with tokens: token i must not depend on later tokens, which is proven of expressions, or refuted; the
               network then cannot see them
    prove      False: leave out the proof of heads over grids, which is the one that may take long; the certificate
               then says "measured"
    lipschitz  of a callable: |f(x) - f(y)| <= lipschitz |x - y| for each output, with which it is proven
    seed       of what is fitted to a callable: of more than four inputs, with a form or layout, or where no grid serves
    progress   a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   a Network with its certificate; NotReached, which holds the best network, where `within` is out of reach

        >>> net = ah.approximate("x*y", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-6)
        >>> net.certificate.kind, net.certificate.bound <= 1e-6
        ('proven', True)
        >>> bool(abs(net([0.5, -0.5])[0] + 0.25) <= net.certificate.bound)
        True
    """
    kind: Dtype = dtype_name(dtype)  # type: ignore[assignment]
    within, causal = checked_within(within), bool(causal)
    check_words(form, layout, placement)
    function = without_sympy(function)
    words = {"form": form, "layout": layout, "placement": placement, "causal": causal}
    with progress_line(progress, "approximating") as tell, beyond_float64():
        if callable(function) and not isinstance(function, Expression):
            target = _callable_target(function, on, tokens, features)
            if isinstance(target, CallableSeveral):
                return _callable(target, within, kind, words, lipschitz, seed, outside, tell)
            return _one_callable(target, on, within, kind, words, lipschitz, outside, tell)
        if lipschitz is not None:
            raise AnchorheadError(
                f"lipschitz={lipschitz!r} is for callables: expressions are proven without; leave it out"
            )
        program = program_of(requested(function, on, tokens, features))
        return compiled(program, within, words, kind, prove, outside, tell)


def _callable_target(
    function: Callable[..., Any], on: Any, tokens: int | None, features: int | None
) -> CallableSeveral | Callable[..., Any]:
    """A function of which only values are known; of one variable, as it is."""
    check_counts(tokens, features)
    if tokens is not None and features is not None:
        names, box = entries(on, tokens, features)
        return CallableSeveral(function, box.low.reshape(-1), box.high.reshape(-1), int(tokens), names)
    names, low, high = intervals(on)
    return function if len(names) == 1 else CallableSeveral(function, low, high, None, names)


def _callable(
    target: CallableSeveral,
    within: float,
    dtype: Dtype,
    words: dict[str, Any],
    lipschitz: Any,
    seed: int,
    outside: Outside,
    progress: Progress | None,
) -> Network:
    """A callable of a few inputs is a head over a grid; of many, or where no grid serves, neurons that are fitted."""
    if words["causal"] and target.tokens is None:
        raise AnchorheadError("causal=True without tokens: say how many tokens there are, tokens= and features=")
    if len(target.variables) > MAX_VARIABLES:
        if lipschitz is not None:
            raise AnchorheadError(
                f"lipschitz={lipschitz!r} with {len(target.variables)} inputs: a proof covers the box with cells, of "
                f"at most {MAX_VARIABLES} inputs; leave it out, and the error is measured"
            )
        return approximate_fitted(target, within, dtype=dtype, seed=seed, outside=outside, progress=progress, **words)
    plain = words["form"] is None and words["layout"] is None and words["placement"] == "solved"
    if not plain and lipschitz is None:
        return approximate_fitted(target, within, dtype=dtype, seed=seed, outside=outside, progress=progress, **words)
    if not plain:
        given = [f"{name}={words[name]!r}" for name in ("form", "layout", "placement")]
        raise AnchorheadError(
            f"lipschitz={lipschitz!r} with {', '.join(given)}: it is proven for a head over a grid, which has its own "
            "layers; leave out one or the other"
        )
    pairs = 0
    if words["causal"]:
        pairs = require_causal_values(target.values, target.tokens or 1, (np.array(target.low), np.array(target.high)))
    try:
        made = approximate_callable(target, within, dtype, outside, progress, lipschitz)
    except AnchorheadError as refused:
        if lipschitz is not None:
            raise
        try:
            return approximate_fitted(
                target, within, dtype=dtype, seed=seed, outside=outside, progress=progress, **words
            )
        except NotReached as error:
            raise error from refused
    return _grid_moved(made, target, pairs) if words["causal"] else made.network


def _grid_moved(made: SolvedGrid, target: CallableSeveral, pairs: int) -> Network:
    """The grid of a sequence, with a causal mask: what a token reads does not depend on what is hidden from it.

    That was found for so many pairs of inputs, and is not proven.
    """
    tokens, network = target.tokens or 1, made.network
    if tokens == 1 or network.certificate is None:
        return network
    columns = target.outputs // tokens
    outputs = tuple((token, column) for token in range(tokens) for column in range(columns))
    place = GridPlacement(
        tokens, len(target.variables) // tokens, tuple(range(len(target.variables))), outputs, causal=True
    )
    known = f"{network.certificate.method}; causal as far as {pairs:,} pairs of inputs show"
    certificate = replace(network.certificate, kind="measured", method=known)
    return place_grid(made.atom, place, target.variables).with_(
        program=network.program, derivation=network.derivation, certificate=certificate, outside=network.outside
    )


def _one_callable(
    function: Callable[..., Any],
    on: Any,
    within: float,
    dtype: Dtype,
    words: dict[str, Any],
    lipschitz: Any,
    outside: Outside,
    progress: Progress | None,
) -> Network:
    """A callable of one variable is a head."""
    given = [f"{name}={words[name]!r}" for name in ("form", "layout") if words[name] is not None]
    if given or words["causal"]:
        raise AnchorheadError(
            f"{', '.join(given) or 'causal=True'}: a callable of one variable is one head; leave it out"
        )
    names, low, high = intervals(on)
    made = head(
        function,
        (float(low[0]), float(high[0])),
        within=within,
        dtype=dtype,
        placement=words["placement"],
        lipschitz=lipschitz,
        progress=progress,
    )
    return of_variables(made.network, names).with_(outside=outside)
