"""A step of a learner as the proof sees it: how arguments are written, what stands for links, how pushes are collected.

Every layout is the same three things, some of them trivial:

    direct        the argument w . x_i - y_i itself is collected, with a signed average
    transformer   arguments are *written* (lemmas.learners.score), then a head or a grid is read, then as above
    sequence      a head or a grid reads the dot product w . x_i as a logit, and pushes are averaged as they are
    many          as in a transformer, w and -w being two registers, and links being those of the prompt's rows
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from jaxtyping import Float

from anchorhead.heads.atom import Dtype
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.lemmas.learners.average import Average, Moments
from anchorhead.lemmas.learners.body import read_body
from anchorhead.lemmas.learners.links import GridLink, HeadLink, Link, NoHead, label_link
from anchorhead.lemmas.learners.loop import StepError
from anchorhead.lemmas.learners.own_anchors import SequenceStep, read_sequence
from anchorhead.lemmas.learners.reading import Shown, dtype_of, refuse, require
from anchorhead.lemmas.learners.score import Scoring
from anchorhead.lemmas.learners.update import Update
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic
from anchorhead.proof.arithmetic.silence import out_of_reach, rounding_of
from anchorhead.proof.enclosures.ranges import CellRanges
from anchorhead.proof.heads.link_heads import LinkFacts

Array = Float[np.ndarray, " n"]
Carriers = Literal["one", "each", "pair"]
"""Which tokens carry w: one state; a register for each example; two registers, of w and -w."""
NOWHERE = LinkFacts(math.inf, -math.inf, math.inf, math.inf, math.inf, -math.inf)


@dataclass(frozen=True, eq=False)
class HeadAt:
    """What holds of a link's head: what is read is within facts.error + rounding of the link on the range of facts.

    cells   bounds on the link's slopes on cells of that range, if it is worth while; else those of the facts hold
    """

    facts: LinkFacts
    rounding: float
    cells: CellRanges | None = None

    def between(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Bounds on the link's slopes over [low_i, high_i]."""
        if self.cells is not None:
            return self.cells.between(low, high)
        return np.full_like(low, self.facts.least), np.full_like(low, self.facts.slope)


@dataclass(frozen=True, eq=False)
class Step:
    """The step of a learner in the direct layout, and what all others have in common.

    links      what stands for the link of each loss
    collect    how what links push becomes a step
    scoring    how arguments are written, where they are
    residual   whether labels are a part of arguments; labelled: whether they are taken from links
    ranged     whether heads are proven on the range of a path, and not on the one that was stated
    dots       whether what is collected are dot products with w
    """

    links: tuple[Link, ...]
    collect: Average | SequenceStep
    scoring: Scoring | None = None
    residual: bool = True
    labelled: bool = False
    carriers: Carriers = "one"
    ranged: bool = False
    dots: bool = True

    def head(self, number: int, low: float, high: float, terms: float, y: float, model: Arithmetic) -> HeadAt:
        """Of a loss's link, for arguments in [low, high] whose terms add up to at most `terms`, and |y| at most y."""
        return HeadAt(self.links[number].facts, 0.0)

    def errors(
        self, target: Descent, at: Callable[[Any], Moments], wrong: Any, rounding: Any, model: Arithmetic
    ) -> tuple[StepError, StepError]:
        """What a step errs by where links are wrong by so much, and where they are wrong by rounding alone.

        at   what is known of the prompt there, if links are wrong by a given amount
        """
        every = self.collect.error(target, at(wrong), model)
        if np.array_equal(wrong, rounding):
            return every, every
        return every, self.collect.error(target, at(rounding), model)

    @property
    def straight(self) -> bool:
        """Whether the second derivative is the same all along the path, and not below 0."""
        return all(link.straight for link in self.links)


@dataclass(frozen=True, eq=False)
class ScoreLinks(Step):
    """Heads ask with scores, numbers of their own; most: |score| up to which others' anchors are out of reach."""

    most: float = math.inf

    def head(self, number: int, low: float, high: float, terms: float, y: float, model: Arithmetic) -> HeadAt:
        link = cast(HeadLink | GridLink, self.links[number])
        if not max(-low, high) <= self.most or (isinstance(link, GridLink) and not y <= link.labels):
            return HeadAt(NOWHERE, math.inf)
        if isinstance(link, HeadLink):
            facts, product = link.facts_on(low, high) if self.ranged else link.facts, 0.0
        else:
            facts, product = link.facts, 1.01 * model.unit * link.largest
        ends = (low, high) if self.ranged else (facts.low, facts.high)
        reading = link.rounding(*ends, 0.0, 0, model) + product
        # what parts read is added up with what is taken off, in any order
        read = facts.size + facts.error + reading + (y if self.labelled else 0.0)
        rounding = (reading + float(model.gamma(link.count + 1)) * read) * UP + 4 * model.tiny
        if not self.ranged:
            return HeadAt(facts, rounding, link.cells)
        return HeadAt(replace(facts, low=max(low, facts.low), high=min(high, facts.high)), rounding)


