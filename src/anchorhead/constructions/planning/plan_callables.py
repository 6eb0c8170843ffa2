"""How large a network for a function becomes of which nothing is known but values: a head, or a head over a grid.

A grid is solved for and measured as it is when it is built. Neurons that are fitted are as many as fitting finds, and
grids whose error is proven of a constant as large as that proof asks for: neither is known before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.causal import require_causal_values
from anchorhead.constructions.fitting.callables import callable_of, is_fitted
from anchorhead.constructions.fitting.opaque import measured_grid
from anchorhead.constructions.grids.grid_network import GridPlacement, filled_drafts
from anchorhead.constructions.planning.plan import Plan, Row, check_request
from anchorhead.constructions.planning.plan_expressions import Climbed, row_of_drafts
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.entries import Entries
from anchorhead.language.forms import box_of
from anchorhead.language.program import Program
from anchorhead.language.targets import CallableTarget
from anchorhead.language.targets.opaque_several import CallableSeveral

MEASURED = "measured: the largest error that a search finds"
FITTED = "neurons would be fitted to {}, and how many it takes is known when they are: build it, ah.approximate"
PROVEN = "a grid for {} is as large as the proof from its Lipschitz constant asks for: build it, ah.approximate"


def plan_callable(found: Entries, program: Program, withins: Sequence[float] | None, request: BuildRequest) -> Plan:
    """The sizes of what ah.approximate builds of a callable within each of these errors."""
    errors = check_request(withins, request.dtype)
    target, known = callable_of(found, program, request)
    if isinstance(target, CallableTarget):
        return _plan(target, box_of(program), Climbed(target, request).rows(errors), "one head", request)
    if request.causal and target.tokens is None:
        raise AnchorheadError("causal=True without tokens: say how many tokens there are, tokens= and features=")
    if known is not None:
        raise AnchorheadError(PROVEN.format(target))
    if is_fitted(target, request):
        raise AnchorheadError(FITTED.format(target))
    if request.causal:
        require_causal_values(target)
    rows = [_grid(target, replace(request, within=within)) for within in errors]
    return _plan(target, box_of(program), rows, f"a grid of {', '.join(target.variables)}", request)


def _plan(
    target: CallableTarget | CallableSeveral, on: Box, rows: Sequence[Row], becomes: str, request: BuildRequest
) -> Plan:
    return Plan(target.name, on, request.dtype, tuple(rows), ((target.name, becomes),))


def _grid(target: CallableSeveral, request: BuildRequest) -> Row:
    """The grid that would be built; where none serves, neurons would be fitted."""
    try:
        atom, error, _ = measured_grid(target, request)
    except AnchorheadError as refused:
        note = f"{refused}. {FITTED.format(target.name)}"
        return row_of_drafts(request, None, None, None, note, reachable=False)
    tokens = target.tokens
    causal = request.causal and (tokens or 1) > 1
    place = None if tokens is None else GridPlacement.of_all(tokens, atom.variables, atom.outputs, causal)
    return row_of_drafts(request, error, filled_drafts(atom, place, target.variables), atom.anchors, MEASURED)
