"""The layers of a step, read from stored weights: one attention for residuals, or three for any loss.

score     every copy of an example asks the state and a reference (learner_score)
link      it asks registers with its score: a scalar head for phi; copies of sign -1 find the mirror image of it,
          slopes and values of the other sign, and so minus phi of minus their score
collect   the state asks the copies for a signed average, of links in place of residuals (learner_average)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.learners.average import Average, Moments
from anchorhead.verify.learners.clip import Clip, read_clip, scalar_part
from anchorhead.verify.learners.link import Link
from anchorhead.verify.learners.score import Score
from anchorhead.verify.learners.step import Reading, Update, of_head
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.learners.tokens import Live, exact_rows, logit, seen
from anchorhead.verify.rounding import SILENT, SLACK, Arithmetic, power_of_two
from anchorhead.verify.scalar import Part, silent


@dataclass(frozen=True, eq=False)
class Step:
    """Everything that a step does: how it reads a gradient, what becomes of w, its threshold; and where logits carry
    links and not residuals, how these are made: the score, and the parts of the head for phi."""

    average: Average
    update: Update
    clip: Clip | None
    score: Score | None = None
    parts: tuple[Part, ...] = ()

    def error(self, rate: float, at: Moments, w: float, v: float, model: Arithmetic) -> tuple[float, float]:
        """What a step errs by in w, for |w| and |v| at most these, and how far apart its errors in w and v are."""
        method, rounding, size = self.average.error(rate, at, model)
        if not math.isfinite(method + rounding):
            return math.inf, math.inf
        of_w, of_v = self.update.error(w, v, size, model)
        total = method + rounding + of_w
        if self.clip is not None:
            total = total + self.clip.error((self.update.kept * w + size + total) * SLACK, model)
        return total * SLACK, (of_w + of_v) * SLACK


def read_step(network: Network, target: Descent, link: Link, stated: float, model: Arithmetic) -> Step:
    """The step of a network. stated: the bound that is aimed at, of which a threshold may take a hundredth."""
    require(not (target.momentum and target.shrinks), "with momentum and a threshold at once nothing is known")
    reading = Reading(network, target, target.features + (link.form == "margin"))
    count = len(reading.body) - target.shrinks
    require(count in (1, 3), "a step is one attention, or score, link and collect; and a threshold")
    score, parts = None, ()
    if count == 1:
        require(link.straight, "a step for residuals, and another link than s - y")
        carries = {sign: _residuals(reading, sign, True).T for sign in (1.0, -1.0)}
    else:
        score = _read_score(reading, reading.body[0], reading.live[1], link.form == "residual")
        parts = _read_link(reading, reading.body[1], reading.live[2], link.form == "labelled", score.most, model)
        form = np.zeros((reading.tokens.state.shape[1], reading.tokens.plus.shape[1]))
        form[0, reading.tokens.link] = 1.0
        carries = {1.0: form, -1.0: form}
    average, update = reading.average(reading.body[count - 1], reading.live[count], carries)
    aim = 0.01 * stated / (target.times * math.sqrt(target.size))
    clip = read_clip(reading, reading.body[count], reading.live[count + 1], aim, model) if target.shrinks else None
    reading.require_same()
    return Step(average, update, clip, score, parts)


def _residuals(reading: Reading, sign: float, residual: bool) -> np.ndarray:
    """w . a - y, or w . a, for a copy of a sign: (variables of the copy, variables of the state)."""
    form = np.zeros((reading.tokens.plus.shape[1], reading.tokens.state.shape[1]))
    for slot, column in zip(reading.w, reading.columns, strict=True):
        form[:, 1 + slot] = reading.entry(column, sign)
    if residual:
        form[:, 0] = -reading.entry(reading.target.features + 1, sign)
    return form


def _written(layer: Attention, after: Live) -> int:
    """The one live feature of examples that a layer writes."""
    (found,) = np.nonzero((layer.output != 0).any(axis=(0, 2)) & after["input"])
    require(len(found) == 1, "a layer does not write one feature of the examples")
    return int(found[0])


def _read_score(reading: Reading, layer: Attention, after: Live, residual: bool) -> Score:
    feature, tokens = _written(layer, after), reading.tokens
    sharpness, outputs, terms = [], [], 0
    for head in range(layer.heads):
        query, key, value = (of_head(one, head) for one in (layer.query, layer.key, layer.value))
        output = layer.output[head][feature]
        require(output.shape == (1,), "a score is not one number")
        for sign, copy in ((1.0, tokens.plus), (-1.0, tokens.minus)):
            expected = _residuals(reading, sign, residual)
            references, h = 0, math.nan
            require(
                "state" in seen(layer, "input") and "input" not in seen(layer, "input"), "scores are seen by examples"
            )
            for kind, name, forms in tokens.every():
                if kind not in seen(layer, "input"):
                    continue
                found, held = logit(query, key, copy, forms, name), exact_rows(value, forms, name)
                require(not held[:, 1:].any(), f"{name} shows examples what is not constant")
                if kind == "state":
                    place = np.unravel_index(np.abs(expected).argmax(), expected.shape)
                    h = float(found.form[place] / expected[place])
                    good = h > 0 and bool(power_of_two(np.array(h))) and (found.form == h * expected).all()
                    require(bool(good) and held[0, 0] == 1.0, "the logit of a score is not h w . a")
                    terms = max(terms, found.terms)
                elif found.constant == 0.0 and found.terms == 0:
                    references += 1
                    require(held[0, 0] == -1.0, "the reference of scores is not -1")
                else:
                    far = found.constant is not None and found.constant + found.lost <= -2 * SILENT
                    require(far, f"{name} is not out of the examples' reach")
            require(references == 1, "scores have no reference, or several")
            if sign > 0:
                sharpness.append(h)
                outputs.append(float(output[0]))
            require(h == sharpness[-1], "copies of either sign ask with different sharpness")
    skip = layer.skip.on_features()[[feature]]  # type: ignore[union-attr]
    require(not any(exact_rows(skip, copy, "a score").any() for copy in (tokens.plus, tokens.minus)), "scores are kept")
    reading.passed(layer, after, {"input": {feature}})
    reading.tokens = reading.tokens.with_variable(feature, tokens.score)
    return Score(tuple(sharpness), tuple(outputs), terms)


def _read_link(
    reading: Reading, layer: Attention, after: Live, labelled: bool, most: float, model: Arithmetic
) -> tuple[Part, ...]:
    feature, tokens = _written(layer, after), reading.tokens
    parts = []
    for head in range(layer.heads):
        query, key, value = (of_head(one, head) for one in (layer.query, layer.key, layer.value))
        output = layer.output[head][feature]
        require(output.shape == (1,) and output[0] == 1.0, "what a head of the link reads is not the link")
        sides = []
        for copy in (tokens.plus, tokens.minus):
            rows = []
            for kind, name, forms in tokens.every():
                if kind not in seen(layer, "input"):
                    continue
                require(kind != "input", "examples ask one another for links")
                found, held = logit(query, key, copy, forms, name), exact_rows(value, forms, name)
                rest = found.form.copy()
                rest[0, 0] = rest[tokens.score, 0] = 0.0
                require(not rest.any() and not held[:, 1:].any(), f"a link reads {name}, which is not constant")
                rows.append((found.form[tokens.score, 0], found.form[0, 0], held[0, 0], found.size, found.terms))
            slopes, offsets, values, sizes, terms = np.array(rows).T
            part = scalar_part(slopes, offsets, values, sizes, model)
            near = ~silent(part, [(-most, most)], model)
            require(bool((terms[near] <= 2).all()), "logits of a link are not a slope and an offset")
            sides.append(part.only(np.flatnonzero(near)))
        plus, minus = sides
        require(
            _sorted(plus, 1.0) == _sorted(minus, -1.0), "copies of sign -1 do not find the mirror image of the link"
        )
        parts.append(plus)
    skip = layer.skip.on_features()[[feature]]  # type: ignore[union-attr]
    for sign, copy in ((1.0, tokens.plus), (-1.0, tokens.minus)):
        kept = exact_rows(skip, copy, "a link")[0]
        expected = -reading.entry(reading.target.features + 1, sign) if labelled else np.zeros_like(kept)
        require(bool((kept == expected).all()), "the label is not taken off the link, or something else is")
    reading.passed(layer, after, {"input": {feature}})
    reading.tokens = reading.tokens.with_variable(feature, tokens.link)
    return tuple(parts)


def _sorted(part: Part, sign: float) -> list[tuple[float, float, float]]:
    """The anchors, mirrored for sign -1."""
    return sorted(zip(sign * part.slopes + 0.0, part.offsets, sign * part.values + 0.0, strict=True))
