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
from anchorhead.constructions.passes.run import proven_functions
from anchorhead.constructions.representable import require_expressions_representable
from anchorhead.constructions.single.certified_head import Head
from anchorhead.constructions.single.head import best_head
from anchorhead.errors import NotReached
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
        request.require_only(OF_NEURONS, "a head's words are for functions of one variable, without a form or layout")
        require_expressions_representable(request.error, target, request.dtype)
        return proven_functions(target, request).written_as(written)
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
