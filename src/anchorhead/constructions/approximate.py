"""Any continuous function as an attention-only network: name it, say where, say how well.

Structure comes first (summands). A function of one variable is a head. Sums of functions of one linear combination
each are hidden layers of neurons, built like any converted network. What is left over, smooth functions of at most four
variables, goes to heads over grids. Where there are several parts, they stand side by side in one network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from anchorhead.constructions.build_options import FORMS, LAYOUTS, PLACEMENTS, BuildOptions, Form, Layout, options_of
from anchorhead.constructions.causal import require_causal_values, without_later_tokens
from anchorhead.constructions.fitting.fitted import approximate_fitted
from anchorhead.constructions.fitting.opaque import approximate_callable
from anchorhead.constructions.grids.grid import SolvedGrid, solved_grid
from anchorhead.constructions.grids.grid_network import GridPlacement, place_grid
from anchorhead.constructions.in_layers import network_in_layers
from anchorhead.constructions.mlp import proven_mlp
from anchorhead.constructions.representable import require_expressions_representable
from anchorhead.constructions.request import Texts, check_counts, entries, intervals, requested
from anchorhead.constructions.single.head import Placement, head
from anchorhead.constructions.sum_of_parts import BuildRequest, approximate_parts, check_continuous, check_defined
from anchorhead.constructions.theorems.uniform_grid import approximate_uniform_grid
from anchorhead.decimals import beyond_float64
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.given import checked_within, checked_word
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.sympy_expressions import without_sympy
from anchorhead.language.of_targets import program_of
from anchorhead.language.program import Program
from anchorhead.language.steps import Opaque
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.language.targets.several import SeveralVariables
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
    with progress_line(progress, "approximating") as tell, beyond_float64():
        if callable(function) and not isinstance(function, Expression):
            words = {"form": form, "layout": layout, "placement": placement, "causal": causal}
            target = _callable_target(function, on, tokens, features)
            if isinstance(target, CallableSeveral):
                return _callable(target, within, kind, words, lipschitz, seed, outside, tell)
            return _one_callable(target, on, within, kind, words, lipschitz, outside, tell)
        if lipschitz is not None:
            raise AnchorheadError(
                f"lipschitz={lipschitz!r} is for callables: expressions are proven without; leave it out"
            )
        target = requested(function, on, tokens, features)
        return approximate_expressions(target, within, kind, form, layout, placement, causal, prove, outside, tell)


def approximate_expressions(
    target: SeveralVariables,
    within: float,
    dtype: Dtype,
    form: Form | None = None,
    layout: Layout | None = None,
    placement: Placement = "solved",
    causal: bool = False,
    prove: bool = True,
    outside: Outside = "warn",
    progress: Progress | None = None,
    program: Program | None = None,
) -> Network:
    """A head for one variable; neurons, heads over grids, or both, for several. Its program is what was written:
    `program`, or that of the target."""
    written = program_of(target) if program is None else program
    words = {"form": form, "layout": layout, "placement": placement, "causal": causal}
    try:
        return _of_expressions(target, within, dtype, words, prove, outside, progress).written_as(written)
    except NotReached as error:
        error.network = error.network.written_as(written)
        raise


def _of_expressions(
    target: SeveralVariables,
    within: float,
    dtype: Dtype,
    words: dict[str, Any],
    prove: bool,
    outside: Outside,
    progress: Progress | None,
) -> Network:
    form, layout, placement, causal = (words[name] for name in ("form", "layout", "placement", "causal"))
    if causal:
        target = without_later_tokens(target)
    becomes = target.becomes(form, layout)
    if becomes == "head":
        return _one_head(target, within, dtype, placement, outside, progress)
    require_expressions_representable(within, target, dtype)
    network = target.parts.network
    if becomes == "layers":
        return network_in_layers(target, within, words, dtype, outside, progress)
    if becomes == "neurons" and network is not None:
        options = options_of(network, form, layout or "transformer", placement, dtype, causal)
        return proven_mlp(network, target.on, within, options, outside, progress).network
    if placement == "uniform":
        return _uniform(target, within, dtype, form, layout, causal, outside, progress)
    _require_plain(target, form, layout)
    build = BuildRequest(within, BuildOptions("deep", "transformer", "solved", dtype, causal), prove, outside, progress)
    return _gridded(target, build)


def check_words(form: Any, layout: Any, placement: Any) -> None:
    for name, given, allowed in (("form", form, FORMS), ("layout", layout, LAYOUTS)):
        if given is not None:
            checked_word(name, given, allowed)
    checked_word("placement", placement, PLACEMENTS)


def _gridded(target: SeveralVariables, build: BuildRequest) -> Network:
    """One grid alone, or several parts; grids that are too large together are tried one by one."""
    if target.one_grid and not build.options.causal:
        check_defined(target)
        check_continuous(target)
        return solved_grid(
            target, build.within, build.options.dtype, build.prove, build.progress, build.outside
        ).network
    try:
        return approximate_parts(target, build)
    except AnchorheadError as error:
        apart = replace(target, join=False)
        if [part.variables for part in apart.parts.grids] == [part.variables for part in target.parts.grids]:
            raise
        try:
            return approximate_parts(apart, build)
        except AnchorheadError:
            raise error from None


def _require_plain(target: SeveralVariables, form: Any, layout: Any) -> None:
    """Refuses forms and layouts that a grid cannot have, with the term that needs one."""
    term = next(term for term in target.parts.terms if term.becomes == "grid")
    why = f"{term.expression} goes to a head over a grid, with layers of its own"
    if form not in (None, "deep"):
        raise AnchorheadError(f"form={form!r}: {why}, after those of the neurons: use form='deep', or leave it out")
    if layout not in (None, "transformer"):
        raise AnchorheadError(
            f"layout={layout!r}: {why}, whose maps act on a token alone: use layout='transformer', or leave it out"
        )


def _uniform(
    target: SeveralVariables,
    within: float,
    dtype: Dtype,
    form: Any,
    layout: Any,
    causal: bool,
    outside: Outside,
    progress: Progress | None,
) -> Network:
    """The paper's uniform grid, of all variables."""
    _require_plain(target, form, layout)
    if causal:
        raise AnchorheadError("causal=True with placement='uniform' on a grid: use placement='solved'")
    if len(target.variables) > MAX_VARIABLES:
        raise AnchorheadError(
            f"placement='uniform' would take a grid of {len(target.variables)} variables, and at most "
            f"{MAX_VARIABLES} are possible: use placement='solved', which takes the function apart"
        )
    check_continuous(target)
    return approximate_uniform_grid(target, within, dtype, outside, progress)


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
    return _of_variables(made.network, names).with_(outside=outside)


def _one_head(
    target: SeveralVariables,
    within: float,
    dtype: Dtype,
    placement: Placement,
    outside: Outside,
    progress: Progress | None,
) -> Network:
    functions = list(target.expressions)
    made = head(
        functions if len(functions) > 1 else functions[0],
        (target.low[0], target.high[0]),
        within=within,
        dtype=dtype,
        placement=placement,
        progress=progress,
    )
    return _of_variables(made.network, target.variables).with_(outside=outside)


def _of_variables(network: Network, names: tuple[str, ...]) -> Network:
    """A head without an axis of tokens, with the name of its variable: that of a callable or a constant is in `on`
    alone."""
    if network.program is None:
        return network.with_(token_axis=False)
    found = Entries.of(network.program)
    functions = (replace(one, arguments=names) if isinstance(one, Opaque) else one for one in found.functions)
    named = replace(found, functions=tuple(functions), variables=names)
    return network.with_(token_axis=False, program=named.program(axis=False))
