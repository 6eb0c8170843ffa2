"""A link g(s, y) that is truly of two variables, three attentions a step: score, grid and collect.

Score and collect are those of incontext.linked. In between every example asks a grid whose points are registers, with
the score that was written for it along one axis and its label along the other. The prompt holds (x, 1, y) and its
negative, and the copy of sign -1 needs -g(-s, -y) at its own score s and label y: a second head asks with both negated,
and is subtracted. One anchor more along s, with values 0, takes over in the head that is not meant for a copy. The
matrices are those of proof.descent_grid. A threshold is one more layer.
"""

from __future__ import annotations

import math

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.incontext.link_heads import link_grid
from anchorhead.incontext.squared import kept, weight_names
from anchorhead.incontext.threshold import with_threshold
from anchorhead.network import Linear, Network, Repeat
from anchorhead.proof.descent_grid import grid_embed, grid_far, grid_layer, grid_names, grid_slots
from anchorhead.proof.descent_linked_form import ROOM
from anchorhead.proof.descent_linked_layers import Scoring, collect_layer, hidden_register, score_layer
from anchorhead.targets.descent import Descent

SHARES = ((1.0, 4 / 3), (2.0, -1 / 3))
"""Sharpnesses h and 2h with these weights leave no term of order h^2."""


def linked_grid_network(target: Descent, dtype: str, score_sharpness: float, sharpness: float) -> Network:
    """The network of a descent on a loss with a link of two variables, certificate left out.

    score_sharpness   h of the layer score, a power of two
    sharpness         h of the layer collect, a power of two
    """
    if target.scores is None or target.labels is None:
        raise AnchorheadError(f"the link {target.loss.link} needs a range of scores and of labels: give both")
    atom = link_grid(target.loss, target.scores, target.labels, dtype)
    slots = grid_slots(target)
    entries = [*weight_names(target, "w"), *(weight_names(target, "v") if target.momentum else [])]
    names = grid_names(slots, entries)
    scoring = Scoring(
        tuple(score_sharpness * times for times, _ in SHARES),
        tuple(float(np.dtype(dtype).type(2 * share / (score_sharpness * times))) for times, share in SHARES),
        residual=False,
    )
    far = 2.0 ** math.ceil(math.log2(grid_far(scoring, atom, target.labels)))
    if not far <= float(np.finfo(dtype).max) / ROOM:
        raise AnchorheadError(f"the link {target.loss.link} is too steep for a grid in {dtype}: smooth it more")
    p, q = atom.sides
    step = (
        score_layer(slots, scoring, names, dtype),
        grid_layer(slots, (p, q), names, dtype),
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
    embed = grid_embed(slots, atom, far, names, dtype)
    network = Network([embed, Repeat(step, target.steps), read], output="state", target=target.record())
    return with_threshold(network, target, slots.w, slots.asks, hidden_register(slots, far))
