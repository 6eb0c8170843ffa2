"""A step of a learner: how arguments are written, what stands for links, how pushes are collected.

A step is the numbers that are free in its layout, as the dtype stores them. Networks are written from it
(constructions.learners), and all that is proven of them is proven from it. Every layout is the same three things, some
of them trivial:

    direct        the argument w . x_i - y_i itself is collected, with a signed average
    transformer   arguments are *written* (lemmas.learners.score), then a head or a grid is read, then as above
    sequence      a head or a grid reads the dot product w . x_i as a logit, and pushes are averaged as they are
    many          as in a transformer, w and -w being two registers, and links being those of the prompt's rows

Whoever asks for a link sees anchors that are not meant for it, and tokens that are none: these are *lowered*, and must
be out of reach wherever the others may be asked (`_lowered`). All else that a layout rests on holds whatever the free
numbers are: it is said where the layout is written down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.targets import Expression
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import named_loss
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.links import Anchors, GridLink, HeadLink, Link, NoHead, label_link
from anchorhead.lemmas.learners.own_anchors import SequenceStep, pieces_of
from anchorhead.lemmas.learners.score import Scoring
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic, arithmetic_of
from anchorhead.proof.arithmetic.silence import SILENT, out_of_reach, rounding_of
from anchorhead.proof.enclosures.ranges import CellRanges
from anchorhead.proof.heads.link_heads import LinkFacts

Array = Float[np.ndarray, " n"]
Carriers = Literal["one", "each", "pair"]
"""Which tokens carry w: one state; a register for each example; two registers, of w and -w."""
OUT_OF_REACH = 2.0**20
"""By how much tokens that are no anchors, or no examples, are lowered at least."""
OF_MANY = 2.0**40
"""A score so large that anchors of other links come within reach there."""
ROOM = 2.0**16
"""How far logits stay from overflow."""
PRODUCTS = 4
"""Of how many products a logit of a score is the sum: with its slope, offset and gate."""
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
    """

    links: tuple[Link, ...]
    collect: Average | SequenceStep
    scoring: Scoring | None
    residual: bool = True
    labelled: bool = False
    carriers: Carriers = "one"

    @property
    def ranged(self) -> bool:
        """Whether heads are proven on the range of a path, and not on the one that was stated."""
        return self.carriers != "one"

    @property
    def dots(self) -> bool:
        """Whether what is collected are dot products with w."""
        return self.carriers == "one" and self.scoring is None

    def head(self, number: int, low: float, high: float, terms: float, y: float, model: Arithmetic) -> HeadAt:
        """Of a loss's link, for arguments in [low, high] whose terms add up to at most `terms`, and |y| at most y."""
        return HeadAt(self.links[number].facts, 0.0)

    @property
    def straight(self) -> bool:
        """Whether the second derivative is the same all along the path, and not below 0."""
        return all(link.straight for link in self.links)


@dataclass(frozen=True, eq=False)
class ScoreLinks(Step):
    """Heads ask with scores, numbers of their own; far: by how much anchors that are not meant are lowered."""

    links: tuple[HeadLink | GridLink, ...]
    collect: Average
    scoring: Scoring
    far: float = math.inf

    def alone(self, score: float, model: Arithmetic) -> bool:
        """Whether anchors that are not meant are out of reach up to this |score|."""
        return _lowered(max(link.logits(score) for link in self.links), self.far, PRODUCTS, model)

    @cached_property
    def hidden(self) -> bool:
        """Whether tokens that are lowered by OUT_OF_REACH alone are out of reach, as they are among many learners.

        Those that are no anchors have slope 0. At every score some anchor of every part does not fall, and answers with
        its offset at least. Those that are no examples have the score 0, and a mean of values for a link, which the
        largest sharpness multiplies; examples answer with logits of at least -1 (lemmas.learners.average).
        """
        parts = [part for link in self.links if isinstance(link, HeadLink) for part in link.parts]
        sides = [part.offsets[side * part.slopes >= 0] for part in parts for side in (-1, 1)]
        heard = all(side.max(initial=-np.inf) >= 2 * SILENT - OUT_OF_REACH for side in sides)
        read = 1.01 * max(self.collect.sharpness) * sum(link.largest for link in self.links)
        return heard and read <= OUT_OF_REACH - 2 * SILENT

    def head(self, number: int, low: float, high: float, terms: float, y: float, model: Arithmetic) -> HeadAt:
        link = self.links[number]
        if self.ranged and not self.hidden:
            raise CertificateError(
                "values or offsets of links are so large that tokens which are no anchors, or no examples, come within "
                "reach: build with a smaller reach"
            )
        served = not self.ranged or self.alone(max(-low, high), model)
        if not served or (isinstance(link, GridLink) and not y <= link.labels):
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
    """Logits are dot products, so what their terms add up to counts; others' logits must stay out of reach.

    labels   the parts of a head for y, where that is taken off the link
    """

    links: tuple[HeadLink | GridLink, ...]
    collect: SequenceStep
    labels: tuple[Part, ...] = ()

    def head(self, number: int, low: float, high: float, terms: float, y: float, model: Arithmetic) -> HeadAt:
        step, link = self.collect, self.links[number]
        logits = step.steepest * terms * (1 + 1e-6) + step.highest
        alone = _lowered(logits, step.reach, step.terms + step.gates, model)
        if not alone or (isinstance(link, GridLink) and not y <= link.labels):
            return HeadAt(NOWHERE, math.inf)
        facts = link.facts
        low, high = max(low, facts.low), min(high, facts.high)
        if not low < high:
            return HeadAt(NOWHERE, math.inf)
        exact, size = facts.error, facts.size
        # a term is a product of a slope and an entry, then of that and w, then a part of a sum
        roundings = step.terms + 1
        rounding = link.rounding(low, high, terms, roundings, model)
        if self.labels:
            label = label_link(self.labels, y)
            exact, size = exact + label.facts.error, size + label.high
            rounding += label.rounding(label.low, label.high, label.high, roundings, model)
        count = len(step.pieces)
        reads = size + exact + rounding if count - len(self.labels) == 1 else 1.01 * step.largest
        rounding = (rounding + 1.01 * model.unit * step.largest + float(model.gamma(count - 1)) * reads) * UP
        least, slope = (float(end[0]) for end in link.cells.between(np.array([low]), np.array([high])))
        return HeadAt(LinkFacts(exact * UP, least, slope, facts.size, low, high), rounding)


