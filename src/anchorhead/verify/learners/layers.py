"""The layers of a step, read from stored weights: what each of them computes, in whichever layout.

score     every row asks two tokens, of values 1 and -1, whose logits differ by h z (score.py)
link      a row asks registers with its score: a scalar head for phi, or a grid of scores and labels; rows of sign -1
          find the mirror image of it, slopes and values of the other sign, and so minus phi of minus their score.
          In the layout *sequence* register i asks with w the anchors of example i, tokens that hold a number times an
          entry of it, or a number: logits slope (w . a_i) + slope_y y_i + offset, values v_k a_i. All others are out
          of reach. What is read is a_i times a softmax on w . a_i and y_i
collect   whoever carries w asks the rows for a signed average, of links or of residuals (average.py); or, in a
          sequence, weighs what registers have read alike
clip      the state shrinks the entries of w (clip.py)

Who carries w: the state; or a register for each example; or two registers, one w and one -w. These add the same to it,
up to their own rounding (growth.Apart): a link in a sequence is one at another w, off by its slope times |a_i| times
how far they are apart; and w+ = (w+ - w-)/2 + (w+ + w-)/2, of which the first follows the descent, the second stays 0.
A step must leave all that it reads as it was, but for w and v: what it changes counts as anything from the beginning,
so what is read holds at every step, by induction. A layer that changes w or v makes new quantities of them: copies of
what they were count as anything from there on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Linear, Network, Repeat
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.learners.average import Average, Mean
from anchorhead.verify.learners.clip import Clip
from anchorhead.verify.learners.heads import Heads
from anchorhead.verify.learners.link import Link
from anchorhead.verify.learners.score import Score
from anchorhead.verify.learners.step import Step, Update
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.learners.tokens import LABEL, LINK, MAX_LAYERS, ONE, SCORE, SUM, VANISHED, Rows, Tokens, W
from anchorhead.verify.rounding import SLACK, Arithmetic, power_of_two
from anchorhead.verify.scalar.part import Part, silent


def read_step(
    network: Network, target: Descent, links: Sequence[Link], rows: Rows, stated: float, model: Arithmetic
) -> Step:
    """The step of a network. stated: the bound that is aimed at, of which a threshold may take a hundredth."""
    reader = _Reader(network, target, links, rows, stated, model)
    while True:
        start, step = reader.now, reader.step()
        begin = start.merged(reader.now)
        if np.array_equal(begin.number, start.number) and np.array_equal(begin.of, start.of):
            reader.require_output(network)
            return step
        reader.now = begin


class _Reader:
    """now: what tokens hold; w, v: the features that carry them; carriers: the tokens that do, and their signs."""

    def __init__(
        self, network: Network, target: Descent, links: Sequence[Link], rows: Rows, stated: float, model: Arithmetic
    ) -> None:
        require(not (target.momentum and target.shrinks), "with momentum and a threshold at once nothing is known")
        require(len(network.layers) >= 2, "a learner without a step, or without an output")
        *before, repeat, last = network.layers
        attention = isinstance(repeat, Repeat) and all(isinstance(one, Attention) for one in (*before, *repeat.layers))
        fits = attention and repeat.times == target.times and isinstance(last, Attention | Linear)
        require(fits, f"a learner repeats attention {target.times} times, and picks w")
        require(len(before) + len(repeat.layers) <= MAX_LAYERS, f"a learner of more than {MAX_LAYERS} layers")
        self.target, self.links, self.rows, self.stated, self.model = target, links, rows, stated, model
        self.body: tuple[Attention, ...] = repeat.layers
        self.last, self.skips = last, [one.skip.on_features() for one in self.body if one.skip is not None]
        require(len(self.skips) == len(self.body), "a step of a learner is attention with a skip")
        picks = last.value[0] if isinstance(last, Attention) else last.on_features()
        self.w = np.abs(picks).argmax(axis=1).tolist()
        require(len(set(self.w)) == len(picks) == target.size, "the last map does not pick the entries of w")
        require(len(self.body) > target.shrinks, "a step that reads no gradient")
        self.update = self._read_update(len(self.body) - 1 - target.shrinks)
        self.sequence = network.output == "register"
        tokens = Tokens.embedded(network.embed, rows, self.sequence)
        for layer in before:
            tokens = tokens.after(layer, {})
        inputs, registers, states = int(tokens.stream.inputs or 0), tokens.stream.registers, tokens.stream.states
        self.examples = dict.fromkeys(range(len(rows.kinds)), 1)
        self.carriers = {inputs: 1, inputs + 1: -1} if rows.start else {inputs + registers: 1}
        require(self.sequence or (states == 1 and registers >= 2 * bool(rows.start)), "a learner has one state")
        if self.sequence:
            self.carriers = dict.fromkeys(range(inputs, inputs + registers), 1)
        start = (1.0, rows.w(3)) if rows.start else (0.0, np.zeros(target.size))
        for token, sign in self.carriers.items():
            good = (tokens.number[token, self.w] == sign * start[0]).all() and not tokens.number[token, self.v].any()
            require(bool(good and (tokens.of[token, self.w] == start[1]).all()), "w does not start where it should")
            for which, features in enumerate((self.w, self.v)):
                tokens = tokens.holding(token, features, sign, rows.w(which)[: len(features)])
        self.now = tokens

    def require_output(self, network: Network) -> None:
        """What is put out is w."""
        end, last = self.now, self.last
        first = (end.stream.inputs or 0) + (0 if self.sequence else end.stream.registers)
        own = slice(first, first + (end.stream.registers if self.sequence else end.stream.states))
        if isinstance(last, Attention):
            after = end.after(last, {})
            number, of = after.number, after.of
        else:
            require(not last.across and last.bias is None, "the last map of a learner picks w")
            number, of = end.mapped(last.on_features())
        good = (number[own] == 1).all() and (of[own] == self.rows.w()).all()
        require(bool(good) and network.output in ("state", "register"), "a learner does not put out w")

    def step(self) -> Step:
        count, score, heads = len(self.body) - self.target.shrinks, None, ()
        if self.sequence:
            require(len(self.body) == 2 and count == 2, "a step in a sequence is link and mean, without a threshold")
            heads = (self._link_in_sequence(self.body[0]),)
            self._require_kept()
            collect = self._mean(self.body[1])
        elif count == 1:
            line = self.rows.residual and self.links[0].line == (1, 0)
            require(line, "a step for residuals, and another link than s - y")
            collect = self._average(self.body[0], {SUM: 1.0, LABEL: -1.0})
        else:
            require(count == 3, "a step is one attention, or score, link and collect; and a threshold")
            score = self._score(self.body[0])
            heads = self._link(self.body[1], score)
            self._require_kept()
            collect = self._average(self.body[2], {LINK: 1.0})
        clip = self._clip(self.body[-1]) if self.target.shrinks else None
        carriers = "each" if self.sequence else "one" if len(self.carriers) == 1 else "pair"
        return Step(collect, self.update, clip, score, heads, carriers)

    def _require_kept(self) -> None:
        """The layers before the update hand w and v on as they are."""
        for token, sign in self.carriers.items():
            for which, features in enumerate((self.w, self.v)):
                number, of = self.now.number[token, features], self.now.of[token, features]
                kept = (number == sign).all() and (of == self.rows.w(which)[: len(features)]).all()
                require(bool(kept), "w or its speed is changed before it is updated")

    def _on(
        self, layer: Attention, tokens: Mapping[int, int], features: Sequence[int], of: np.ndarray | None = None
    ) -> None:
        """On to the next layer; these tokens hold quantities in these features, or what w and v have become."""
        self.now = self.now.after(layer, dict.fromkeys(tokens, features))
        if of is None:
            self.now = self.now.renewed(list(tokens), features)
            return
        for token, sign in tokens.items():
            self.now = self.now.holding(token, features, sign, of)

    def _written(self, number: int, taken: int | None) -> tuple[int, np.ndarray]:
        """The one feature that a layer writes, and what every head writes to it; rows keep nothing there, or less an
        entry."""
        layer, skip = self.body[number], self.skips[number]
        (found,) = np.nonzero((layer.output != 0).any(axis=(0, 2)))
        require(len(found) == 1 and layer.output.shape[2] == 1, "a layer does not write one number of every row")
        kept, of = self.now.mapped(skip[found])
        entries, own = self.rows.entries()
        for row in self.examples:
            expected = (0.0, 0) if taken is None else (-entries[row, taken], own[row, taken])
            require(
                (kept[row, 0], of[row, 0]) == expected, "scores or links keep something, or the wrong entry is taken"
            )
        return int(found[0]), layer.output[:, int(found[0]), 0]

    def _score(self, layer: Attention) -> Score:
        feature, outputs = self._written(0, self.rows.taken[0])
        sharpness, terms = np.zeros(layer.heads), 0
        for head in range(layer.heads):
            for row in self.examples:
                found = self.now.logits(layer, head, row)
                number, of = (one[found.seen, 0] for one in self.now.of_head("value", layer, head))
                near = np.flatnonzero(~found.far)
                near = near[np.argsort(-number[near])]
                values = number[near].tolist() == [1.0, -1.0] and not of[near].any() and bool(found.sure[near].all())
                require(values, "a score is not read of two tokens, 1 and -1")
                alone = not found.rest[near].any() and not found.size[near].any()
                require(alone, "logits of a score have more in them than w . a")
                up, down = found.of[near]
                # so that one of both is at least 0, and what is far of that weighs nothing
                both = found.seen[near].tolist() == list(self.carriers) and bool((down == -up).all())
                one = len(self.carriers) == 1 and not down.any()
                require(both or one, "a score is not read of w against 0, or of w and -w")
                h = float(up[SUM] - down[SUM])
                expected = np.zeros_like(up)
                expected[[SUM, LABEL]] = h, -h if self.rows.residual else 0.0
                sharp = h > 0 and power_of_two(np.array(h)) and sharpness[head] in (0.0, h)
                require(bool(sharp and (up - down == expected).all()), "the logits of a score do not differ by h w . a")
                sharpness[head], terms = h, max(terms, int(found.terms[near].max()))
        self._on(layer, self.examples, [feature], np.array([self.rows.score]))
        return Score(tuple(sharpness), tuple(outputs), terms, self.rows.taken[0] is not None)

    def _points(self, layer: Attention, head: int, asker: int, column: int, most: float | None = None) -> Points:
        """Tokens whose logits are affine in one quantity and the label. Those that are meant: of quantities up to
        `most`, all that are heard; else the constants tell: of anchors of one example, or those above the middle."""
        tokens = self.now
        found = tokens.logits(layer, head, asker)
        constants, others = found.of[:, ONE], np.delete(found.of, [ONE, LABEL, column], axis=1)
        require(not (found.rest.any() or others.any()), "a head is asked with more than it should")
        number, of = (one[found.seen] for one in tokens.of_head("value", layer, head))
        loud = np.ones(len(constants), bool)
        if most is not None:
            count, nothing = (found.fixed != 0).sum(axis=1) + 0.0, np.zeros(len(loud))
            sizes = found.size, found.size, count, nothing, nothing, nothing
            part = Part(found.of[:, column], constants, number[:, 0], *sizes, self.model)
            loud = ~silent(part, [(-most, most)], self.model) if most < math.inf else loud
            require(not found.of[:, LABEL].any() and not of.any(), "a head reads what is not constant")
            require(bool((count[loud] <= 1).all()), "tokens are within reach of a head that are not meant")
        elif self.sequence:
            source = tokens.source[found.seen]
            loud = source == source[constants.argmax()]
            loud &= constants > constants[~loud].max(initial=-np.inf) / 2
        else:
            loud = constants > (constants.max() + constants.min()) / 2
        require(bool(loud.any() and found.sure[loud].all()), "a head without anchors, or with some that are not sure")
        fixed, slopes = found.fixed[loud], found.of[:, [column, LABEL]]
        anchors = np.concatenate([slopes[loud], fixed[:, fixed.any(axis=0)]], axis=1)
        steep = np.abs(slopes[loud]).max(axis=0) + np.abs(slopes[~loud]).max(axis=0, initial=0.0)
        above = (constants + found.lost)[~loud].max(initial=-np.inf) if most is None else -np.inf
        apart = np.append(steep, above + (np.abs(constants) + found.lost)[loud].max())
        return Points(found.seen[loud], anchors, number[loud], of[loud], apart, int(found.terms[loud].max()))

    def _link(self, layer: Attention, score: Score) -> tuple[Heads, ...]:
        """For every link the anchors that rows of sign 1 find; those of sign -1 find their mirror image. Of a grid one
        head is for either sign; rows of the other find points that hold 0."""
        feature, outputs = self._written(1, self.rows.taken[1])
        made = []
        for k, link in enumerate(self.links):
            most = None if link.form == "both" else score.most + self.rows.off
            require(
                (most is None) == (len(layer.grid or ()) == 2), "a grid for a link of one variable, or none for two"
            )
            heads = range(layer.heads)
            sides = [[self._points(layer, head, row, SCORE, most) for head in heads] for row in (2 * k, 2 * k + 1)]
            every = [points for side in sides for points in side]
            up, down = ([(p, o) for p, o in zip(side, outputs, strict=True) if p.values.any()] for side in sides)
            same = [p.rows(1.0, o) for p, o in up] == [p.rows(-1.0, o) for p, o in down]
            require(same and bool(up), "rows of sign -1 do not find the mirror image of the link")
            good = all(o == 1.0 for _, o in up) and not any(p.of.any() for p in every)
            require(good, "what a head of the link reads is not the link")
            made.append(self._heads([p for p, _ in up], link.form, every, 0))
        self._on(layer, self.examples, [feature], np.array([self.rows.link]))
        return tuple(made)

    def _heads(self, meant: Sequence[Points], form: str, every: Sequence[Points], roundings: int) -> Heads:
        """Heads of the anchors that are meant. every: all that is heard, of which others are out of reach."""
        parts, of_label, grid = [], [], None
        for points in meant:
            score, label = points.anchors[:, :2].T
            if form != "both" and (label == (-score if self.sequence and form == "residual" else 0.0)).all():
                parts.append(points.part(0, self.model))
            elif form == "labelled" and not score.any():
                of_label.append(points.part(1, self.model))
            else:
                require(form == "both" and len(meant) == 1, f"anchors are not those of a link of the form {form}")
                grid = points.grid()
        require(bool(of_label) == (form == "labelled" and self.sequence), "a label is not taken off its link")
        apart = np.max([points.apart for points in every], axis=0)
        taken = self.rows.taken[1] is not None and not self.sequence
        return Heads(tuple(parts), tuple(of_label), grid, taken, roundings, apart)

    def _link_in_sequence(self, layer: Attention) -> Heads:
        """Register by register the same anchors, of an example of its own."""
        (push,) = np.nonzero((layer.output != 0).any(axis=(0, 2)))
        output, kept = layer.output[:, push], self.skips[0][push]
        apart = output.shape[1:] == (self.target.size,) * 2 and (output == np.eye(self.target.size)).all()
        require(bool(apart) and not kept.any(), "what registers read is not kept apart")
        x, of_x = (one[0][list(self.rows.x)] for one in self.rows.entries())
        first: list[Points] = []
        met: list[Points] = []
        served = []
        for token in self.carriers:
            every = [self._points(layer, head, token, SUM) for head in range(layer.heads)]
            first = first or every
            met += every
            for points, other in zip(every, first, strict=True):
                multiples = points.values[:, :1] / x[:1] * x
                good = (points.values == multiples).all() and (points.of == np.where(multiples == 0, 0, of_x)).all()
                require(bool(good), "values of anchors are not multiples of the example")
                same = np.array_equal(points.anchors, other.anchors) and np.array_equal(points.values, other.values)
                require(same, "examples have different anchors")
            served.append({int(one) for points in every for one in self.now.source[points.tokens]})
        examples = [{one} for one in range(1 + int(self.now.source.max()))]
        require(sorted(served, key=sorted) == examples, "there is not one register for each example")
        self._on(layer, self.carriers, push.tolist(), self.rows.w(2))
        roundings = max(points.terms for points in first) + 1  # with the product of slope and example
        return self._heads(first, self.links[0].form, met, roundings)

    def _mean(self, layer: Attention) -> Mean:
        """Registers weigh all registers alike: logits that are exactly 0."""
        require(layer.heads == 1, "what examples push is not averaged once")
        for token in self.carriers:
            found = self.now.logits(layer, 0, token)
            number, of = (one[found.seen] for one in self.now.of_head("value", layer, 0))
            alike = found.seen.tolist() == list(self.carriers) and not found.terms.any()
            require(
                alike and bool((number == 1).all() and (of == self.rows.w(2)).all()), "pushes are not weighed alike"
            )
        self._on(layer, self.carriers, [*self.w, *self.v])
        return Mean(self._outputs(layer)[0], len(self.carriers))

    def _average(self, layer: Attention, quantities: Mapping[int, float]) -> Average:
        """Logits are h times these quantities of every row; all else is out of reach."""
        entries, own = (one[list(self.examples)][:, list(self.rows.values)] for one in self.rows.entries())
        examples, sharpness, terms = np.array(list(self.examples)), np.zeros(layer.heads), 0
        for head in range(layer.heads):
            for token, sign in self.carriers.items():
                found = self.now.logits(layer, head, token)
                require(np.array_equal(found.seen[: len(examples)], examples), "examples are not seen")
                number, of = (one[examples] for one in self.now.of_head("value", layer, head))
                require(np.array_equal(number, entries) and np.array_equal(of, own), "values are not the examples")
                h = sign * float(found.of[0, next(iter(quantities))])
                sharp = h > 0 and power_of_two(np.array(h)) and sharpness[head] in (0.0, h)
                expected = np.zeros(found.of.shape[1])
                expected[list(quantities)] = sign * h * np.array(list(quantities.values()))
                asked = (found.of[examples] == expected).all()
                asked &= not found.rest[examples].any() and not found.size[examples].any()
                require(bool(sharp and asked), "logits of examples are not residuals, or links, times a power of two")
                require(bool(found.far[len(examples) :].all()), "a token is not out of reach of the one that carries w")
                sharpness[head], terms = h, max(terms, int(found.terms[examples].max()))
        self._on(layer, self.carriers, [*self.w, *self.v])
        return Average(tuple(sharpness), self._outputs(layer), terms)

    def _outputs(self, layer: Attention) -> tuple[float, ...]:
        """o_a: what head a reads of entry j goes to entry j of w and of v, times o_a."""
        found = layer.output[:, self.w[0], 0]
        every = found[:, None, None] * np.eye(self.target.size)
        same = all(np.array_equal(layer.output[:, slots], every) for slots in (self.w, self.v) if slots)
        require(same, "what a head reads does not go to w and v alike")
        return tuple(found)

    def _clip(self, layer: Attention) -> Clip:
        """The last layer of a step as soft thresholds."""
        (state,) = self.carriers
        number, of = self.now.mapped(self.skips[-1][self.w])
        kept = (number[state] == 1).all() and (of[state] == self.rows.w()).all()
        require(bool(kept), "the skip of the threshold changes w")
        shrunk = {j: tau for j, tau in enumerate(self.target.thresholds) if tau is not None}
        parts, taus = [], []
        for head in range(layer.heads):
            written = layer.output[head][self.w]
            (j,) = np.nonzero(written.any(axis=1))
            once = written[j].tolist() == [[-1.0]] and int(j[0]) in shrunk
            require(once, "a head of the threshold does not shrink one entry of w")
            tau = shrunk.pop(int(j[0]))
            parts.append(self._points(layer, head, state, W + int(j[0]), math.inf).part(0, self.model))
            taus.append((float(tau), float(abs(tau - Fraction(float(tau)))) * SLACK))
        require(not shrunk, "an entry of w is not shrunk")
        self._on(layer, self.carriers, self.w)
        aim = 0.01 * self.stated / (self.target.times * math.sqrt(self.target.size))
        return Clip(tuple(parts), tuple(taus), aim)

    def _read_update(self, number: int) -> Update:
        """What becomes of w and v; v are the features that the skip adds to w."""
        target, w, skip, rows = self.target, self.w, self.skips[number], np.arange(self.target.size)
        kept, momentum, pulled = skip[w, w], 0.0, 0 * skip[w, w]
        self.v: list[int] = []
        expected = np.zeros((target.size, skip.shape[1]))
        expected[rows, w] = kept
        if target.momentum:
            more = skip[w] - expected
            self.v = v = np.abs(more).argmax(axis=1).tolist()
            require(len({*v, *w}) == 2 * target.size, "the skip does not add one speed to each entry of w")
            momentum, pulled = float(more[0, v[0]]), skip[v, w]
            expected = np.concatenate([expected, 0 * expected])
            expected[rows, v] = expected[target.size + rows, v] = momentum
            expected[target.size + rows, w] = pulled
        require(np.array_equal(skip[[*w, *self.v]], expected), "the skip mixes other features into w or v")
        pulls = [Fraction(target.rate) * decay for decay in target.decays]
        off = [abs(Fraction(float(k)) - (1 - pull)) for k, pull in zip(kept, pulls, strict=True)]
        off_v = [abs(Fraction(float(k)) + pull) for k, pull in zip(pulled, pulls, strict=True) if self.v]
        wrong = max(off), max(off_v, default=Fraction(0)), abs(Fraction(momentum) - Fraction(target.momentum))
        wrong_w, wrong_pull, wrong_speed = (float(one) * SLACK for one in wrong)
        product = int(not power_of_two(np.concatenate([kept, pulled])).all())
        sums = bool(self.v) + self.body[number].heads  # w, v and what heads read are added in any order
        roundings = product + sums, 1 + sums, 1 + sums
        largest = float(np.abs(kept).max()), float(np.abs(pulled).max()), abs(momentum)
        return Update(*largest, wrong_w, wrong_pull, wrong_speed, roundings)


@dataclass(frozen=True, eq=False)
class Points:
    """Tokens that hold anchors: slopes of a quantity and of the label, and offsets, (n, 2 + offsets); values.

    apart    (a, b, c): logits of all others are above these by at most c + a |quantity| + b |label|, up to rounding of
             the products with quantity and label
    terms    how many products a logit sums
    """

    tokens: np.ndarray
    anchors: np.ndarray
    values: np.ndarray
    of: np.ndarray
    apart: np.ndarray
    terms: int

    def rows(self, sign: float, output: float) -> list[list[float]]:
        """The anchors in an order of their own; for sign -1 those for minus phi(-x)."""
        signs = np.array([sign, sign, *[1.0] * (self.anchors.shape[1] - 2), sign * output])
        return sorted((signs * np.append(self.anchors, self.values[:, :1], axis=1) + 0.0).tolist())

    def offsets(self, most: int) -> np.ndarray:
        require(self.anchors.shape[1] <= 2 + most, "an anchor of a link has too many offsets")
        return np.pad(self.anchors[:, 2:], ((0, 0), (0, 2 + most - self.anchors.shape[1])))

    def part(self, column: int, model: Arithmetic) -> Part:
        slopes, offsets, nothing = self.anchors[:, column], self.offsets(1)[:, 0], np.zeros(len(self.tokens))
        vanished = VANISHED * model.tiny * (1 + np.abs(slopes))
        sizes = np.abs(offsets), np.abs(offsets), (offsets != 0) + 0.0, vanished, nothing, nothing
        return Part(slopes, offsets, self.values[:, 0], *sizes, model)

    def grid(self) -> Grid:
        """Row by row the points of a grid: slopes and offsets along the quantity, and along the label."""
        p = len(np.unique(self.anchors[:, 0]))
        require(len(self.tokens) % p == 0, "the anchors of a link are no grid")
        slopes, labels = (one.reshape(p, -1) for one in self.anchors[:, :2].T)
        offsets = [one.reshape(p, -1) for one in self.offsets(2).T]
        for along, beside in (offsets, offsets[::-1]):
            if all((a == a[:, :1]).all() for a in (slopes, along)) and all(
                (b == b[:1]).all() for b in (labels, beside)
            ):
                axes = (slopes[:, 0], along[:, 0]), (labels[0], beside[0])
                return Grid(axes, np.zeros(2), self.values[:, 0].reshape(p, -1))
        raise NotVerified("the anchors of a link are no grid")
