"""The layers of a step, read from stored weights: one attention for residuals, or three for any loss.

score     every copy of an example asks the state and a reference (score.py)
link      it asks registers with its score: a scalar head for phi, or a grid of scores and labels; copies of sign -1
          find the mirror image of it, slopes and values of the other sign, and so minus phi of minus their score
collect   the state asks the copies for a signed average, of links in place of residuals (average.py)
"""

from __future__ import annotations

import math

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Attention, Network
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.learners.clip import read_clip
from anchorhead.verify.learners.heads import Heads, mirrored
from anchorhead.verify.learners.link import Link
from anchorhead.verify.learners.reading import Reading, of_head, read_part
from anchorhead.verify.learners.score import Score
from anchorhead.verify.learners.step import Step
from anchorhead.verify.learners.target import Descent
from anchorhead.verify.learners.tokens import Live, exact_rows, logit, seen
from anchorhead.verify.rounding import SILENT, Arithmetic, power_of_two


def read_step(network: Network, target: Descent, link: Link, stated: float, model: Arithmetic) -> Step:
    """The step of a network. stated: the bound that is aimed at, of which a threshold may take a hundredth."""
    require(not (target.momentum and target.shrinks), "with momentum and a threshold at once nothing is known")
    reading = Reading(network, target, target.features + (link.form == "margin"))
    count = len(reading.body) - target.shrinks
    require(count in (1, 3), "a step is one attention, or score, link and collect; and a threshold")
    plain = [layer for number, layer in enumerate(reading.body) if number != 1 or count == 1]
    require(all(layer.grid is None for layer in plain), "a grid that is not that of a link")
    score, heads = None, ()
    if count == 1:
        require(link.form == "residual" and link.line == (1, 0), "a step for residuals, and another link than s - y")
        carries = {sign: _residuals(reading, sign, True).T for sign in (1.0, -1.0)}
    else:
        score = _read_score(reading, reading.body[0], reading.live[1], link.form == "residual")
        heads = (_read_link(reading, reading.body[1], reading.live[2], link.form, score.most, model),)
        form = np.zeros((reading.tokens.state.shape[1], reading.tokens.plus.shape[1]))
        form[0, reading.tokens.link] = 1.0
        carries = {1.0: form, -1.0: form}
    average, update = reading.average(reading.body[count - 1], reading.live[count], carries)
    aim = 0.01 * stated / (target.times * math.sqrt(target.size))
    clip = read_clip(reading, reading.body[count], reading.live[count + 1], aim, model) if target.shrinks else None
    reading.require_same()
    return Step(average, update, clip, score, heads)


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
            for kind, name, forms in tokens.shown(layer, "input"):
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


def _read_link(reading: Reading, layer: Attention, after: Live, form: str, most: float, model: Arithmetic) -> Heads:
    feature, tokens = _written(layer, after), reading.tokens
    require((layer.grid is not None) == (form == "both"), "a grid for a link of one variable, or none for one of two")
    outputs = layer.output[:, feature]
    require(outputs.shape[1] == 1, "a link is not one number")
    copies = tokens.plus, tokens.minus
    if form == "both":
        heads = _read_grid(reading, layer, outputs[:, 0])
    else:
        require(bool((outputs == 1.0).all()), "what a head of the link reads is not the link")
        askers = [("input", copy, tokens.score) for copy in copies]
        sides = [
            [read_part(reading, layer, n, asker, "a link", model, most) for n in range(layer.heads)] for asker in askers
        ]
        same = all(mirrored(up, 1.0) == mirrored(down, -1.0) for up, down in zip(*sides, strict=True))
        require(same, "copies of sign -1 do not find the mirror image of the link")
        heads = Heads(tuple(sides[0]), taken=form == "labelled")
    skip = layer.skip.on_features()[[feature]]  # type: ignore[union-attr]
    for sign, copy in zip((1.0, -1.0), copies, strict=True):
        kept = exact_rows(skip, copy, "a link")[0]
        expected = -reading.entry(reading.target.features + 1, sign) if heads.taken else np.zeros_like(kept)
        require(bool((kept == expected).all()), "the label is not taken off the link, or something else is")
    reading.passed(layer, after, {"input": {feature}})
    reading.tokens = reading.tokens.with_variable(feature, tokens.link)
    return heads


