"""Many learners in one network: which links, rates, penalties and where w begins is said by the rows of its prompt.

Rows are (x, v, a, b, a flag for each link and sign, start, none): they take part in w <- w - mean_i v_i (phi_i(w . x_i
- a_i) - b_i); negatives of rows have the other flag of their link. Where w begins is the v of one row that is no
example, none = 1, whose start is 1; of its negative start is -1. Registers are one that carries w, sign 1, one that
carries -w, sign -1, and the anchors of all links and their mirror images. In registers and the state, none is 1 too.

*start*, once. A register of w asks with FAR sign, keys are starts: it reads v of the row of start 1, or of its
negative, for all others are lower by FAR.

*score*, of which the two registers of w alone are seen (grid). A row asks with h x, keys are w: logits h w . x and
-h w . x, values 1 and -1. It reads tanh(h w . x); the skip takes off a.

*link*, of which registers alone are seen. A row asks with (score, 1, flags), keys are (slope, offset, gates), of which
those of other flags than the anchor's own are -away: all but the anchors of its link and sign are out of reach
(`heard`). The skip takes off b.

*collect*. The registers of w ask with (h sign, 1), keys are (link, -FAR none): logits h g_i at rows, and about -FAR at
all others, whose links are no larger than four times what anchors hold. Values are v. -w is moved by the negative.

The state sees the first register alone, and puts out what that holds. What others hold in w nobody reads, and their
scores and links are read by nobody but as said.
"""

from __future__ import annotations

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Embed
from anchorhead.verify.learners.heads import Heads, heard
from anchorhead.verify.learners.score import Score
from anchorhead.verify.learners.step import Step
from anchorhead.verify.learners.update import read_average
from anchorhead.verify.learners.written import FAR, Features, Given, attention, link_layer, powers, without


def read_many(given: Given, off: float) -> Step:
    """off: how much is taken off scores at most."""
    target, embed = given.target, given.network.embed
    size, flags, count = target.size, 2 * len(given.links), len(embed.registers)
    inputs = 2 * size + flags + 4
    anchors = embed.weight.shape[1] - (inputs + 5 + size + flags)
    require(anchors >= 3 and anchors % 3 == 0 and count > 2, "tokens have other features than those of this layout")
    f = Features(
        x=size, value=size, a=1, b=1, flags=flags, start=1, none=1, one=1, score=1, link=1, sign=1, register=1, w=size,
        gates=flags, anchors=anchors, v=0,
    )  # fmt: skip
    ask, _, collect = given.layers(3, f, inputs)
    h, outputs = powers(ask.query[:, 0, 0]), ask.output[:, f.at["score"][0], 0]
    score = Score(tuple(2 * one for one in h), tuple(outputs.tolist()), size, True)
    query = np.stack([one * f("x") for one in h])
    written = attention(
        query, f("w"), f("sign"), outputs[:, None, None] * f("score").T, without(f, "score", -f("a")), grid=(2,)
    )
    registers = np.tile(f.token(register=1.0, none=1.0), (count, 1))
    registers[:, f.at["anchors"]] = embed.registers[:, f.at["anchors"]]
    registers[:2, f.at["sign"][0]] = 1.0, -1.0
    gates = embed.registers[2:, f.at["gates"]]
    which, away = gates.argmax(axis=1), float(gates.min())
    registers[2:, f.at["gates"]] = away * (1 - np.eye(flags)[which])
    held, most = f.anchors(registers), score.most(off)
    made = []
    for k in range(len(given.links)):
        plus, minus = (2 + np.flatnonzero(which == 2 * k + sign) for sign in (0, 1))
        lowered = registers[:, f.at["gates"][2 * k]]
        parts = [heard(one, lowered, plus, minus, most, given.model) for one in held]
        made.append(Heads(tuple(parts), taken=True))
    linked = link_layer(f, f("score", "one", "flags"), f("gates"), without(f, "link", -f("b")), None, (count,))
    key = np.concatenate([f("link"), -FAR * f("none")])
    average, update, collected = read_average(target, collect, f, f("sign"), f("register"), key, f("value"))
    require(
        4 * max(average.sharpness) * float(np.abs(held[:, :, 2]).max(axis=1).sum()) <= FAR / 2,
        "a token is not out of reach of those that carry w",
    )
    begin = attention(FAR * f("sign")[None], f("start"), f("value"), f("w").T[None], np.eye(f.width))
    read = attention(f("register")[None], f("register"), f("w"), np.eye(size)[None], None, grid=(1,))
    rows = np.eye(f.width, inputs)[None], f.token(one=1.0)[None]
    tokens = Embed(*rows, registers, f.token(none=1.0)[None], None, None)
    given.require_written(tokens, [begin], [written, linked, collected], read)
    return Step(average, update, None, score, tuple(made), "pair")
