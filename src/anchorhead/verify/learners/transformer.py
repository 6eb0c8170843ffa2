"""The layout *transformer*: any link, three attentions a step.

Tokens are rows of a prompt, (x, sign, label) and their negatives; registers: a reference and what holds the link; the
state, which carries w. Of a row `example` is 1, and `plus` or `minus`, by the sign of its copy (the label, for a loss
of the margin). All others have `other` = 1; `hidden` = 1 in all registers but the reference.

*score* (registers and states are seen). A row asks with (h a, -h label if that is taken off, 1, 0), keys are (w, state,
-FAR hidden, -FAR (state + zero)). So its logit is h z at the state, whose value is 1, exactly 0 at the reference, whose
value is -1, and exactly -FAR at all others: it reads tanh(h z/2), and score.py is about the sum over its heads.

*link*. A row asks with (score, 1, plus, minus, 0) for anchors, whose keys are (slope, offset, -far of_minus, -far
of_plus, -far hidden): slope score + offset at those for its sign. Those for the other sign, of slopes and values of the
other sign, and all other tokens are out of reach (`heard`). For phi(s) - y the skip takes off the label. A link of two
variables is a grid of score and label, and one more point along the score, "off", with values 0. A head for each sign
asks with (score, 1, t) times (slope, offset, gate), both numbers negated in the second one, which is subtracted. For
copies that it is meant for t = 0: offsets are as they are, and "off" has -far. For others t = 1: gates are -far, and
that of "off" is far, so that it alone is read, and what is read is exactly 0.

*collect*. The state asks with (h, 1, 0), keys are (link, -FAR other, -FAR example): logits h g_i at rows, of which some
are about g and some about -g, and exactly -FAR at all others, whose links are 0. Values are a: a signed average.

Registers and the state ask too. With other = 1, and 0 for all that rows ask with, their logits are exactly 0 at tokens
that are not lowered, of which there are some, and -FAR or -far at the others. In *score* they read anchors, in *link*
the reference and the state (or "off"), in *collect* registers and the state (registers alone), and there values are 0.
So their scores and links are exactly 0, and so is w in registers, the reference's key. In a threshold registers ask
with -1 for tokens of the lowest offset, whose values are 0. What rows add to their own w nobody reads.
"""

from __future__ import annotations

import numpy as np

from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.grammar import Attention, Embed
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.learners.heads import Heads, heard
from anchorhead.verify.learners.score import Score
from anchorhead.verify.learners.step import Step
from anchorhead.verify.learners.threshold import shrinking
from anchorhead.verify.learners.update import read_average
from anchorhead.verify.learners.written import FAR, Features, Given, attention, linear, link_layer, powers, without
from anchorhead.verify.rounding import SILENT

FLAGS = ("sign", "label", "score", "link", "example", "plus", "minus", "other", "state", "zero", "hidden", "of_plus",
         "of_minus", "asks")  # fmt: skip


def read_transformer(given: Given) -> Step:
    target, (link,) = given.target, given.links
    shrinks, size, inputs = target.shrinks, target.size, target.features + 2
    width = given.network.embed.weight.shape[1]
    anchors = width - (target.features + len(FLAGS) + size * (1 + (target.momentum > 0)) + 3 * shrinks)
    require(anchors >= 3 and anchors % 3 == 0, "tokens have other features than those of this layout")
    counts = {"x": target.features, **dict.fromkeys(FLAGS, 1), "anchors": anchors}
    f = Features(**counts, w=size, v=size * (target.momentum > 0), clip=3 * shrinks)
    layers = given.layers(3 + shrinks, f, inputs)
    require(len(given.network.embed.states) == 1, "a learner has one state")
    score, written = _score(given, f, layers[0])
    held = _Held(given, f, layers[1])
    heads, its = held.grid(score.most()) if link.form == "both" else held.heads(score.most())
    gates = np.concatenate([f("state"), f("other") - f("state")])
    key = np.concatenate([f("link"), -FAR * f("other"), -FAR * f("example")])
    average, update, collected = read_average(target, layers[2], f, f("state"), gates, key, np.eye(size, width))
    body, clip = [written, its, collected], None
    if shrinks:
        shrink, clip = shrinking(given, f, "asks")
        body.append(shrink)
        _, offsets, values = held.registers[:, f.at["clip"]].T
        lowest = offsets <= offsets.min() + 2 * SILENT
        require(not values[lowest].any(), "registers change the key of the reference in a threshold")
    weight, mark = np.eye(width, inputs), inputs - 2 + (link.form == "margin")
    weight[f.at["plus"], mark], weight[f.at["minus"], mark] = 0.5, -0.5
    bias = f.token(example=1.0, plus=0.5, minus=0.5)
    embed = Embed(weight[None], bias[None], held.registers, held.state, None, None)
    given.require_written(embed, [], body, linear(f("w")))
    return Step(average, update, clip, score, (heads,))


