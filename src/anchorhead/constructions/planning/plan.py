"""Sizes of every way to build a network, before anything is built.

Building climbs a ladder of ever finer heads, has the layers of each rung drafted and then made, and stops at the first
network that is proven within the error. A plan climbs the same ladder and counts the same drafts, with bounds that are
never below what is proven, so it stops there or further on; of all rungs up to its own it gives the largest numbers. No
network that is built exceeds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from textwrap import fill
from typing import Literal

import numpy as np

from anchorhead.as_html import block, table
from anchorhead.constructions.build_request import FORMS, LAYOUTS, PLACEMENTS, BuildRequest, Form, Layout, Placement
from anchorhead.constructions.causal import require_causal
from anchorhead.constructions.layouts.draft import Draft, counted
from anchorhead.constructions.layouts.laid_out import FAR, out_of_reach
from anchorhead.constructions.layouts.neurons import Laid
from anchorhead.constructions.passes.layout import drafted
from anchorhead.constructions.passes.run import Tries
from anchorhead.constructions.planning.estimated_bound import estimated_bound
from anchorhead.constructions.planning.plan_tables import WIDTH, csv_table, html_table, latex_table, listed, text_table
from anchorhead.constructions.planning.uniform_estimates import UniformEstimate, UniformEstimates
from anchorhead.constructions.representable import points_of, require_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.language.targets.merge import merged
from anchorhead.language.targets.mlp import Mlp
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.statement import stated_bound

SMALLEST = 1e-20
"""Below, no dtype reaches anything, and uniform anchors are more than numbers can count."""

LOOSEST = 3.0
"""Of solved anchors what is foreseen is less than so many times what is proven: on rungs that exceed it, building goes
on to the next."""


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
    bound          what will be proven at most; where `within` is out of reach, the best that could be
    multiply_adds  for one input sequence; keys and values of registers, the same for every input, are left out
    reachable      whether building is sure to succeed; where it is not, `note` says why
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


def plan_network(
    target: Mlp, on: Box, withins: Sequence[float], request: BuildRequest, shapes: ActivationHeads | None = None
) -> Plan:
    """The sizes of all networks that could be built of a target within each of these errors.

    shapes  which heads stand in for activations; by default those that are proven, each error anew
    """
    dtype, causal = request.dtype, request.causal
    check_request(withins, dtype)
    if causal:
        require_causal(target)
    hidden = len(merged(target)[0])
    if hidden:
        require_representable(max(withins), target.values(points_of(on, target.input_shape)), dtype)
    forms = FORMS if hidden == 1 else ("deep",)
    layouts = ("transformer",) if causal else LAYOUTS
    if not hidden and (target.tokens or 1) > 1:
        layouts = ("sequence",)
    rows = []
    for within in sorted(set(withins), reverse=True):
        # every error has tries of its own, because building starts with nothing: heads that are solved anew depend
        # on those that were solved before
        placed = {
            "solved": Tries(target, on, within, shapes or ActivationHeads(dtype, "solved", request.progress)),
            "uniform": Tries(target, on, within, UniformEstimates(dtype)),
        }
        rows += [
            _row(placed[placement], replace(request, form=form, layout=layout, placement=placement))
            for form in forms
            for layout in layouts
            for placement in PLACEMENTS
        ]
    return Plan(str(target), on, dtype, tuple(rows))


def check_request(withins: Sequence[float], dtype: Dtype) -> None:
    require_model(dtype)
    if min(withins) < SMALLEST:
        raise AnchorheadError(f"within={min(withins):g}: errors of at least {SMALLEST:g} are planned for")


@dataclass(frozen=True)
class _Sizes:
    """Of one network, or the largest numbers of several: see Row."""

    layers: int
    heads: int
    anchors: int
    keys: int
    beta: float | None
    parameters: int
    largest_logit: float
    multiply_adds: int

    @classmethod
    def of(cls, laid: Laid, drafts: Sequence[Draft], tokens: int) -> _Sizes:
        """The sizes of the network that would be built of these drafts."""
        shapes = laid.shapes
        betas = [shape.beta for shape in shapes if isinstance(shape, UniformEstimate)]
        # two things can put an anchor out of reach at once: its own offset, and a gate
        logit = laid.largest_logit + 2 * out_of_reach(laid.largest_logit)
        return cls(
            anchors=max((max(shape.lengths) for shape in shapes), default=0),
            beta=max(betas, default=None),
            largest_logit=max(logit, 2 * FAR) if shapes else 2 * FAR,
            **asdict(counted(drafts, tokens)),
        )

    def joined(self, other: _Sizes) -> _Sizes:
        """The larger number of each."""
        pairs = [(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)]
        return _Sizes(*(two if one is None else one if two is None else max(one, two) for one, two in pairs))


def _row(tries: Tries, request: BuildRequest) -> Row:
    target, tokens = tries.target, tries.target.tokens or 1
    sizes: _Sizes | None = None
    reached, best = 0.0, np.inf
    for laid in tries:
        drafts = drafted(laid, target, request)
        bound = estimated_bound(laid, drafts, tries.sources, tokens, request)
        best = min(best, bound)
        refused = next((one.refused for one in laid.shapes if isinstance(one, UniformEstimate) and one.refused), "")
        if not refused and request.placement == "solved" and bound > LOOSEST * tries.within:
            continue
        # building may stop at an earlier rung than this plan, with any bound up to `within`
        reached = max(reached, min(bound, tries.within))
        more = _Sizes.of(laid, drafts, tokens)
        sizes = more if sizes is None else sizes.joined(more)
        if refused:
            return _made(tries, request, sizes, bound, False, refused)
        if bound <= tries.within:
            return _made(tries, request, sizes, reached, True, "")
    return _made(tries, request, None, best, False, _out_of_reach(tries, request, best))


def _made(tries: Tries, request: BuildRequest, sizes: _Sizes | None, bound: float, reachable: bool, note: str) -> Row:
    known: dict[str, float | int | None] = dict.fromkeys(_Sizes.__dataclass_fields__) if sizes is None else vars(sizes)
    return Row(
        within=tries.within,
        form=request.form,  # type: ignore[arg-type]
        layout=request.layout,  # type: ignore[arg-type]
        placement=request.placement,
        bound=stated_bound(bound, tries.within),
        reachable=reachable,
        note=note,
        **known,  # type: ignore[arg-type]
    )


def _out_of_reach(tries: Tries, request: BuildRequest, best: float) -> str:
    if not np.isfinite(best):
        return "not known before it is built" if tries.ended is None else str(tries.ended)
    if best <= LOOSEST * tries.within:
        return "perhaps out of reach: the bound is the best that can be promised"
    return f"out of reach: the bound is what rounding in {request.dtype} leaves"
