"""Functions of the entries of an input as attention: heads, neurons in layers, heads over grids.

Structure comes first (summands). A function of one variable is a head. Sums of functions of one linear combination
each are hidden layers of neurons, built like any converted network; so are compositions of such functions, sums and
products, in several layers. Smooth functions of two variables, and what cannot be taken apart, go to heads over grids.
Where there are several parts, they stand side by side in one network. All of these are equal ways to write the same
functions (simplify), and each goes through the passes (run); where one does not reach the error asked for, others are
tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.causal import without_later_tokens
from anchorhead.constructions.grids.grid import solved_grid
from anchorhead.constructions.layouts.draft import counted
from anchorhead.constructions.passes import parts
from anchorhead.constructions.passes.budget import SHARES
from anchorhead.constructions.passes.estimate import Guesses
from anchorhead.constructions.passes.estimated_bound import estimated_bound
from anchorhead.constructions.passes.layout import drafted
from anchorhead.constructions.passes.parts import PartGrid
from anchorhead.constructions.passes.prove import ProvenMlp
from anchorhead.constructions.passes.run import Tries, proven_mlp
from anchorhead.constructions.passes.simplify import forms_of, ways_of
from anchorhead.constructions.representable import require_expressions_representable
from anchorhead.constructions.single.certified_head import Head
from anchorhead.constructions.single.head import best_head
from anchorhead.constructions.theorems.uniform_grid import approximate_uniform_grid
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.heads.atom import Dtype
from anchorhead.language.entries import Entries
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.simplify import simplified
from anchorhead.language.program import Program
from anchorhead.language.several import SeveralVariables
from anchorhead.language.steps import Opaque
from anchorhead.language.targets import CallableTarget, ScalarTarget
from anchorhead.language.targets.mlp import Mlp
from anchorhead.network import Network

Written = TypeVar("Written")
Made = TypeVar("Made")
Grids = TypeVar("Grids")
Neurons = TypeVar("Neurons")
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
            scalar = ScalarTarget(_without_what_cancels(target), target.low[0], target.high[0])
            made = one_head(scalar, target.variables, written, request)
            return replace(made, network=made.network.written_as(written))
        request.require_only(OF_NEURONS, "a head's words are for functions of one variable, without a form or layout")
        require_expressions_representable(request.error, target, request.dtype)
        return taken_apart(target, request, _proven_neurons, _proven_grids).written_as(written)
    except NotReached as error:
        error.network = error.network.written_as(written)
        raise


def _without_what_cancels(target: SeveralVariables) -> tuple[Expression, ...]:
    """The expressions, those that are constants as such: of exp(x) - exp(x) enclosures would say little."""
    simple = (simplified(one) for one in target.expressions)
    return tuple(one if other.variables else other for one, other in zip(target.expressions, simple, strict=True))


def one_head(
    target: ScalarTarget | CallableTarget, names: tuple[str, ...], written: Program, request: BuildRequest
) -> Head:
    """A head, with or without an axis of tokens as the program has it, and with the name of its variable: that of a
    callable or a constant is in the program alone."""
    request.require_only((*OF_HEADS, "causal", "function"), "a function of one variable is one head")
    made = best_head(target, request)
    found = Entries.of(made.network.program or written)
    functions = (replace(one, arguments=names) if isinstance(one, Opaque) else one for one in found.functions)
    tokens = 1 if written.token_axis else None
    named = replace(found, functions=tuple(functions), variables=names, tokens=tokens).program()
    network = made.network.with_(token_axis=written.token_axis, program=named, outside=request.outside)
    return replace(made, network=network)


def taken_apart(
    target: SeveralVariables,
    request: BuildRequest,
    of_neurons: Callable[[Mlp, SeveralVariables, BuildRequest], Made],
    of_grids: Callable[[SeveralVariables, BuildRequest], Made],
) -> Made:
    """What is made of the first of all equal ways to write the functions that reaches the error, the best by estimate
    first; else the best refusal.

    of_neurons   makes something of a form, and of the functions as they were taken apart
    of_grids     the same where there are grids, alone or beside neurons
    """

    def of_way(way: SeveralVariables) -> Made:
        if way.becomes(request.form, request.layout) != "grids":
            return first_that_reaches(
                forms_in_order(way, request.error, request.dtype), lambda form: of_neurons(form, way, request)
            )
        parts.require_plain(way, request)
        groupings = (way,) if request.placement == "uniform" else parts.groupings(way, request.causal)
        plain = replace(request, form="deep", layout="transformer")
        return first_that_reaches(groupings, lambda one: of_grids(one, plain))

    return first_that_reaches(ways_of(target, request.placement), of_way)


def _proven_neurons(form: Mlp, way: SeveralVariables, request: BuildRequest) -> Network:
    return proven_mlp(form, way.on, request).network


def _proven_grids(target: SeveralVariables, request: BuildRequest) -> Network:
    """Grids and neurons, side by side, and one walk over all of them; the paper's uniform grid is of all variables."""
    if request.placement == "uniform":
        parts.require_uniform(target, request)
        parts.check_continuous(target)
        return approximate_uniform_grid(target, request)
    if target.one_grid and not request.causal:
        parts.require_continuous(target)
        return solved_grid(target, request).network
    for _, several, _ in parts.grid_requests(target, request.error):
        parts.require_continuous(several)

    def of_neurons(network: Mlp, grids: Sequence[PartGrid]) -> ProvenMlp:
        left = parts.left_for_neurons(target, request, grids)
        return proven_mlp(network, target.on, replace(request, within=left))

    def of_both(grids: Sequence[PartGrid], neurons: ProvenMlp | None) -> Network:
        network = parts.certified(target, request, grids, neurons)
        reached = np.inf if network.certificate is None else network.certificate.bound
        if reached > request.error:
            raise AnchorheadError(f"together the parts are within {reached:.3g}")
        return network

    return shared_out(target, request, partial(parts.solved, target, request), of_neurons, of_both)


