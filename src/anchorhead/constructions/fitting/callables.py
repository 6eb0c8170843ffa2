"""Functions of which nothing is known but values: a head, a head over a grid, or neurons that are fitted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.causal import require_causal_values
from anchorhead.constructions.fitting.fitted import approximate_fitted
from anchorhead.constructions.fitting.opaque import approximate_callable
from anchorhead.constructions.grids.grid import SolvedGrid
from anchorhead.constructions.grids.grid_network import grid_network
from anchorhead.constructions.passes.functions import OF_HEADS, OF_NEURONS, one_head
from anchorhead.constructions.single.certified_head import Head
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.heads.grids.grid_atom import MAX_VARIABLES
from anchorhead.language.entries import Entries
from anchorhead.language.program import Program
from anchorhead.language.steps import Opaque
from anchorhead.language.targets import CallableTarget
from anchorhead.language.targets.lipschitz import Lipschitz
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.network import Network


def build_callable(found: Entries, written: Program, request: BuildRequest) -> Network | Head:
    """The function that a program knows by values alone, as the request gives it; of one variable it is a head."""
    target, known = callable_of(found, written, request)
    if isinstance(target, CallableTarget):
        return one_head(target, found.variables, written, request)
    return _several(target, known, request)


def callable_of(
    found: Entries, written: Program, request: BuildRequest
) -> tuple[CallableTarget | CallableSeveral, Lipschitz | None]:
    """That function, and what is known of its slopes; refuses words that it has no use for."""
    opaque = found.functions[0]
    if not isinstance(opaque, Opaque) or len(set(found.functions)) > 1:
        raise AnchorheadError("some functions of the program are known by their values, and others are not")
    target = _target(found, opaque.lipschitz, written, request.function)
    if target.digest != opaque.digest:
        raise AnchorheadError(f"function= is not the one that the program knows by its values: {target.name}")
    if isinstance(target, CallableTarget):
        request.require_only((*OF_HEADS, "function"), "a callable of one variable is one head")
        return target, None
    request.require_only((*OF_NEURONS, "function"), "a callable of several inputs is one head over a grid, or fitted")
    return target, None if opaque.lipschitz is None else Lipschitz(opaque.lipschitz, len(target.variables))


def _target(
    found: Entries, lipschitz: tuple[float, ...] | None, written: Program, function: Any
) -> CallableTarget | CallableSeveral:
    if function is None:
        raise AnchorheadError(
            "the program has a function that is known by its values, of which it holds none: give it, function="
        )
    if isinstance(function, CallableTarget | CallableSeveral):
        return function
    if len(found.variables) == 1:
        return CallableTarget(function, found.low[0], found.high[0], None if lipschitz is None else lipschitz[0])
    tokens = written.input.tokens if written.token_axis else None
    return CallableSeveral(function, np.array(found.low), np.array(found.high), tokens, found.variables)


def _several(target: CallableSeveral, lipschitz: Lipschitz | None, request: BuildRequest) -> Network:
    """A callable of a few inputs is a head over a grid; of many, or where no grid serves, neurons that are fitted."""
    if request.causal and target.tokens is None:
        raise AnchorheadError("causal=True without tokens: say how many tokens there are, tokens= and features=")
    given = request.given("form", "layout", "placement")
    if lipschitz is None and is_fitted(target, request):
        return approximate_fitted(target, request)
    if lipschitz is not None:
        _require_a_grid(target, lipschitz, given)
    pairs = require_causal_values(target) if request.causal else 0
    try:
        made = approximate_callable(target, request, lipschitz)
    except AnchorheadError as refused:
        if lipschitz is not None:
            raise
        try:
            return approximate_fitted(target, request)
        except NotReached as error:
            raise error from refused
    return _grid_moved(made, target, pairs) if request.causal else made.network


def is_fitted(target: CallableSeveral, request: BuildRequest) -> bool:
    """Whether neurons are fitted to a function before any grid is tried."""
    return bool(request.given("form", "layout", "placement")) or len(target.variables) > MAX_VARIABLES


def _require_a_grid(target: CallableSeveral, lipschitz: Lipschitz, given: list[str]) -> None:
    """Constants prove nothing of neurons that are fitted."""
    each = lipschitz.constants
    constants = f"lipschitz={each[0] if len(each) == 1 else each!r}"
    if len(target.variables) > MAX_VARIABLES:
        raise AnchorheadError(
            f"{constants} with {len(target.variables)} inputs: a proof covers the box with cells, of at most "
            f"{MAX_VARIABLES} inputs; leave it out, and the error is measured"
        )
    if given:
        raise AnchorheadError(
            f"{constants} with {', '.join(given)}: it is proven for a head over a grid, which has its own layers; "
            "leave out one or the other"
        )


def _grid_moved(made: SolvedGrid, target: CallableSeveral, pairs: int) -> Network:
    """The grid of a sequence, with a causal mask: what a token reads does not depend on what is hidden from it.

    That was found for so many pairs of inputs, and is not proven.
    """
    tokens, network = target.tokens or 1, made.network
    if tokens == 1 or network.certificate is None:
        return network
    known = f"{network.certificate.method}; causal as far as {pairs:,} pairs of inputs show"
    certificate = replace(network.certificate, kind="measured", method=known)
    return grid_network(made.atom, tokens, target.variables, causal=True).with_(
        program=network.program, derivation=network.derivation, certificate=certificate, outside=network.outside
    )