def _lowered(logits: float, far: float, products: int, model: Arithmetic) -> bool:
    """Whether logits of at most this size that are lowered by `far`, perhaps more than once, are out of reach of those
    that are not; and none overflows."""
    least, most = -logits - rounding_of(logits, products, model), logits - far
    fits = logits + far <= float(np.finfo(model.dtype).max) / ROOM
    return bool(fits and out_of_reach(most + rounding_of(logits + far, products, model), least))


def squared_step(collect: Average) -> Step:
    """Of a descent on the squared loss in the direct layout."""
    return Step((NoHead(),), collect, None)


def linked_step(
    target: Descent, held: Anchors, far: float, scoring: Scoring, collect: Average, dtype: str
) -> ScoreLinks:
    """Of a descent in the transformer layout; CertificateError where `far` is too near for the scores that may be."""
    residual, labelled = (target.loss.form == form for form in ("phi(s - y)", "phi(s) - y"))
    step = ScoreLinks((link_of(target, held),), collect, scoring, residual, labelled, far=far)
    if not step.alone(scoring.most, arithmetic_of(dtype)):
        raise CertificateError(f"anchors that are lowered by {far:g} are within reach of scores up to {scoring.most:g}")
    return step


def sequence_step(target: Descent, held: Anchors, labels: tuple[Part, ...], reach: float, dtype: str) -> SequenceLinks:
    """Of a descent in the sequence layout; labels: the parts of a head for y, where that is taken off the link."""
    form = target.loss.form
    residual, labelled = form == "phi(s - y)", form == "phi(s) - y"
    if target.threshold:
        raise CertificateError("no threshold is computed in a sequence")
    if bool(labels) != labelled:
        raise CertificateError(f"a head for labels belongs to links of the form phi(s) - y, and to no others: {form}")
    collect = SequenceStep.of(target, pieces_of(form, held, labels), reach, dtype)
    return SequenceLinks((link_of(target, held),), collect, None, residual, labelled, "each", labels)


def many_step(target: ManyLearners, held: Sequence[tuple[Part, ...]], sharpness: float, dtype: str) -> ScoreLinks:
    """Of a network of many learners, from the parts of each link; sharpness: of scores and of what is collected."""
    links = tuple(_head_link(loss.link, parts) for loss, parts in zip(target.losses, held, strict=True))
    steepest = max(1.0, *(float(np.abs(part.slopes).max()) for link in links for part in link.parts))
    scoring = Scoring.of(2 * sharpness, dtype, taken=True)
    collect = Average.of(unit_descent(target), sharpness, dtype)
    far = 2.0 ** math.ceil(math.log2(steepest)) * OF_MANY
    return ScoreLinks(links, collect, scoring, True, True, "pair", far)


def unit_descent(target: ManyLearners) -> Descent:
    """What a step of many learners is: rates are in the rows, and the update is the mean itself."""
    return Descent(named_loss("squared"), target.steps, 1.0, target.weights)


def link_of(target: Descent, held: Anchors) -> HeadLink | GridLink:
    """What stands for the link of a descent, where it is to serve."""
    loss, (low, high) = target.loss, target.scores or (-math.inf, math.inf)
    if isinstance(held, GridAtom) != (loss.form == "g(s, y)"):
        raise CertificateError(f"a grid for a link of one variable, or none for two: {loss.link}")
    if not isinstance(held, GridAtom):
        return _head_link(loss.link, held, low, high)
    if target.scores is None or target.labels is None:
        raise CertificateError(f"the link {loss.link} goes with scores and labels that are stated")
    return GridLink(loss.link, held, low, high, target.labels)


def _head_link(phi: Expression, parts: tuple[Part, ...], low: float = -math.inf, high: float = math.inf) -> HeadLink:
    if not parts or not all(map(len, parts)):
        raise CertificateError(f"a part of the link {phi} has no anchors")
    return HeadLink(phi, parts, low, high)
