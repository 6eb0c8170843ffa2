"""Sizes of networks of neurons, in every form and layout, before anything is built.

A plan takes the passes that building takes (passes.run), and stops before weights exist: it counts the layers that are
drafted of the first heads of which a proof within the error is expected (passes.estimated_bound).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from anchorhead.constructions.build_request import FORMS, LAYOUTS, BuildRequest, Layout
from anchorhead.constructions.causal import require_causal
from anchorhead.constructions.layouts.draft import Draft, counted
from anchorhead.constructions.layouts.laid_out import FAR, out_of_reach
from anchorhead.constructions.layouts.neurons import Laid
from anchorhead.constructions.passes.estimated_bound import estimated_bound
from anchorhead.constructions.passes.functions import first_that_reaches
from anchorhead.constructions.passes.layout import drafted
from anchorhead.constructions.passes.run import Tries
from anchorhead.constructions.passes.simplify import for_layout
from anchorhead.constructions.passes.stacked import Stack, stack_forms
from anchorhead.constructions.planning.plan import Plan, Row, beside, check_request, row_of
from anchorhead.constructions.planning.uniform_estimates import UniformEstimate, UniformEstimates
from anchorhead.constructions.representable import points_of, require_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.language.forms import box_of
from anchorhead.language.merge import merged
from anchorhead.language.program import Program
from anchorhead.language.several import SeveralVariables
from anchorhead.language.targets.mlp import Mlp

NEARLY = 1.5
"""Where rounding counts, estimates may be off, by less than this factor: proofs may find a little less."""


def plan_network(target: Mlp, program: Program, withins: Sequence[float] | None, request: BuildRequest) -> Plan:
    """The sizes of all networks that could be built of a target within each of these errors."""
    return plan_forms(str(target), box_of(program), lambda _: (target,), withins, request)


def plan_stack(stack: Stack, program: Program, withins: Sequence[float] | None, request: BuildRequest) -> Plan:
    """The same of programs one after the other, in the first of all forms that is expected to reach the error."""
    first = next(iter(stack_forms(stack, replace(request, within=max(check_request(withins, request.dtype))))))
    return plan_forms(str(first), box_of(program), lambda asked: stack_forms(stack, asked), withins, request)


def plan_forms(
    name: str,
    on: Box,
    forms: Callable[[BuildRequest], Iterable[Mlp]],
    withins: Sequence[float] | None,
    request: BuildRequest,
) -> Plan:
    """forms   equal ways to write the target for a request, in the order in which they are built"""
    dtype, rows, errors = request.dtype, list[Row](), check_request(withins, request.dtype)
    forms = _checked(forms, on, errors[0], request)
    for within in errors:
        # every error has heads of its own, because building starts with nothing: what is solved for depends on what
        # was solved for before
        heads = ActivationHeads(dtype, "solved", request.progress), UniformEstimates(dtype)
        solved, even = (
            _first_rows(forms, on, replace(request, within=within, placement=each.placement), each) for each in heads
        )
        rows += beside(solved, even)
    return Plan(name, on, dtype, tuple(rows))


def _checked(
    forms: Callable[[BuildRequest], Iterable[Mlp]], on: Box, largest: float, request: BuildRequest
) -> Callable[[BuildRequest], Iterable[Mlp]]:
    """The same forms, each refused where it cannot be built as is asked within the largest error."""

    def checked(asked: BuildRequest) -> Iterable[Mlp]:
        for target in forms(asked):
            if request.given("form", "layout"):
                request.of_network(target)
            if request.causal:
                require_causal(target)
            if merged(target).hidden:
                require_representable(largest, target.values(points_of(on, target.input_shape)), request.dtype)
            yield target

    return checked


def _first_rows(
    forms: Callable[[BuildRequest], Iterable[Mlp]], on: Box, request: BuildRequest, heads: ActivationHeads
) -> Sequence[Row]:
    try:
        return first_that_reaches(forms(request), lambda one: reached(neuron_rows(one, on, request, heads)))
    except NotPlanned as missed:
        return missed.rows


class NotPlanned(NotReached):
    """What is written in one way is not expected to reach the error: rows that say so.

    way   functions, as they were taken apart
    """

    def __init__(self, rows: Sequence[Row], way: SeveralVariables | None = None) -> None:
        bounds = [row.bound for row in rows if row.bound is not None]
        super().__init__(rows[0].note, None, min(bounds, default=np.inf), rows[0].within or 0.0)
        self.rows, self.way = rows, way


def reached(rows: list[Row], way: SeveralVariables | None = None) -> list[Row]:
    """The rows, if one of them is expected to reach the error; raises NotPlanned with them where none is."""
    if not any(row.reachable for row in rows):
        raise NotPlanned(rows, way)
    return rows


def neuron_rows(target: Mlp, on: Box, request: BuildRequest, heads: ActivationHeads) -> list[Row]:
    """All forms and layouts of neurons within one error, or those that are asked for.

    heads   which heads stand in for activations
    """
    hidden = len(merged(target).hidden)
    forms = FORMS if hidden == 1 else ("deep",)
    layouts: tuple[Layout, ...] = ("transformer",) if request.causal else LAYOUTS
    written = {layout: for_layout(target, layout) for layout in layouts}
    tries = {one: Tries(one, on, request.error, heads) for one in written.values()}
    return [
        _row(tries[written[layout]], replace(request, form=form, layout=layout))
        for form in forms
        for layout in layouts
        if request.form in (None, form) and request.layout in (None, layout)
    ]


def _row(tries: Tries, request: BuildRequest) -> Row:
    """The first try that is expected to be proven within the error; without sizes, where there is none."""
    target, best = tries.target, np.inf
    try:
        for one in tries.each(lambda laid: (None, estimated_bound(laid, tries.sources, request))):
            best, laid = min(best, one.bound.total), one.laid
            refused = _refusal(laid)
            if refused or best <= tries.within:
                sizes = _sizes(laid, drafted(laid, target, request), target.tokens or 1)
                return row_of(request, one.bound.total, sizes, not refused, refused)
    except AnchorheadError as error:
        return row_of(request, best, {}, False, str(error))
    return row_of(request, best, {}, False, _out_of_reach(best, request))


def _refusal(laid: Laid) -> str:
    """Why the paper's anchors are not built, if they are too many."""
    return next((one.refused for one in laid.shapes if isinstance(one, UniformEstimate) and one.refused), "")


def _sizes(laid: Laid, drafts: Sequence[Draft], tokens: int) -> dict[str, Any]:
    """The sizes of the network that would be built of these drafts: see Row."""
    shapes = laid.shapes
    # two things can put an anchor out of reach at once: its own offset, and a gate
    logit = laid.largest_logit + 2 * out_of_reach(laid.largest_logit)
    return {
        "anchors": max((max(shape.lengths) for shape in shapes), default=0),
        "beta": max((shape.beta for shape in shapes if isinstance(shape, UniformEstimate)), default=None),
        "largest_logit": max(logit, 2 * FAR) if shapes else 2 * FAR,
        **asdict(counted(drafts, tokens)),
    }


def _out_of_reach(bound: float, request: BuildRequest) -> str:
    if not np.isfinite(bound):
        return "not known before it is built"
    if bound <= NEARLY * request.error:
        return "perhaps out of reach: the bound is the best that is expected"
    return f"out of reach: the bound is what rounding in {request.dtype} leaves"
