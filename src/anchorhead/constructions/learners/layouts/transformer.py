"""Any loss by its link in the transformer layout: three attentions a step, the same weights for any number of examples.

With z_i the argument of the link phi at example i (s - y, s or y s, as its form says; s = w . x_i):

    score     every example asks with h x_i. The state, whose key is w and whose value is 1, and a reference of key 0
              and value -1 answer: tanh(h z_i / 2). Two sharpnesses, h and 2h, weighted 4/3 and -1/3 and scaled by 2/h,
              leave z_i + O(h^4 z_i^5)
    link      every example asks the anchors of the head for phi with its score; for phi(s) - y the skip takes off y
    collect   the state asks the examples, once with either sign, as for the squared loss (layouts.direct):
              logits h g_i and -h g_i, values x_i and -x_i, so it reads h times the mean of g_i x_i, the gradient

Copies of sign -1 have scores of the other sign and need links of the other sign, so there are anchors for them too,
with slopes and values negated. Examples see registers and states alone, so the cost of a step grows with the number of
examples and not with its square. A threshold is one more layer.

A link g(s, y) that is truly of two variables is a *grid* whose points are registers: every example asks with its score
along one axis and its label along the other. The copy of sign -1 needs -g(-s, -y) at its own score s and label y: a
second head asks with both negated, and is subtracted. Along s the grid has one anchor more, "off", with values 0. With
t = 0 for a copy that a head is meant for, t = 1 for the other copy and for tokens that are no examples, and M = `far`,
anchors add -M t to their logits and "off" has M t - M for examples and M t for others. Sums of these are exact, so a
copy's own logits are as they would be without, and "off" is out of its reach; in all other cases "off" alone is read,
exactly 0.

Tokens that must not be seen get a logit so low that their weight is exactly 0, from a feature that is exactly 0 in
those that are seen: neither adds to what is read, nor to its rounding. Registers and the state ask as well, because
maps are the same for all tokens. In all three layers they see only tokens whose values are exactly 0, so that their
scores, links and (in registers) w stay exactly 0.
"""

from __future__ import annotations

import numpy as np

from anchorhead.constructions.learners.layouts.stored import Stored
from anchorhead.constructions.learners.layouts.threshold import clip_in, threshold_layers
from anchorhead.constructions.learners.layouts.transformer_tokens import Slots, embed_layer
from anchorhead.errors import CertificateError
from anchorhead.heads.grids.grid_atom import GridAtom
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.links import Anchors
from anchorhead.lemmas.learners.score import Scoring
from anchorhead.lemmas.learners.steps import OUT_OF_REACH, ScoreLinks, linked_step
from anchorhead.lemmas.learners.update import added_to_w
from anchorhead.network import Attention, Linear, Network, Repeat


def read(network: Network, target: Descent) -> ScoreLinks:
    """The step whose numbers a network of this layout holds."""
    stored = Stored.of(network, 3 + bool(target.threshold), 1)
    score, link, collect = stored.body[:3]
    slots = Slots(target, 2 if target.loss.form == "g(s, y)" else link.heads)
    stored.require_width(slots.width)
    far = -float(stored.states[0, slots.anchor(0)[1]])
    scoring, collecting = float(score.query[0, 0, slots.columns[0]]), float(collect.query[0, 0, slots.state])
    return linked_step(
        target,
        _held(stored, target, slots, far),
        far,
        Scoring.of(scoring, stored.dtype),
        Average.of(target, collecting, stored.dtype, clip_in(stored, target)),
        stored.dtype,
    )


def _held(stored: Stored, target: Descent, slots: Slots, far: float) -> Anchors:
    """The anchors for copies of sign 1, or the points of the grid but for "off"."""
    if target.loss.form != "g(s, y)":
        rows = stored.registers[stored.registers[:, slots.of_plus] == 1]
        return tuple(stored.part(rows, slots.anchor(part), far) for part in range(slots.parts))
    link = stored.body[1]
    if link.grid is None or len(link.grid) != 2 or link.grid[0] < 2:
        raise CertificateError("its link is of two variables, but no grid of points and one more along the score")
    points = stored.registers[: link.points].reshape(*link.grid, -1)[:-1]
    (slope, offset, _), (slope_y, offset_y, value) = slots.anchor(0), slots.anchor(1)
    axes = [(points[:, 0, slope], points[:, 0, offset]), (points[0, :, slope_y], points[0, :, offset_y])]
    return GridAtom.of(axes, np.zeros(2), points[:, :, [value]], np.zeros(1), stored.dtype)


def build(target: Descent, step: ScoreLinks) -> Network:
    """The network of a descent on any loss, certificate left out."""
    held = step.links[0].held
    if isinstance(held, GridAtom):
        slots = Slots(target, 2)
        link = grid_layer(slots, held.sides)
    else:
        slots = Slots(target, len(held))
        link = link_layer(slots, step.far, step.labelled)
    shrink = threshold_layers(target, slots.names, slots.w, slots.asks)
    layers = score_layer(slots, step.scoring, step.residual), link, collect_layer(slots, step.collect), *shrink
    embed = embed_layer(slots, held, step.far, step.collect.clip)
    read = Linear(np.eye(slots.width)[slots.entries], features=target.weight_names("w"))
    return Network([embed, Repeat(layers, target.steps), read], output="state")


