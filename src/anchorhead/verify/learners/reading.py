"""A step of a learner, read from the layers of its network: which lemmas explain what it makes of w.

    w' = kept w + momentum v + sum_a o_a (what head a reads),    and less a clip of each entry, if there is a threshold.

What a head reads is a signed average (average.py): those that it hears are the rows of examples, and no other token;
the logit of a row is h times its link, or times the argument w . a - y itself; its values are a; and at its negative
all of that has the other sign. Or it is a plain mean of what tokens hold that carry w, which read it from anchors of
examples of their own.

A link is what a row reads from anchors with its score (heads.py). What its negative reads is the mirror image, so that
it is -g where that of the row is g. A score is what a row reads from two tokens, the one that carries w, whose value is
1, and another one, whose value is -1: of logit 0, or one that carries the opposite of w (score.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.learners.average import Average, Mean
from anchorhead.verify.learners.body import Body
from anchorhead.verify.learners.heads import Heads, part_of
from anchorhead.verify.learners.held import ONE, Heard, Made, Read
from anchorhead.verify.learners.link import Link
from anchorhead.verify.learners.same import same
from anchorhead.verify.learners.score import Score
from anchorhead.verify.learners.shown import Row
from anchorhead.verify.learners.step import Step
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.learners.threshold import Clip
from anchorhead.verify.learners.update import update_of
from anchorhead.verify.rounding import SLACK, Arithmetic
from anchorhead.verify.scalar.part import Part

Anchors = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Slopes along the score (or the argument) and along the label, constants (anchors, n) and values."""


def alike(found: Sequence[Any], what: str) -> Any:
    """The first of some, which are all the same."""
    require(all(same(one, found[0]) for one in found), f"{what} are not all alike")
    return found[0]


