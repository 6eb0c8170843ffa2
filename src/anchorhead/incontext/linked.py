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
examples and not with its square. The matrices are those of proof.descent_linked_layers. A threshold is one more layer.
"""

from __future__ import annotations

import math

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.incontext.link_heads import link_head
from anchorhead.incontext.squared import kept, weight_names
from anchorhead.incontext.threshold import with_threshold
from anchorhead.network import Linear, Network, Repeat
from anchorhead.proof.descent_linked_form import ROOM, least_far
from anchorhead.proof.descent_linked_layers import (
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


def linked_network(target: Descent, dtype: str, score_sharpness: float, sharpness: float) -> Network:
    """The network of a descent on a loss with a link of one variable, certificate left out.

    score_sharpness   h of the layer score, a power of two
    sharpness         h of the layer collect, a power of two
    """
    parts = link_head(target.loss, target.scores or ANY_SCORES, dtype).parts
    slots = Slots.of(target, len(parts))
    entries = [*weight_names(target, "w"), *(weight_names(target, "v") if target.momentum else [])]
    names = slots.names(entries)
    pairs = ((1.0, 4 / 3), (2.0, -1 / 3))
    form = target.loss.form
    scoring = Scoring(
        tuple(score_sharpness * times for times, _ in pairs),
        tuple(float(np.dtype(dtype).type(2 * share / (score_sharpness * times))) for times, share in pairs),
        form == "phi(s - y)",
    )
    far = 2.0 ** math.ceil(math.log2(least_far(scoring, parts)))
    if not far <= float(np.finfo(dtype).max) / ROOM:
        raise AnchorheadError(f"the link {target.loss.link} is too steep for heads in {dtype}: smooth it more")
    step = (
        score_layer(slots, scoring, names, dtype),
        link_layer(slots, far, form == "phi(s) - y", names, dtype),
        collect_layer(
            slots,
            [sharpness * times for times, _ in pairs],
            [-target.rate * share / (sharpness * times) for times, share in pairs],
            kept(target, slots.width, slots.w),
            names,
            dtype,
        ),
    )
    read = Linear(np.eye(slots.width, dtype=dtype)[slots.entries], features=tuple(weight_names(target, "w")))
    embed = embed_layer(slots, parts, far, names, dtype)
    network = Network([embed, Repeat(step, target.steps), read], output="state", target=target.record())
    return with_threshold(network, target, slots.w, slots.asks, hidden_register(slots, far))