def score_layer(slots: Slots, scoring: Scoring, residual: bool) -> Attention:
    """An example asks with its x: the state answers with logit h z and value 1, the reference with 0 and -1."""
    pick = np.eye(slots.width)
    about = [*slots.columns, slots.label] if residual else slots.columns
    signs = np.array([1.0] * len(slots.columns) + [-1.0] * residual)[:, None]
    query = np.stack([np.concatenate([h * signs * pick[about], pick[[slots.example, slots.other]]]) for h in
                      scoring.sharpness])  # fmt: skip
    key = np.concatenate(
        [
            pick[slots.entries],
            pick[[slots.state] if residual else []],
            -OUT_OF_REACH * pick[[slots.hidden]],
            -OUT_OF_REACH * (pick[[slots.state]] + pick[[slots.zero]]),
        ]
    )
    skip = np.eye(slots.width)
    skip[slots.score, slots.score] = 0.0
    output = np.array(scoring.outputs)[:, None, None] * pick[slots.score][:, None]
    return Attention(
        query,
        key[None],
        (pick[slots.state] - pick[slots.zero])[None, None],
        output,
        mask="registers+states",
        skip=Linear(skip, features=slots.names),
        features=slots.names,
        labels=tuple(f"the score, at sharpness {h:g}" for h in scoring.sharpness),
    )


def link_layer(slots: Slots, far: float, labelled: bool) -> Attention:
    """An example asks the anchors for its sign with its score; the rest of the link is the label."""
    pick = np.eye(slots.width)
    query = pick[[slots.score, slots.example, slots.plus, slots.minus, slots.other]]
    gates = -far * pick[[slots.of_minus, slots.of_plus, slots.hidden]]
    anchors = [slots.anchor(part) for part in range(slots.parts)]
    skip = np.eye(slots.width)
    skip[slots.link, slots.link] = 0.0
    if labelled:
        skip[slots.link, slots.label] = -1.0
    return Attention(
        np.stack([query] * slots.parts),
        np.stack([np.concatenate([pick[[slope, offset]], gates]) for slope, offset, _ in anchors]),
        np.stack([pick[[value]] for *_, value in anchors]),
        np.stack([pick[slots.link][:, None]] * slots.parts),
        mask="registers+states",
        skip=Linear(skip, features=slots.names),
        features=slots.names,
        labels=tuple(f"the link, part {part}" if slots.parts > 1 else "the link" for part in range(slots.parts)),
    )


def grid_layer(slots: Slots, sides: tuple[int, ...]) -> Attention:
    """Every example asks the grid with its score and its label, and again with both negated."""
    pick, nothing = np.eye(slots.width), np.zeros(slots.width)
    query = np.stack(
        [
            np.stack(
                [
                    *(sign * pick[slots.score], pick[slots.example], pick[unmeant] + pick[slots.other]),
                    *(sign * pick[slots.label], pick[slots.example], nothing),
                ]
            )
            for sign, unmeant in ((1.0, slots.minus), (-1.0, slots.plus))
        ]
    )
    along_s, (slope_y, offset_y, value) = slots.anchor(0), slots.anchor(1)
    key = np.stack([*pick[list(along_s)], pick[slope_y], pick[offset_y], nothing])
    skip = np.eye(slots.width)
    skip[slots.link, slots.link] = 0.0
    output = np.array([1.0, -1.0])[:, None, None] * pick[slots.link][:, None]
    return Attention(
        query,
        key[None],
        pick[None, [value]],
        output,
        skip=Linear(skip, features=slots.names),
        grid=(sides[0] + 1, sides[1]),
        features=slots.names,
        labels=("the link, for sign 1", "the link, for sign -1"),
    )


def collect_layer(slots: Slots, step: Average) -> Attention:
    """The state asks the examples: logits h times the signed link, values the signed x."""
    pick = np.eye(slots.width)
    rest = np.stack([pick[slots.state], pick[slots.other] - pick[slots.state]])
    query = np.stack([np.concatenate([h * pick[[slots.state]], rest]) for h in step.sharpness])
    key = np.stack([pick[slots.link], -OUT_OF_REACH * pick[slots.other], -OUT_OF_REACH * pick[slots.example]])
    return Attention(
        query,
        key[None],
        pick[None, slots.columns],
        added_to_w(step.outputs, slots.width, slots.entries, slots.speeds),
        skip=Linear(step.update.skip(slots.width, slots.entries, slots.speeds), features=slots.names),
        features=slots.names,
        labels=tuple(f"the gradient, at sharpness {h:g}" for h in step.sharpness),
    )
