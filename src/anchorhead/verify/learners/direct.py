"""The layout *direct*: the squared loss, one attention a step.

Tokens hold (x, sign, label, kind, w, v): rows of a prompt (x_i, 1, y_i) and their negatives, kind 0; the state, kind 1,
which carries w; registers, kind 1, for a threshold alone. With a an example's columns (x, and its sign for an
intercept), the state asks with (h w, h, 1), and keys are (a, -label, -FAR kind). So its logits are h (w . a_i - y_i)
and minus that at rows, of which one is at least 0, and exactly -FAR at itself and at registers, which hold no a. Values
are a: it reads a signed average of residuals (average.py).

Rows and registers ask too, and add what they read to their own w and v, which nobody reads: queries of the state are of
its own features, keys and values of a, label and kind, which no layer changes.
"""

from __future__ import annotations

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Embed
from anchorhead.verify.learners.step import Step
from anchorhead.verify.learners.threshold import shrinking
from anchorhead.verify.learners.update import read_average
from anchorhead.verify.learners.written import FAR, Features, Given, linear


def read_direct(given: Given) -> Step:
    target, embed = given.target, given.network.embed
    good = given.links[0].form == "residual" and given.links[0].line == (1, 0)
    require(good, "a step for residuals, and another link than s - y")
    size, inputs = target.size, target.features + 2
    f = Features(x=inputs - 2, sign=1, label=1, kind=1, w=size, v=size * (target.momentum > 0), clip=3 * target.shrinks)
    layer = given.layers(1 + target.shrinks, f, inputs)[0]
    columns = np.eye(size, f.width)
    key = np.concatenate([columns, -f("label"), -FAR * f("kind")])
    average, update, collected = read_average(target, layer, f, f("w", "kind"), f("kind"), key, columns)
    body, clip = [collected], None
    others = [np.tile(f.token(kind=1.0), (len(one), 1)) for one in (embed.registers, embed.states[:1])]
    if target.shrinks:
        shrink, clip = shrinking(given, f, "kind")
        body.append(shrink)
        for one, stored in zip(others, (embed.registers, embed.states), strict=True):
            one[:, f.at["clip"]] = stored[: len(one), f.at["clip"]]
    require(bool(target.shrinks or not len(embed.registers)), "registers, and no threshold")
    tokens = Embed(np.eye(f.width, inputs)[None], np.zeros((1, f.width)), others[0], others[1], None, None)
    given.require_written(tokens, [], body, linear(f("w")))
    return Step(average, update, clip)
