"""Any loss by its link, three attentions a step, the same weights for any number of examples.

With z_i the argument of the link phi at example i (s - y, s or y s, as its form says; s = w . x_i):

    score     every example asks with h x_i. The state, whose key is w and whose value is 1, and a reference of key 0
              and value -1 answer: tanh(h z_i / 2). Two sharpnesses, h and 2h, weighted 4/3 and -1/3 and scaled by 2/h,
              leave z_i + O(h^4 z_i^5)
    link      every example asks the anchors of the head for phi with its score; for phi(s) - y the skip takes off y
    collect   the state asks the examples, once with either sign, as for the squared loss (incontext.squared): logits
              h g_i and -h g_i, values x_i and -x_i, so it reads h times the mean of g_i x_i, the gradient

Copies of sign -1 have scores of the other sign and need links of the other sign, so there are anchors for them too,
with slopes and values negated. Examples see registers and states alone, so the cost of a step grows with the number of
examples and not with its square. The matrices are those of proof.descent.descent_linked_layers. A threshold is one more
layer.
"""

from __future__ import annotations

import math

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.incontext.link_heads import link_head
from anchorhead.incontext.squared import entry_names, kept, weight_names
from anchorhead.incontext.threshold import with_threshold
from anchorhead.network import Attention, Embed, Linear, Network, Repeat
from anchorhead.proof.descent.descent_linked_form import ROOM, least_far
from anchorhead.proof.descent.descent_linked_layers import (
    Scoring,
    Slots,
    collect_layer,
    embed_layer,
    hidden_register,
    link_layer,
    score_layer,
)
from anchorhead.targets.descent import Descent

ANY_SCORES = (-8.0, 8.0)
"""For links whose head serves on the whole line."""
SHARES = ((1.0, 4 / 3), (2.0, -1 / 3))
"""Sharpnesses h and 2h with these weights leave no term of order h^2."""


def linked_network(target: Descent, dtype: str, score_sharpness: float, sharpness: float) -> Network:
    """The network of a descent on a loss with a link of one variable, certificate left out.

    score_sharpness   h of the layer score, a power of two
    sharpness         h of the layer collect, a power of two
    """
    form = target.loss.form
    parts = link_head(target.loss, target.scores or ANY_SCORES, dtype).parts
    slots = Slots.of(target, len(parts))
    names = slots.names(entry_names(target))
    scoring = scoring_of(score_sharpness, form == "phi(s - y)", dtype)
    far = out_of_reach(least_far(scoring, parts), target, "heads", dtype)
    link = link_layer(slots, far, form == "phi(s) - y", names, dtype)
    embed = embed_layer(slots, parts, far, names, dtype)
    return assembled(target, slots, embed, scoring, link, sharpness, far)


def scoring_of(sharpness: float, residual: bool, dtype: str) -> Scoring:
    """The layer score with sharpnesses h and 2h; residual: whether its scores are s - y."""
    outputs = (float(np.dtype(dtype).type(2 * share / (sharpness * times))) for times, share in SHARES)
    return Scoring(tuple(sharpness * times for times, _ in SHARES), tuple(outputs), residual)


def out_of_reach(least: float, target: Descent, what: str, dtype: str) -> float:
    """A power of two of at least this size, if logits of that size do not overflow."""
    far = 2.0 ** math.ceil(math.log2(least))
    if not far <= float(np.finfo(dtype).max) / ROOM:
        raise AnchorheadError(f"the link {target.loss.link} is too steep for {what} in {dtype}: smooth it more")
    return far


def assembled(
    target: Descent, slots: Slots, embed: Embed, scoring: Scoring, link: Attention, sharpness: float, far: float
) -> Network:
    """Score, the layer that reads the link, and collect, as often as there are steps; then w is picked."""
    names, dtype = embed.features or (), str(embed.weight.dtype)
    step = (
        score_layer(slots, scoring, names, dtype),
        link,
        collect_layer(
            slots,
            [sharpness * times for times, _ in SHARES],
            [-target.rate * share / (sharpness * times) for times, share in SHARES],
            kept(target, slots.width, slots.w),
            names,
            dtype,
        ),
    )
    read = Linear(np.eye(slots.width, dtype=dtype)[slots.entries], features=tuple(weight_names(target, "w")))
    network = Network([embed, Repeat(step, target.steps), read], output="state").approximating(target.record())
    return with_threshold(network, target, slots.w, slots.asks, hidden_register(slots, far))
