"""Functions of the entries of an input as attention: heads, neurons in layers, heads over grids.

Structure comes first (summands). A function of one variable is a head. Sums of functions of one linear combination
each are hidden layers of neurons, built like any converted network; so are compositions of such functions, sums and
products, in several layers. Smooth functions of two variables, and what cannot be taken apart, go to heads over grids.
Where there are several parts, they stand side by side in one network. Where one way does not reach the error asked for,
others are tried.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anchorhead.constructions.build_options import FORMS, LAYOUTS, PLACEMENTS, BuildOptions, options_of
from anchorhead.constructions.causal import without_later_tokens
from anchorhead.constructions.grids.grid import solved_grid
from anchorhead.constructions.in_layers import network_in_layers
from anchorhead.constructions.mlp import proven_mlp
from anchorhead.constructions.representable import require_expressions_representable
from anchorhead.constructions.single.head import Placement, head
from anchorhead.constructions.sum_of_parts import BuildRequest, approximate_parts, check_continuous, check_defined
from anchorhead.constructions.theorems.uniform_grid import approximate_uniform_grid
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.given import checked_word
from anchorhead.heads.atom import Dtype
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES
from anchorhead.language.analysis.summands import MAX_IN_A_GRID
from anchorhead.language.entries import Entries
from anchorhead.language.program import Program
from anchorhead.language.steps import Opaque
from anchorhead.language.targets.several import SeveralVariables
from anchorhead.network import Network, Outside
from anchorhead.progress import Progress


def approximate_expressions(
    target: SeveralVariables,
    written: Program,
    within: float,
    words: dict[str, Any],
    dtype: Dtype,
    prove: bool,
    outside: Outside,
    progress: Progress | None,
) -> Network:
    """A head for one variable; neurons, heads over grids, or both, for several.

    written   the program whose expressions these are, and which is the network's
    words     form, layout, placement and causal, as they were given
    """
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
    if words["causal"]:
        target = without_later_tokens(target)
    if target.becomes(words["form"], words["layout"]) == "head":
        return _one_head(target, within, dtype, words["placement"], outside, progress)
    require_expressions_representable(within, target, dtype)
    ways = [replace(target, in_a_grid=MAX_IN_A_GRID)] if words["placement"] == "uniform" else target.ways
    refused: list[AnchorheadError] = []
    for way in ways:
        try:
            return _taken_apart(way, within, dtype, words, prove, outside, progress)
        except AnchorheadError as error:
            refused.append(error)
    reached = [error for error in refused if isinstance(error, NotReached)]
    raise min(reached, key=lambda error: error.bound) if reached else refused[0]


def _taken_apart(
    target: SeveralVariables,
    within: float,
    dtype: Dtype,
    words: dict[str, Any],
    prove: bool,
    outside: Outside,
    progress: Progress | None,
) -> Network:
    """Neurons in layers, or in one layer; else grids, and neurons beside them."""
    form, layout, placement, causal = (words[name] for name in ("form", "layout", "placement", "causal"))
    network, becomes = target.parts.network, target.becomes(form, layout)
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
    return of_variables(made.network, target.variables).with_(outside=outside)


def of_variables(network: Network, names: tuple[str, ...]) -> Network:
    """A head without an axis of tokens, with the name of its variable: that of a callable or a constant is in `on`
    alone."""
    if network.program is None:
        return network.with_(token_axis=False)
    found = Entries.of(network.program)
    functions = (replace(one, arguments=names) if isinstance(one, Opaque) else one for one in found.functions)
    named = replace(found, functions=tuple(functions), variables=names)
    return network.with_(token_axis=False, program=named.program(axis=False))
