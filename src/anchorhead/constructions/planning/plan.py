"""Sizes of every way to build a network, before anything is built.

A plan takes the passes that building takes (passes.run), and stops before weights exist: it counts the layers that are
drafted of the first heads of which a proof within the error is foreseen (passes.estimated_bound).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from textwrap import fill
from typing import Any, Literal

import numpy as np

from anchorhead.as_html import block, table
from anchorhead.constructions.build_request import FORMS, LAYOUTS, BuildRequest, Form, Layout, Placement
from anchorhead.constructions.causal import require_causal
from anchorhead.constructions.layouts.draft import Draft, counted
from anchorhead.constructions.layouts.laid_out import FAR, out_of_reach
from anchorhead.constructions.layouts.neurons import Laid
from anchorhead.constructions.passes.estimated_bound import estimated_bound
from anchorhead.constructions.passes.layout import drafted
from anchorhead.constructions.passes.run import Tries
from anchorhead.constructions.passes.simplify import for_layout
from anchorhead.constructions.planning.plan_tables import WIDTH, csv_table, html_table, latex_table, listed, text_table
from anchorhead.constructions.planning.uniform_estimates import UniformEstimate, UniformEstimates
from anchorhead.constructions.representable import points_of, require_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.language.merge import merged
from anchorhead.language.of_targets import program_of
from anchorhead.language.targets.mlp import Mlp
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.statement import stated_bound

SMALLEST = 1e-20
"""Below, no dtype reaches anything, and uniform anchors are more than numbers can count."""

NEARLY = 1.5
"""Where rounding counts, what is foreseen may be off, by less than this factor: proofs may find a little less."""


@dataclass(frozen=True)
class Row:
    """One way to build the target within an error. What is None is not known, because nothing can be built, or not
    counted.

    form           as in ah.convert; "head": one head of one variable
    layers         Embed, Linear, Attention and Softmax
    heads          of all attention layers, those that gather the sequence included, and the groups of a Softmax
    anchors        of one softmax, at most: the paper's p
    keys           over how many tokens, or logits of a group, one softmax runs
    beta           the paper's inverse temperature, where its anchors are used
    parameters     numbers that are stored
    largest_logit  a bound on every |logit|, of anchors and of what is put out of reach
    bound          what is foreseen to be proven; where `within` is out of reach, the best that could be
    multiply_adds  for one input sequence; keys and values of registers, the same for every input, are left out
    reachable      whether building is foreseen to succeed; where it is not, `note` says why
    """

    within: float
    form: Form | Literal["head"]
    layout: Layout
    placement: Placement
    layers: int | None
    heads: int | None
    anchors: int | None
    keys: int | None
    beta: float | None
    parameters: int | None
    largest_logit: float | None
    bound: float
    multiply_adds: int | None
    reachable: bool
    note: str


@dataclass(frozen=True)
class Plan:
    """Rows for ever smaller errors; within an error, all forms, layouts and placements.

    found  of expressions: every term, and what it becomes
    where  of expressions: the variables and their intervals
    """

    target: str
    on: Box
    dtype: Dtype
    rows: tuple[Row, ...]
    found: tuple[tuple[str, str], ...] = ()
    where: str = ""

    def __str__(self) -> str:
        title = f"{self.target} {f'for {self.where}' if self.where else f'on {self.on}'}, in {self.dtype}"
        title = fill(f"{title}: sizes before building", WIDTH, subsequent_indent="  ")
        return "\n\n".join([title, *listed(self.found), text_table(self.rows)])

    def _repr_html_(self) -> str:
        where = f"for {self.where}" if self.where else f"on {self.on}"
        found = table(("term", "becomes"), self.found) if self.found else ""
        return block(f"{self.target} {where}, in {self.dtype}: sizes before building", found, html_table(self.rows))

    def to_csv(self) -> str:
        """All digits, a line for each row; what is not known is empty."""
        return csv_table(self.rows)

    def to_latex(self) -> str:
        """A tabular in the style of booktabs."""
        return latex_table(self.rows)


def plan_network(target: Mlp, on: Box, withins: Sequence[float], request: BuildRequest) -> Plan:
    """The sizes of all networks that could be built of a target within each of these errors."""
    dtype, causal = request.dtype, request.causal
    check_request(withins, dtype)
    if causal:
        require_causal(target)
    if merged(target).hidden:
        require_representable(max(withins), program_of(target)(points_of(on, target.input_shape)), dtype)
    rows = []
    for within in sorted(set(withins), reverse=True):
        # every error has heads of its own, because building starts with nothing: what is solved for depends on what
        # was solved for before
        heads = ActivationHeads(dtype, "solved", request.progress), UniformEstimates(dtype)
        solved, even = (
            neuron_rows(target, on, replace(request, within=within, placement=each.placement), each) for each in heads
        )
        rows += beside(solved, even)
    return Plan(str(target), on, dtype, tuple(rows))


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


def beside(solved: Sequence[Row], even: Sequence[Row]) -> list[Row]:
    """The rows of two placements, side by side where they are of the same forms and layouts."""
    ways = [[(row.form, row.layout) for row in rows] for rows in (solved, even)]
    if ways[0] != ways[1]:
        return [*solved, *even]
    return [row for pair in zip(solved, even, strict=True) for row in pair]


def check_request(withins: Sequence[float], dtype: Dtype) -> None:
    require_model(dtype)
    if min(withins) < SMALLEST:
        raise AnchorheadError(f"within={min(withins):g}: errors of at least {SMALLEST:g} are planned for")


def _row(tries: Tries, request: BuildRequest) -> Row:
    """The first try of which a proof within the error is foreseen; without sizes, where there is none."""
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


def row_of(request: BuildRequest, bound: float, sizes: Mapping[str, Any], reachable: bool, note: str) -> Row:
    """A row of what is asked for, without a form one head; sizes that are not known are left out."""
    names = ("layers", "heads", "anchors", "keys", "beta", "parameters", "largest_logit", "multiply_adds")
    return Row(
        within=request.error,
        form=request.form or "head",
        layout=request.layout or "transformer",  # type: ignore[arg-type]
        placement=request.placement,
        bound=stated_bound(bound, request.error),
        reachable=reachable,
        note=note,
        **{name: sizes.get(name) for name in names},  # type: ignore[arg-type]
    )


def _out_of_reach(bound: float, request: BuildRequest) -> str:
    if not np.isfinite(bound):
        return "not known before it is built"
    if bound <= NEARLY * request.error:
        return "perhaps out of reach: the bound is the best that is foreseen"
    return f"out of reach: the bound is what rounding in {request.dtype} leaves"