class Reading:
    """Of a step; stated: the bound that is aimed at."""

    def __init__(self, body: Body, target: Descent, links: Sequence[Link], stated: float, model: Arithmetic) -> None:
        self.body, self.shown, self.target, self.links, self.model = body, body.shown, target, links, model
        self.aim = 0.01 * stated / (target.times * math.sqrt(target.size))

    def step(self) -> Step:
        body, shown = self.body, self.shown
        moved = [self._moved(which) for which in range(len(body.of_w))]
        kept, pulled, momentum, outputs, clip = alike([one[:-1] for one in moved], "tokens that carry w")
        update, clip = update_of(self.target, kept, pulled, momentum, len(outputs)), self._clip(clip)
        if not any(read.terms.any() for read, _ in moved[0][-1]):
            require(len(outputs) == len(moved) == 1 and clip is None, "a step of means has one head, and no threshold")
            return Step(
                Mean(outputs[0], len(body.carriers)), update, None, None, (self._pushed(*moved[0][-1][0]),), "each"
            )
        require(len(moved) == len(body.carriers) and not body.layers.quiet, "w is carried by other tokens")
        sharpness, links = alike([self._average(i, one[-1]) for i, one in enumerate(moved)], "tokens that carry w")
        average = Average(sharpness, outputs, 1 if links else self.target.size + 1)
        if not links:
            line = len(self.links) == 1 and self.links[0].form == "residual" and self.links[0].line == (1, 0)
            require(line and not shown.begin, "a step for residuals, and another link than s - y")
            return Step(average, update, clip)
        each = [self._linked(row, made) for (_, row), made in zip(shown.rows, links, strict=True)]
        heads = [Heads()] * len(self.links)
        for k in {k for k, _ in shown.rows}:
            own = [anchors for (its, _), (_, anchors) in zip(shown.rows, each, strict=True) if its == k]
            heads[k] = heads_of(alike(own, "what rows find, or their mirror images"), self.links[k], self.model)
            heads[k] = replace(heads[k], taken=shown.less is not None)
        score = alike([score for score, _ in each], "scores of rows")
        return Step(average, update, clip, score, tuple(heads), "pair" if shown.begin else "one")

    def _of(self, symbol: int) -> Made:
        if symbol not in self.body.symbols.made:
            raise NotVerified("a number of which it is not known what made it")
        return self.body.symbols.made[symbol]

    def _moved(self, which: int) -> tuple:
        """What becomes of w and v in tokens that carry this w: factors of w in both, that of v, those of what heads
        read, the anchors of a clip; and for each head what it reads, and which column of that for each entry."""
        body, w, v = self.body, self.body.of_w[which], self.body.of_v[which]
        tokens = [body.carriers[which]] if self.shown.begin else body.carriers
        end = body.end.at(*np.ix_(tokens, body.w + body.v))
        good = (end.number == 1).all() and (end.symbol == end.symbol[0]).all()
        require(bool(good), "what becomes of w is not known, or not the same in all that carry it")
        clips, factors, reads = [], [], []
        for symbol, of_w, of_v, tau in zip(
            end.symbol[0].tolist(), w + w, v + v or w, self.target.thresholds * 2, strict=False
        ):
            made = self._of(symbol)
            if tau is not None:
                require(not v, "with momentum and a threshold at once nothing is known")
                good = [number for number, *_ in made.reads] == [-1.0] and list(made.skip.values()) == [1.0]
                require(good, "an entry of w is not shrunk by a clip")
                ((_, read, c),), (inner,) = made.reads, made.skip
                clips.append(self._anchors(read, [c], [(inner, ONE)]))
                made = self._of(inner)
            require(set(made.skip) <= {of_w, of_v}, "w takes something else along")
            factors.append((made.skip.get(of_w, 0.0), made.skip.get(of_v, 0.0) if v else 0.0))
            reads.append(made.reads)
        heads = alike([[(number, read) for number, read, _ in one] for one in reads], "what entries of w read")
        columns = [[c for *_, c in one] for one in zip(*reads, strict=True)]
        good = all(each[len(w) :] == each[: len(v)] for each in columns) and columns
        require(bool(good), "w and v take different columns of what is read, or read nothing")
        found = [(read, each[: len(w)]) for (_, read), each in zip(heads, columns, strict=True)]
        kept, momentum = [one for one, _ in factors], alike([one for _, one in factors], "factors of v")
        numbers = tuple(number for number, _ in heads)
        return kept[: len(w)], kept[len(w) :], momentum, numbers, alike(clips, "clips") if clips else None, found

    def _clip(self, anchors: Anchors | None) -> Clip | None:
        shrunk = [one for one in self.target.thresholds if one is not None]
        if anchors is None:
            return None
        (slopes, _, constants, values), tau = anchors, float(shrunk[0])
        off = float(abs(shrunk[0] - Fraction(tau))) * SLACK
        return Clip(part_of(slopes, constants, values, self.model), tau, off, len(shrunk), self.aim)

    def _average(self, i: int, reads: Sequence[tuple[Read, list[int]]]) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Sharpnesses, and what carries the link of each sort of rows; nothing where logits are of arguments."""
        found, links, sign = [], [], (1.0, -1.0)[i]
        for read, columns in reads:
            require(read.keys.tolist() == list(range(len(self.shown.rows))), "w is read from other tokens")
            sharpness: set[float] = set()
            its: list[int] = []
            for k, (_, row) in enumerate(self.shown.rows):
                one = Heard(read, k)
                values = list(zip(one.values.number[0, columns], one.values.symbol[0, columns], strict=True))
                require(values == self.body.entries(row, self.shown.values), "w is moved by no examples")
                made = [s for s in one.holds[0, one.rest[0] != 0].tolist() if s in self.body.symbols.made][:1]
                its += made
                sharpness |= {sign * float(one.take(ONE, s)[0]) for s in made} or self._argument(one, row, i)
                one.done()
            good = len(sharpness) == 1 and min(sharpness) > 0 and len(its) in (0, len(self.shown.rows))
            require(good, "no signed average is read")
            found += sharpness
            links.append(tuple(its))
        return tuple(found), alike(links, "links that heads read")

    def _argument(self, one: Heard, row: Row, i: int, asks: bool = False, off: bool = True) -> set[float]:
        """The numbers h of a logit that is h times w . a, less what is taken off, w being asked with, or asked for."""
        pairs = list(zip(self.body.entries(row, self.shown.factors), self.body.of_w[i], strict=True))
        if off and self.shown.off is not None:
            n, s = self.body.entry(row, self.shown.off)
            pairs.append(((-n, s), ONE))
        return {n * float(one.take(*((s, w) if asks else (w, s)))[0]) for (n, s), w in pairs}

    def _linked(self, row: Row, symbol: int) -> tuple[Score, tuple[Anchors, ...]]:
        """The score of a sort of rows, and the anchors of its link, or their mirror image, as those of examples."""
        made, shown, body = self._of(symbol), self.shown, self.body
        less = {} if shown.less is None else {s: -n for n, s in [body.entry(row, shown.less)]}
        require(made.skip == less, "something else is taken off a link")
        scores, found, sign = set(), [], row[shown.factors[0]][0]
        label = () if shown.label is None else (body.entry(row, shown.label)[1], ONE)
        for number, read, c in made.reads:
            asked = set(read.asks.tolist()) & set(body.symbols.made)
            require(len(asked) == 1 and abs(number) == 1, "a link is read with another number than a score")
            scores |= asked
            slopes, labels, constants, values = self._anchors(read, [c], [(min(asked), ONE)], label)
            found.append((sign * slopes, labels, constants, sign * number * values))
        require(len(scores) == 1, "a link is read with several scores")
        return self._score(self._of(scores.pop()), row), tuple(found)

    def _anchors(
        self, read: Read, columns: Sequence[int], along: Sequence[tuple[int, ...]], label: tuple[int, ...] = (),
        units: Sequence[tuple[int, ...]] = ((ONE,),),
    ) -> Anchors:  # fmt: skip
        """Of a head whose logits are slopes times products of a quantity with one of some, all alike, and of a label;
        and in whose columns values are multiplied by one of some quantities."""
        heard, good = Heard(read), self.body.layers.single(read.keys.tolist())
        slopes = alike([heard.take(*one) for one in along], "slopes")
        labels, constants = heard.take(*label) if label else 0 * slopes, heard.constants()
        held = [read.values.at(slice(None), c) for c in columns]
        own = [np.isin(one.symbol, unit) | (one.number == 0) for one, unit in zip(held, units, strict=True)]
        require(good and bool(np.all(own)), "anchors hold other numbers than is meant, or are several tokens")
        return slopes, labels, constants, alike([one.number for one in held], "values of anchors")

    def _score(self, made: Made, row: Row) -> Score:
        shown, carriers, sharpness = self.shown, self.body.carriers, []
        off = {} if shown.off is None else {s: -n for n, s in [self.body.entry(row, shown.off)]}
        inside = shown.off is not None and not carriers[1:]  # what is taken off an argument is in its logits
        require(made.skip == ({} if inside else off), "something else is taken off a score")
        for _, read, c in made.reads:
            keys, values = read.keys, read.values.at(slice(None), c)
            tokens = dict(zip(values.number.tolist(), keys.tolist(), strict=True))
            good = len(keys) == 2 and set(tokens) == {1.0, -1.0} and (values.symbol == ONE).all()
            good = good and self.body.layers.single(keys.tolist()) and tokens[1.0] == carriers[0]
            require(bool(good) and carriers[1:] in ([], [tokens[-1.0]]), "a score is read from other tokens")
            up, down = (Heard(read, tokens[sign]) for sign in (1.0, -1.0))
            found = self._argument(up, row, 0, True, inside)
            found |= self._argument(down, row, 1, True, False) if carriers[1:] else set()
            require(len(found) == 1 and min(found) > 0, "a score is read of something else than w . a")
            up.done()
            down.done()
            sharpness.append(found.pop() * len(carriers))
        outputs = tuple(number for number, *_ in made.reads)
        return Score(tuple(sharpness), outputs, self.target.size + inside, bool(made.skip))

    def _pushed(self, read: Read, columns: list[int]) -> Heads:
        """Of a mean over all tokens that carry w: the heads of the link, which each of them reads from anchors of an
        example of its own, times that; products with entries may have been rounded."""
        body, values, (_, row) = self.body, read.values.at(slice(None), columns), self.shown.rows[0]
        good = read.keys.tolist() == body.carriers and (values.number == 1).all()
        good = good and (values.symbol == values.symbol[0]).all()
        require(bool(good), "a mean of other numbers than those that carry w hold")
        made = [self._of(one) for one in values.symbol[0].tolist()]
        alone = all(not one.skip and all(number == 1 for number, *_ in one.reads) for one in made)
        require(alone, "a push is more than what is read")
        reads = alike([[read for _, read, _ in one.reads] for one in made], "what entries of w read")
        examples = sorted(self._examples(reads, t) for t in body.carriers)
        require(examples == [[i] for i in range(body.examples)], "not every example is read once")
        units = [(s, body.symbols.rounded.get(s, s)) for _, s in body.entries(row, self.shown.factors)]
        along = [(w, *unit) for w, unit in zip(body.of_w[0], units, strict=True)]
        _, y = body.entry(row, len(row) - 1)
        label = () if y == ONE else (ONE, y, body.symbols.rounded[y])
        each = zip(reads, zip(*([c for *_, c in one.reads] for one in made), strict=True), strict=True)
        anchors = [self._anchors(one, theirs, along, label, units) for one, theirs in each]
        return heads_of(tuple(anchors), self.links[0], self.model, self.target.size)

    def _examples(self, reads: Sequence[Read], t: int) -> list[int]:
        """Of which examples a token reads."""
        return np.unique(np.concatenate([self.body.example[one.tokens[t]] for one in reads])).tolist()


def heads_of(parts: tuple[Anchors, ...], link: Link, model: Arithmetic, size: int = 0) -> Heads:
    """The heads of a link whose anchors these are. size: where logits are sums over so many entries of w, and labels
    are not in scores."""
    terms = [size * (s != 0) + (y != 0) + (constants != 0).sum(axis=1) for s, y, constants, _ in parts]
    roundings = 1 + max(int(one.max()) for one in terms) if size else 0
    if link.form == "both":
        require(len(parts) == 1, "a link of two variables has one grid")
        return Heads(grid=_grid(*parts[0]), roundings=roundings)
    found: tuple[list[Part], list[Part]] = [], []
    for slopes, labels, constants, values in parts:
        of_label = bool(size) and link.form == "labelled" and not slopes.any()
        argument = np.array_equal(labels, -slopes if size and link.form == "residual" else 0 * slopes)
        require(of_label or argument, f"anchors of no link of the form {link.form}")
        found[of_label].append(part_of(labels if of_label else slopes, constants, values, model))
    good = bool(found[0]) and bool(found[1]) == (bool(size) and link.form == "labelled")
    require(good, "a label is not taken off its link")
    return Heads(tuple(found[0]), tuple(found[1]), roundings=roundings)


def _grid(slopes: np.ndarray, labels: np.ndarray, constants: np.ndarray, values: np.ndarray) -> Grid:
    p = len(np.unique(slopes))
    require(constants.shape[1] == 2 and len(slopes) % p == 0, "the anchors of a link are no grid")
    along, beside = (np.stack(pair).reshape(2, p, -1) for pair in zip((slopes, labels), constants.T, strict=True))
    good = (along == along[:, :, :1]).all() and (beside == beside[:, :1]).all()
    require(bool(good), "the anchors of a link are no grid")
    return Grid(((along[0, :, 0], along[1, :, 0]), (beside[0, 0], beside[1, 0])), np.zeros(2), values.reshape(p, -1))