def _score(given: Given, f: Features, layer: Attention) -> tuple[Score, Attention]:
    residual, size = given.links[0].form == "residual", given.target.size
    sharpness, outputs = powers(layer.query[:, 0, 0]), layer.output[:, f.at["score"][0], 0]
    asked = np.concatenate([np.eye(size, f.width), *([-f("label")] if residual else [])])
    query = np.stack([np.concatenate([h * asked, f("example", "other")]) for h in sharpness])
    far = [-FAR * f("hidden"), -FAR * (f("state") + f("zero"))]
    key = np.concatenate([f("w"), *([f("state")] if residual else []), *far])
    output, value = outputs[:, None, None] * f("score").T, f("state") - f("zero")
    written = attention(query, key, value, output, without(f, "score"), "registers+states")
    return Score(sharpness, tuple(outputs.tolist()), size + residual), written


class _Held:
    """Registers and the state, written: free are slopes, offsets and values, of the link and of a threshold."""

    def __init__(self, given: Given, f: Features, layer: Attention) -> None:
        self.given, self.f, self.layer, embed = given, f, layer, given.network.embed
        free = [*f.at["anchors"], *f.at["clip"]]
        self.registers = np.tile(f.token(other=1.0, hidden=1.0, asks=-1.0), (len(embed.registers), 1))
        self.registers[:, free] = embed.registers[:, free]
        self.state = f.token(state=1.0, other=1.0, asks=1.0)[None]
        self.state[:, free] = embed.states[:1, free]

    def _refer(self, place: int) -> None:
        """The register that is the reference."""
        if not place < len(self.registers):
            raise NotVerified("a learner without a reference of scores")
        self.registers[place, self.f.at["hidden"] + self.f.at["zero"]] = 0.0, 1.0

    def heads(self, most: float) -> tuple[Heads, Attention]:
        """Registers are the reference, anchors for sign 1, as many for sign -1, and those of a threshold."""
        f, labelled = self.f, self.given.links[0].form == "labelled"
        self._refer(0)
        count = int((self.given.network.embed.registers[:, f.at["of_plus"]] == 1).sum())
        plus, minus = np.arange(1, 1 + count), np.arange(1 + count, 1 + 2 * count)
        require(count > 0 and 2 * count < len(self.registers), "a learner without anchors")
        self.registers[plus, f.at["of_plus"]] = self.registers[minus, f.at["of_minus"]] = 1.0
        far = -float(self.layer.key[0, 2, f.at["of_minus"][0]]) if self.layer.key.shape[1] > 2 else 0.0
        anchors = f.anchors(np.concatenate([self.registers, self.state]))
        silent = far >= 2 * SILENT and not anchors[:, [0, -1], 2].any()
        require(silent, "tokens that are no examples have a link")
        lowered = np.zeros(anchors.shape[1])
        lowered[minus] = -far
        parts = [heard(one, lowered, plus, minus, most, self.given.model) for one in anchors]
        asked, gates = f("score", "example", "plus", "minus", "other"), -far * f("of_minus", "of_plus", "hidden")
        skip = without(f, "link", -f("label") if labelled else 0.0)
        return Heads(tuple(parts), taken=labelled), link_layer(f, asked, gates, skip, "registers+states", None)

    def grid(self, most: float) -> tuple[Heads, Attention]:
        """Registers are the points of the grid, row by row, the reference, and those of a threshold."""
        f, labels, sides = self.f, self.given.links[0].labels, self.layer.grid or ()
        if len(sides) != 2 or sides[0] < 2 or len(f.at["anchors"]) != 6:
            raise NotVerified("a link of two variables has a grid")
        p, q = sides
        self._refer(p * q)
        points = self.registers[: p * q, f.at["anchors"]].reshape(p, q, 6)
        slopes, offsets, gates = points[:, 0, :3].T
        far = float(gates[-1])
        steep = float(np.abs(slopes[:-1]).max() * most + np.abs(offsets[:-1]).max())
        steep += float(np.abs(points[0, :, 3]).max() * labels + np.abs(points[0, :, 4]).max())
        off = (slopes[-1], offsets[-1]) == (0.0, -far) and (gates[:-1] == -far).all() and not points[-1, :, 5].any()
        require(bool(off) and 4 * (steep + SILENT) <= far, "points of a grid come within reach that are not meant")
        held = Grid(((slopes[:-1], offsets[:-1]), (points[0, :, 3], points[0, :, 4])), np.zeros(2), points[:-1, :, 5])
        nothing, signs = np.zeros((1, f.width)), ((1.0, "minus"), (-1.0, "plus"))
        query = np.stack([
            np.concatenate([sign * f("score"), f("example"), f(unmeant) + f("other"), sign * f("label"), f("example"),
                            nothing]) for sign, unmeant in signs
        ])  # fmt: skip
        key = np.concatenate([np.eye(f.width)[f.at["anchors"][:5]], nothing])
        output = np.stack([sign * f("link").T for sign, _ in signs])
        value = np.eye(f.width)[f.at["anchors"][5:]]
        return Heads(grid=held), attention(query, key, value, output, without(f, "link"), grid=(p, q))