@dataclass(frozen=True, eq=False)
class SequenceLinks(Step):
    """Logits are dot products, so what their terms add up to counts; others' logits must stay out of reach."""

    def head(self, number: int, low: float, high: float, terms: float, y: float, model: Arithmetic) -> HeadAt:
        step, link = cast(SequenceStep, self.collect), cast(HeadLink | GridLink, self.links[number])
        if (isinstance(link, GridLink) and not y <= link.labels) or not self._alone(step, terms, model):
            return HeadAt(NOWHERE, math.inf)
        facts = link.facts
        low, high = max(low, facts.low), min(high, facts.high)
        if not low < high:
            return HeadAt(NOWHERE, math.inf)
        exact, size = facts.error, facts.size
        # a term is a product of a slope and an entry, then of that and w, then a part of a sum
        roundings = step.terms + 1
        rounding = link.rounding(low, high, terms, roundings, model)
        parts = [piece.on_argument() for piece in step.pieces if not piece.of_score.any()]
        if parts:
            label = label_link(parts, y)
            exact, size = exact + label.facts.error, size + label.high
            rounding += label.rounding(label.low, label.high, label.high, roundings, model)
        count = len(step.pieces)
        reads = size + exact + rounding if count - len(parts) == 1 else 1.01 * step.largest
        rounding = (rounding + 1.01 * model.unit * step.largest + float(model.gamma(count - 1)) * reads) * UP
        least, slope = link.slopes_on(low, high)
        return HeadAt(LinkFacts(exact * UP, least, slope, facts.size, low, high), rounding)

    def _alone(self, step: SequenceStep, terms: float, model: Arithmetic) -> bool:
        """Whether the logits of others, lowered by the reach perhaps more than once, are out of reach."""
        logits = step.steepest * terms * (1 + 1e-6) + step.highest
        least, most = -logits - rounding_of(logits, step.products, model), logits - step.reach
        return bool(out_of_reach(most + rounding_of(logits + step.reach, step.products, model), least))


def read(network: Network, target: Descent) -> Step:
    """The step of a learner, if its network makes steps of its target; CertificateError otherwise."""
    form, loss = target.loss.form, target.loss
    residual, labelled = form == "phi(s - y)", form == "phi(s) - y"
    low, high = target.scores or (-math.inf, math.inf)
    if form == "g(s, y)" and (target.scores is None or target.labels is None):
        refuse("a link of two variables goes with scores and labels that are stated")
    shown = _shown(target)
    if network.embed.tokens is not None:
        step = read_sequence(network, target, shown.x)
        return SequenceLinks(
            (_link_of(step, target, low, high, dtype_of(network)),), step, None, residual, labelled, "each", True, False
        )
    shrinks = target.features if target.threshold else 0
    body = read_body(network, shown, target.steps, target.weights, shrinks, bool(target.momentum))
    if body.scoring is None:
        require(loss.name == "squared", "residuals are collected as they are")
        return Step((NoHead(),), body.collect)
    (held,) = body.links
    require(isinstance(held, GridAtom) == (form == "g(s, y)"), "a grid for a link of one variable, or none for two")
    require(body.scoring.most <= body.most, "what is not meant for a row is not out of its reach")
    link = (
        GridLink(loss.link, held, low, high, target.labels or 0.0)
        if isinstance(held, GridAtom)
        else HeadLink(loss.link, held, low, high)
    )
    return ScoreLinks((link,), body.collect, body.scoring, residual, labelled, dots=False)


def _shown(target: Descent) -> Shown:
    """What prompts of examples show: (x, 1, y) and its negative, for losses of the margin (y x, y, 1)."""
    d, form = target.features, target.loss.form
    mark, label = d + (form == "y phi(y s)"), d + 1
    x = (*range(d), *([d] if target.intercept else []))
    taken = (None, label if form == "phi(s) - y" else None)
    return Shown(d + 2, ({mark: 1.0}, {mark: -1.0}), 1, x, x, label, taken, form == "phi(s - y)")


def _link_of(step: SequenceStep, target: Descent, low: float, high: float, dtype: Dtype) -> Link:
    """What stands for the link where anchors of each example do."""
    form, link = target.loss.form, target.loss.link
    mine, others = ([piece for piece in step.pieces if piece.of_score.any() == flag] for flag in (True, False))
    if bool(others) != (form == "phi(s) - y") or not mine:
        refuse(f"its parts for labels are not those of the form {form}")
    if form == "g(s, y)":
        require(len(mine) == 1, "its link is not one grid")
        return GridLink(link, mine[0].on_grid(dtype), low, high, target.labels or 0.0)
    if any((piece.of_label != (-1.0 if form == "phi(s - y)" else 0.0) * piece.of_score).any() for piece in mine):
        refuse(f"its parts are not those of a link of the form {form}")
    return HeadLink(link, tuple(piece.on_argument() for piece in mine), low, high)


def read_many(network: Network, target: ManyLearners) -> Step:
    """The step of a network of many learners, whose update is the mean itself. A row (x, v, a, b, flags) takes part
    with the link of its flag; the row of the start shows nothing but v."""
    c, losses = target.columns, len(target.losses)
    flags = range(c.flags.start, c.flags.stop)
    none = {**dict.fromkeys(flags, 0.0), c.start: 0.0, c.no_example: 0.0}
    rows = [{**none, flag: 1.0} for flag in flags]
    empty = dict.fromkeys((*range(c.x.start, c.x.stop), c.a, c.b), 0.0)
    rows += [{**none, **empty, c.start: sign, c.no_example: 1.0} for sign in (1.0, -1.0)]
    x, v = (tuple(range(one.start, one.stop)) for one in (c.x, c.v))
    body = read_body(
        network, Shown(c.count, tuple(rows), losses, x, v, c.b, (c.a, c.b)), target.steps, target.weights, 0, False
    )
    if body.scoring is None or body.collect.update != Update((1.0,) * len(x), 0.0, (0.0,) * len(x)):
        refuse("its update is not the mean of what rows push")
    links = tuple(
        HeadLink(loss.link, held)
        for loss, held in zip(target.losses, body.links, strict=True)
        if not isinstance(held, GridAtom)
    )
    require(len(links) == losses, "a link of many learners is a grid")
    return ScoreLinks(links, body.collect, body.scoring, True, True, "pair", True, False, body.most)
