"""Sizes of every way to build a network, before anything is built.

Building walks a ladder of ever finer heads and stops at the first network that is proven within the error. A plan walks
the same ladder with bounds that are never below what is proven, so it stops there or further on; of all rungs up to its
own it gives the largest numbers. No network that is built exceeds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import Literal

import numpy as np

from anchorhead.as_html import block, table
from anchorhead.constructions.budgets import budgets
from anchorhead.constructions.build_options import FORMS, LAYOUTS, PLACEMENTS, BuildOptions, Form, Layout
from anchorhead.constructions.causal import require_causal
from anchorhead.constructions.mlp import MARGIN, inputs_of
from anchorhead.constructions.neuron_layers import Laid, laid_out, shaped
from anchorhead.constructions.planning.estimated_bound import estimated_bound
from anchorhead.constructions.planning.plan_tables import WIDTH, csv_table, html_table, latex_table, listed, text_table
from anchorhead.constructions.planning.sizes import Sizes, sizes_of
from anchorhead.constructions.planning.uniform_estimates import UniformEstimates
from anchorhead.constructions.representable import points_of, require_representable
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.constructions.single.head import Placement
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotDefined
from anchorhead.heads.atom import Dtype
from anchorhead.progress import Progress
from anchorhead.proof.arithmetic.affine_forms import Sources
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.heads.neurons import Layer
from anchorhead.proof.statement import stated_bound
from anchorhead.targets.mlp import Affine, Mlp, merged

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


def plan(
    target: Mlp,
    on: Box,
    withins: Sequence[float],
    dtype: Dtype,
    causal: bool = False,
    progress: Progress | None = None,
    shapes: ActivationHeads | None = None,
) -> Plan:
    """The sizes of all networks that could be built of a target within each of these errors.

    shapes  which heads stand in for activations; by default those that are proven, each error anew
    """
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
        ladders = {
            placement: Ladder(target, on, within, dtype, placement, progress, shapes) for placement in PLACEMENTS
        }
        rows += [
            _row(ladders[placement], BuildOptions(form, layout, placement, dtype, causal))
            for form in forms
            for layout in layouts
            for placement in PLACEMENTS
        ]
    return Plan(str(target), on, dtype, tuple(rows))


def check_request(withins: Sequence[float], dtype: Dtype) -> None:
    require_model(dtype)
    if min(withins) < SMALLEST:
        raise AnchorheadError(f"within={min(withins):g}: errors of at least {SMALLEST:g} are planned for")


@dataclass(frozen=True, eq=False)
class Rung:
    """Heads for one share of the error, and why they cannot be built, if so."""

    layers: Sequence[Layer]
    readout: Affine
    laid: Laid
    refused: str


@dataclass(eq=False)
class Ladder:
    """The rungs that building tries, from coarse to fine, each found once; the same for all forms and layouts.

    Every error has a ladder of its own, because building starts with nothing: heads that are solved anew depend on
    those that were solved before.
    """

    target: Mlp
    on: Box
    within: float
    dtype: Dtype
    placement: Placement
    progress: Progress | None = None
    shapes: ActivationHeads | None = None
    ended: str = ""
    _found: list[Rung] = field(default_factory=list)
    _more: Iterator[Rung] | None = None

    @property
    def sources(self) -> Sources:
        return self._inputs[0]

    def __post_init__(self) -> None:
        self._inputs = inputs_of(self.target, self.on, self.dtype)

    def __iter__(self) -> Iterator[Rung]:
        if self._more is None:
            self._more = self._climbed()
        place = 0
        while True:
            if place == len(self._found):
                rung = next(self._more, None)
                if rung is None:
                    return
                self._found.append(rung)
            yield self._found[place]
            place += 1

    def _climbed(self) -> Iterator[Rung]:
        sources, middle = self._inputs
        margin = MARGIN[self.dtype]
        if self.placement == "uniform":
            chooser: ActivationHeads | UniformEstimates = UniformEstimates(self.dtype)
        else:
            chooser = self.shapes or ActivationHeads(self.dtype, self.placement, self.progress)
        tried: set[tuple[int, ...]] = set()
        try:
            for budget in budgets(self.target, sources, self.within, margin, chooser):
                try:
                    layers, readout = shaped(self.target, sources, budget, margin, chooser.choose)
                except NotDefined as error:
                    self.ended = str(error)
                    continue
                these = tuple(id(shape) for layer in layers for shape in layer.shapes)
                if these in tried:
                    continue
                tried.add(these)
                laid = laid_out(layers, readout, sources, middle)
                yield Rung(layers, readout, laid, chooser.refused if isinstance(chooser, UniformEstimates) else "")
        except AnchorheadError as error:
            self.ended = str(error)


def _row(ladder: Ladder, options: BuildOptions) -> Row:
    tokens = ladder.target.tokens or 1
    sizes: Sizes | None = None
    reached, best = 0.0, np.inf
    for rung in ladder:
        with np.errstate(over="ignore", invalid="ignore"):
            bound = estimated_bound(rung.layers, rung.readout, rung.laid, ladder.sources, tokens, options)
        best = min(best, bound)
        if not rung.refused and options.placement == "solved" and bound > LOOSEST * ladder.within:
            continue
        # building may stop at an earlier rung than this plan, with any bound up to `within`
        reached = max(reached, min(bound, ladder.within))
        more = sizes_of(rung.laid, tokens, options)
        sizes = more if sizes is None else sizes.joined(more)
        if rung.refused:
            return _made(ladder, options, sizes, bound, False, rung.refused)
        if bound <= ladder.within:
            return _made(ladder, options, sizes, reached, True, "")
    return _made(ladder, options, None, best, False, _out_of_reach(ladder, options, best))


def _made(ladder: Ladder, options: BuildOptions, sizes: Sizes | None, bound: float, reachable: bool, note: str) -> Row:
    known: dict[str, float | int | None] = dict.fromkeys(Sizes.__dataclass_fields__) if sizes is None else vars(sizes)
    return Row(
        within=ladder.within,
        form=options.form,
        layout=options.layout,
        placement=options.placement,
        bound=stated_bound(bound, ladder.within),
        reachable=reachable,
        note=note,
        **known,  # type: ignore[arg-type]
    )


def _out_of_reach(ladder: Ladder, options: BuildOptions, best: float) -> str:
    if not np.isfinite(best):
        return ladder.ended or "not known before it is built"
    if best <= LOOSEST * ladder.within:
        return "perhaps out of reach: the bound is the best that can be promised"
    return f"out of reach: the bound is what rounding in {options.dtype} leaves"