def _read_grid(reading: Reading, layer: Attention, outputs: np.ndarray) -> Heads:
    """One head is read by copies of sign 1, one by those of sign -1, with slopes and outputs of the other sign."""
    found = [
        [_points(reading, layer, head, copy) for head in range(layer.heads)]
        for copy in (reading.tokens.plus, reading.tokens.minus)
    ]
    read = [[(grid, o) for (grid, _, _), o in zip(side, outputs, strict=True) if grid is not None] for side in found]
    require([len(side) for side in read] == [1, 1], "a link of two variables is one grid")
    ((up, one), (down, other)) = (side[0] for side in read)
    pairs = [(up.values * one, -down.values * other)]
    for (slopes, offsets), (opposite, same) in zip(up.axes, down.axes, strict=True):
        pairs += [(slopes, -opposite), (offsets, same)]
    same = all(a.shape == b.shape and bool((a == b).all()) for a, b in pairs)
    require(same and one == 1.0, "copies of sign -1 do not find the mirror image of the link")
    steepest = max(one for side in found for *_, one in side)
    require(steepest <= float(np.abs(up.axes[0][0]).max()), "points that are far off are steeper than others")
    return Heads(grid=up, far=min(far for side in found for _, far, _ in side))


def _points(reading: Reading, layer: Attention, head: int, copy: np.ndarray) -> tuple[Grid | None, float, float]:
    """What a copy finds of a grid along its score and its label: its points but those whose logits are lowered by `far`
    at least, which are all that is left where the values of the others are 0; and the steepest slope.

    Keys of points, row by row, split into blocks that depend on the index along an axis alone, so logits are sums.
    """
    tokens, sides = reading.tokens, layer.grid or (1, 1)
    query, key, value = (of_head(one, head) for one in (layer.query, layer.key, layer.value))
    points, label = tokens.registers[: math.prod(sides)], 1 + reading.target.features + 1
    keys = np.array([exact_rows(key, forms, "a key of a grid")[:, 0] for forms in points]).reshape(*sides, -1)
    size, axes = len(query) // 2, []
    uneven = (keys[..., :size] != keys[:, :1, :size]).any() or (keys[..., size:] != keys[:1, :, size:]).any()
    require(len(sides) == 2 and not uneven, "the grid of a link has two axes, of keys of their own")
    for block, along, column in ((0, points[:: sides[1]], tokens.score), (1, points[: sides[1]], label)):
        rows, own = [], slice(block * size, (block + 1) * size)
        for forms in along:
            found = logit(query[own], key[own], copy, forms, "a point of a link's grid")
            rest = found.form.copy()
            rest[0, 0] = rest[column, 0] = 0.0
            require(not rest.any(), "a link's grid is asked with something else than score and label")
            rows.append((found.form[column, 0], found.form[0, 0], found.terms))
        axes.append(np.array(rows).T)
    values = np.array([exact_rows(value, forms, "a point of a link's grid")[0, 0] for forms in points]).reshape(sides)
    (slopes, offsets, terms), (slopes_y, offsets_y, terms_y) = axes
    loud = offsets > (offsets.max() + offsets.min()) / 2
    far, steepest = float(-offsets[~loud].max(initial=-np.inf)), float(np.abs(slopes).max())
    if not values[loud].any():
        require(not slopes[loud].any() and not offsets[loud].any(), "the points that stand for 0 are not at 0")
        return None, far, steepest
    require(bool((terms[loud] <= 2).all() and (terms_y <= 2).all()), "logits of a grid are not slopes and offsets")
    pairs = (slopes[loud], offsets[loud]), (slopes_y, offsets_y)
    return Grid(pairs, np.zeros(2), values[loud][..., None], np.zeros(1)), far, steepest