def shared_out(
    target: SeveralVariables,
    request: BuildRequest,
    of_grids: Callable[[float], Grids],
    of_neurons: Callable[[Mlp, Grids], Neurons],
    of_both: Callable[[Grids, Neurons | None], Made],
) -> Made:
    """What is made of grids, which get a share of the error, and of neurons, which get what is left of it: of the first
    share within which both can be had."""
    refused: AnchorheadError | None = None
    network = target.parts.network
    for share in SHARES if network is not None else (1.0,):
        try:
            grids = of_grids(share)
        except AnchorheadError as error:  # nor will they do with less
            refused = refused or error
            break
        try:
            return of_both(grids, None if network is None else of_neurons(network, grids))
        except AnchorheadError as error:
            refused = refused or error
    raise AnchorheadError(
        f"within={request.error:g} is not reached for {target} in {request.dtype}, by parts that share it: {refused}"
    )


def first_that_reaches(ways: Iterable[Written], make: Callable[[Written], Made]) -> Made:
    """What is made of the first way that reaches the error; where none does, the closest, or what stands against the
    first."""
    refused: list[AnchorheadError] = []
    for way in ways:
        try:
            return make(way)
        except AnchorheadError as error:
            refused.append(error)
    reached = [error for error in refused if isinstance(error, NotReached)]
    raise min(reached, key=lambda error: error.bound) if reached else refused[0]


@lru_cache(maxsize=8)
def forms_in_order(target: SeveralVariables, within: float, dtype: Dtype) -> list[Mlp]:
    """The functions as layers of neurons in every form, the best by estimate first; the same for all placements."""
    found, usual = forms_of(target), BuildRequest(within, dtype, "deep", "transformer")
    return found if len(found) == 1 else sorted(found, key=lambda form: _estimate(form, target.on, usual))


def _estimate(target: Mlp, on: Box, request: BuildRequest) -> tuple[bool, float]:
    """Whether the error is out of reach, and how many numbers the network will hold, as far as can be said at once:
    the passes with heads as large as they are likely to be."""
    tries = Tries(target, on, request.error, Guesses(request.dtype))
    try:
        laid = tries.first
    except AnchorheadError:
        return True, np.inf
    size = counted(drafted(laid, target, request), target.tokens or 1)
    return not estimated_bound(laid, tries.sources, request).total <= request.error, float(size.parameters)
