"""What a plan is: a row for each way to build a network, with its sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

from anchorhead.as_html import block, table
from anchorhead.constructions.build_request import BuildRequest, Form, Layout, Placement
from anchorhead.constructions.planning.plan_tables import WIDTH, csv_table, html_table, latex_table, listed, text_table
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.heads.atom import Dtype
from anchorhead.language.targets.descent import LearnerLayout
from anchorhead.proof.arithmetic.arithmetic import require_model
from anchorhead.proof.statement import stated_bound

SMALLEST = 1e-20
"""Below, no dtype reaches anything, and uniform anchors are more than numbers can count."""


@dataclass(frozen=True)
class Row:
    """One way to build the target within an error. What is None is not known, because nothing can be built, or not
    counted.

    within         the error asked for; None where none was
    form           as in ah.convert; "head": one head; "learner": layers that are run over and over
    placement      of anchors: solved for, even, or given by the target itself
    layers         Embed, Linear, Attention and Softmax
    heads          of all attention layers, those that gather the sequence included, and the groups of a Softmax
    anchors        of one softmax, at most: the paper's p
    keys           over how many tokens, or logits of a group, one softmax runs
    beta           the paper's inverse temperature, where its anchors are used
    parameters     numbers that are stored
    largest_logit  a bound on every |logit|, of anchors and of what is put out of reach
    bound          what a proof is expected to find; where `within` is out of reach, the best that could be;
                   None where the proof alone will say
    multiply_adds  for one input sequence; keys and values of registers, the same for every input, are left out
    reachable      whether building is expected to succeed; where it is not, `note` says why
    """

    within: float | None
    form: Form | Literal["head", "learner"]
    layout: Layout | LearnerLayout
    placement: Placement | Literal["given"]
    layers: int | None
    heads: int | None
    anchors: int | None
    keys: int | None
    beta: float | None
    parameters: int | None
    largest_logit: float | None
    bound: float | None
    multiply_adds: int | None
    reachable: bool
    note: str


@dataclass(frozen=True)
class Plan:
    """Rows for ever smaller errors; within an error, all forms, layouts and placements.

    on     the box of inputs; None where there is none, since any prompt is served
    found  of expressions: every term, and what it becomes
    where  of expressions: the variables and their intervals
    """

    target: str
    on: Box | None
    dtype: Dtype
    rows: tuple[Row, ...]
    found: tuple[tuple[str, str], ...] = ()
    where: str = ""

    def __str__(self) -> str:
        title = fill(f"{self.title}: sizes before building", WIDTH, subsequent_indent="  ")
        return "\n\n".join([title, *listed(self.found), text_table(self.rows)])

    def _repr_html_(self) -> str:
        found = table(("term", "becomes"), self.found) if self.found else ""
        return block(f"{self.title}: sizes before building", found, html_table(self.rows))

    @property
    def title(self) -> str:
        """What is planned, where, and in which dtype."""
        return f"{self.target}{self.place and ' '}{self.place}, in {self.dtype}"

    @property
    def place(self) -> str:
        """The variables and their intervals, or the box; nothing where there is none."""
        if self.where:
            return f"for {self.where}"
        return "" if self.on is None else f"on {self.on}"

    def to_csv(self) -> str:
        """All digits, a line for each row; what is not known is empty."""
        return csv_table(self.rows)

    def to_latex(self) -> str:
        """A tabular in the style of booktabs."""
        return latex_table(self.rows)


def check_request(withins: Sequence[float] | None, dtype: Dtype) -> list[float]:
    """The errors asked for, each once, the largest first."""
    require_model(dtype)
    if withins is None:
        raise AnchorheadError("within is missing: the error asked for, or several, as in within=[1e-2, 1e-4]")
    if min(withins) < SMALLEST:
        raise AnchorheadError(f"within={min(withins):g}: errors of at least {SMALLEST:g} are planned for")
    return sorted(set(withins), reverse=True)


def beside(solved: Sequence[Row], even: Sequence[Row]) -> list[Row]:
    """The rows of two placements, side by side where they are of the same forms and layouts."""
    ways = [[(row.form, row.layout) for row in rows] for rows in (solved, even)]
    if ways[0] != ways[1]:
        return [*solved, *even]
    return [row for pair in zip(solved, even, strict=True) for row in pair]


def row_of(
    request: BuildRequest, bound: float | None, sizes: Mapping[str, Any], reachable: bool, note: str, **words: Any
) -> Row:
    """A row of what is asked for, without a form one head; sizes that are not known are left out.

    words   form, layout and placement, where they are none that can be asked for
    """
    names = ("layers", "heads", "anchors", "keys", "beta", "parameters", "largest_logit", "multiply_adds")
    asked = {
        "form": request.form or "head",
        "layout": request.layout or "transformer",
        "placement": request.placement,
        **{name: sizes.get(name) for name in names},
        **words,
    }
    stated = bound if bound is None or request.within is None else stated_bound(bound, request.within)
    return Row(within=request.within, bound=stated, reachable=reachable, note=note, **asked)
