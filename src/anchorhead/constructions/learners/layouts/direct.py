"""The squared loss, one attention a step: heads that are alike but for their sharpness h.

The state token carries w and asks; the examples are the keys, once with either sign. With r_i = w . x_i - y_i the
logits are h r_i and -h r_i and the values x_i and -x_i, so one head reads

    (sum_i x_i sinh(h r_i)) / (sum_i cosh(h r_i)) = h g + O(h^3),    g = mean of r_i x_i, the gradient.

Two sharpnesses, h and 2h, weighted 4/3 and -1/3, leave h^5. The state's own key is out of reach, and so are registers.
Examples and registers ask as well, and what becomes of their w nobody sees: keys and values are of features that stay
as they are. A threshold is one more layer.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from anchorhead.constructions.learners.layouts.stored import Stored
from anchorhead.constructions.learners.layouts.threshold import (
    beside_clip,
    clip_in,
    clip_names,
    threshold_layers,
)
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.steps import OUT_OF_REACH, Step, squared_step
from anchorhead.lemmas.learners.update import added_to_w
from anchorhead.network import Attention, Embed, Linear, Network, Repeat


def read(network: Network, target: Descent) -> Step:
    """The step whose numbers a network of this layout holds."""
    w = target.features + 3
    stored = Stored.of(network, 1 + bool(target.threshold), 1)
    stored.require_width(w + len((*target.entry_names(), *clip_names(target))))
    sharpness = float(stored.body[0].query[0, 0, w])
    return squared_step(Average.of(target, sharpness, stored.dtype, clip_in(stored, target)))


def build(target: Descent, step: Step) -> Network:
    """The network of a descent on the squared loss, certificate left out."""
    d, weights, collect = target.features, target.weights, cast(Average, step.collect)
    entries = target.entry_names()
    names = (*(f"x{j}" for j in range(d)), "sign", "label", "is no example", *entries, *clip_names(target))
    sign, label, kind, w = d, d + 1, d + 2, d + 3
    width, pick = len(names), np.eye(len(names))
    columns = [*range(d), *([sign] if target.intercept else [])]
    slots = list(range(w, w + weights))
    speeds = list(range(w + weights, w + len(entries)))
    one = np.stack([*pick[slots], pick[kind]])
    attention = Attention(
        np.stack([np.concatenate([h * one, pick[None, kind]]) for h in collect.sharpness]),
        np.concatenate([pick[columns], -pick[None, label], -OUT_OF_REACH * pick[None, kind]])[None],
        pick[None, columns],
        added_to_w(collect.outputs, width, slots, speeds),
        skip=Linear(collect.update.skip(width, slots, speeds), features=names),
        features=names,
        labels=tuple(f"the gradient, at sharpness {h:g}" for h in collect.sharpness),
    )
    registers, states = beside_clip(collect.clip, np.zeros((0, width)), pick[None, kind], pick[kind])
    embed = Embed(np.eye(width, d + 2), np.zeros(width), registers=registers, states=states, features=names)
    repeat = Repeat((attention, *threshold_layers(target, names, w, kind)), target.steps)
    return Network([embed, repeat, Linear(pick[slots], features=target.weight_names("w"))], output="state")
