"""Expressions of any number of variables as layers of neurons: written in every form, and the best one built.

Which form is the smallest is estimated from what the outputs feel of every head, on its range (compiler.budget,
compiler.estimate), without solving for any; only what is left of the forms in that order is built and proven.
"""

from __future__ import annotations

import numpy as np

from anchorhead.compiler.estimate import anchors_for
from anchorhead.compiler.lower import lowered
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.ladder import Ladder
from anchorhead.constructions.layouts.draft import counted
from anchorhead.constructions.mlp import drafted, proven_mlp
from anchorhead.constructions.planning.estimated_bound import estimated_bound
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.heads.atom import Dtype, Part
from anchorhead.language.expressions.expression import Expression
from anchorhead.language.expressions.text import name_of
from anchorhead.language.targets.mlp import Mlp
from anchorhead.language.targets.several import SeveralVariables
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.enclosures.ranges import range_of
from anchorhead.proof.heads.activation_head import ActivationHead

ROUNDING = 8
"""A head rounds by about so many units of the largest number that it reads."""


def network_in_layers(target: SeveralVariables, request: BuildRequest) -> Network:
    """The network of the best form that is proven within the error; of those that are not, the best refusal."""
    refused: list[AnchorheadError] = []
    for form in forms_in_order(target, request.error, request.dtype):
        request.of_network(form)  # words that do not go together are refused at once
        try:
            return proven_mlp(form, target.on, request).network
        except AnchorheadError as error:
            refused.append(error)
    reached = [error for error in refused if isinstance(error, NotReached)]
    raise min(reached, key=lambda error: error.bound) if reached else refused[0]


def forms_in_order(target: SeveralVariables, within: float, dtype: Dtype) -> list[Mlp]:
    """The expressions as layers of neurons in every form, the best by estimate first."""
    terms = [[term.expression for term in target.parts.terms if term.output == k] for k in range(target.outputs)]
    found = lowered(terms, target.variables, (target.low, target.high), target.tokens, name_of(target.expressions))
    if len(found) == 1:
        return found
    return sorted(found, key=lambda form: _estimate(form, target.on, within, dtype))


def _estimate(target: Mlp, on: Box, within: float, dtype: Dtype) -> tuple[bool, float]:
    """Whether the error is out of reach, and how many numbers the network will hold, as far as can be said at once."""
    request = BuildRequest(within, dtype, "deep", "transformer")
    ladder = Ladder(target, on, within, Guesses(dtype))
    laid = next(iter(ladder), None)
    if laid is None or ladder.ended is not None:
        return True, np.inf
    drafts = drafted(laid, target, request)
    bound = estimated_bound(laid, drafts, ladder.sources, target.tokens or 1, request)
    return not bound <= within, float(counted(drafts, target.tokens or 1).parameters)


class Guesses(ActivationHeads):
    """Shapes as large as they are likely to be, of which nothing is solved for."""

    def _solved(
        self, activation: Expression, interval: tuple[float, float], error: float, degree: float | None
    ) -> ActivationHead:
        size = float(np.abs(range_of(activation, np.array(interval[:1]), np.array(interval[1:]))).max())
        rounding = ROUNDING * arithmetic_of(self.dtype).unit * size
        anchors = np.zeros(anchors_for(activation, *interval, error))
        part = Part.of(anchors, anchors, np.full((len(anchors), 1), size), self.dtype)
        return ActivationHead(activation, *interval, (part,), max(error - rounding, 0.0), rounding, degree=degree)
