"""Functions of the entries of an input as attention: heads, neurons in layers, heads over grids.

Structure comes first (summands). A function of one variable is a head. Sums of functions of one linear combination
each are hidden layers of neurons, built like any converted network; so are compositions of such functions, sums and
products, in several layers. Smooth functions of two variables, and what cannot be taken apart, go to heads over grids.
Where there are several parts, they stand side by side in one network. Where one way does not reach the error asked for,
others are tried.
"""

from __future__ import annotations

from dataclasses import replace

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.causal import without_later_tokens
from anchorhead.constructions.grids.grid import solved_grid
from anchorhead.constructions.in_layers import network_in_layers
from anchorhead.constructions.mlp import proven_mlp
from anchorhead.constructions.representable import require_expressions_representable
from anchorhead.constructions.single.certified_head import Head
from anchorhead.constructions.single.head import best_head
from anchorhead.constructions.sum_of_parts import approximate_parts, check_continuous, check_defined
from anchorhead.constructions.theorems.uniform_grid import approximate_uniform_grid
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES
from anchorhead.language.analysis.summands import MAX_IN_A_GRID
from anchorhead.language.entries import Entries
from anchorhead.language.program import Program
from anchorhead.language.steps import Opaque
from anchorhead.language.targets import CallableTarget, ScalarTarget
from anchorhead.language.targets.several import SeveralVariables
from anchorhead.network import Network

OF_HEADS = ("within", "anchors", "placement", "max_value", "max_slope")
OF_NEURONS = ("within", "form", "layout", "placement", "causal")


def approximate_expressions(target: SeveralVariables, written: Program, request: BuildRequest) -> Network | Head:
    """A head for one variable; neurons, heads over grids, or both, for several.

    written   the program whose expressions these are, and which is the network's
    """
    if request.causal:
        target = without_later_tokens(target)
    try:
        if target.becomes(request.form, request.layout) == "head":
            scalar = ScalarTarget(target.expressions, target.low[0], target.high[0])
            made = one_head(scalar, target.variables, written, request)
            return replace(made, network=made.network.written_as(written))
        return _of_expressions(target, request).written_as(written)
    except NotReached as error:
        error.network = error.network.written_as(written)
        raise


def one_head(
    target: ScalarTarget | CallableTarget, names: tuple[str, ...], written: Program, request: BuildRequest
) -> Head:
    """A head, with or without an axis of tokens as the program has it, and with the name of its variable: that of a
    callable or a constant is in the program alone."""
    request.require_only((*OF_HEADS, "causal", "function"), "a function of one variable is one head")
    made = best_head(target, request)
    found = Entries.of(made.network.program or written)
    functions = (replace(one, arguments=names) if isinstance(one, Opaque) else one for one in found.functions)
    named = replace(found, functions=tuple(functions), variables=names).program(axis=written.token_axis)
    network = made.network.with_(token_axis=written.token_axis, program=named, outside=request.outside)
    return replace(made, network=network)


def _of_expressions(target: SeveralVariables, request: BuildRequest) -> Network:
    """The first of the ways to take the functions apart that is proven within the error; else the best refusal."""
    request.require_only(OF_NEURONS, "a head's words are for functions of one variable, without a form or layout")
    require_expressions_representable(request.error, target, request.dtype)
    ways = [replace(target, in_a_grid=MAX_IN_A_GRID)] if request.placement == "uniform" else target.ways
    refused: list[AnchorheadError] = []
    for way in ways:
        try:
            return _taken_apart(way, request)
        except AnchorheadError as error:
            refused.append(error)
    reached = [error for error in refused if isinstance(error, NotReached)]
    raise min(reached, key=lambda error: error.bound) if reached else refused[0]


def _taken_apart(target: SeveralVariables, request: BuildRequest) -> Network:
    """Neurons in layers, or in one layer; else grids, and neurons beside them."""
    becomes, network = target.becomes(request.form, request.layout), target.parts.network
    if becomes == "layers":
        return network_in_layers(target, request)
    if becomes == "neurons" and network is not None:
        return proven_mlp(network, target.on, request).network
    _require_plain(target, request)
    if request.placement == "uniform":
        return _uniform(target, request)
    return _gridded(target, replace(request, form="deep", layout="transformer"))


def _gridded(target: SeveralVariables, request: BuildRequest) -> Network:
    """One grid alone, or several parts; grids that are too large together are tried one by one."""
    if target.one_grid and not request.causal:
        check_defined(target)
        check_continuous(target)
        return solved_grid(target, request).network
    try:
        return approximate_parts(target, request)
    except AnchorheadError as error:
        apart = replace(target, join=False)
        if [part.variables for part in apart.parts.grids] == [part.variables for part in target.parts.grids]:
            raise
        try:
            return approximate_parts(apart, request)
        except AnchorheadError:
            raise error from None


def _require_plain(target: SeveralVariables, request: BuildRequest) -> None:
    """Refuses forms and layouts that a grid cannot have, with the term that needs one."""
    term = next(term for term in target.parts.terms if term.becomes == "grid")
    why = f"{term.expression} goes to a head over a grid, with layers of its own"
    if request.form not in (None, "deep"):
        raise AnchorheadError(
            f"form={request.form!r}: {why}, after those of the neurons: use form='deep', or leave it out"
        )
    if request.layout not in (None, "transformer"):
        raise AnchorheadError(
            f"layout={request.layout!r}: {why}, whose maps act on a token alone: use layout='transformer', or leave it "
            "out"
        )


def _uniform(target: SeveralVariables, request: BuildRequest) -> Network:
    """The paper's uniform grid, of all variables."""
    if request.causal:
        raise AnchorheadError("causal=True with placement='uniform' on a grid: use placement='solved'")
    if len(target.variables) > MAX_VARIABLES:
        raise AnchorheadError(
            f"placement='uniform' would take a grid of {len(target.variables)} variables, and at most "
            f"{MAX_VARIABLES} are possible: use placement='solved', which takes the function apart"
        )
    check_continuous(target)
    return approximate_uniform_grid(target, request)
