"""A link g(s, y) that is truly of two variables, three attentions a step: score, grid and collect.

Score and collect are those of incontext.linked. In between every example asks a grid whose points are registers, with
the score that was written for it along one axis and its label along the other. The prompt holds (x, 1, y) and its
negative, and the copy of sign -1 needs -g(-s, -y) at its own score s and label y: a second head asks with both negated,
and is subtracted. One anchor more along s, with values 0, takes over in the head that is not meant for a copy. The
matrices are those of proof.descent.descent_grid. A threshold is one more layer.
"""

from __future__ import annotations

from anchorhead.errors import AnchorheadError
from anchorhead.incontext.link_heads import link_grid
from anchorhead.incontext.linked import assembled, out_of_reach, scoring_of
from anchorhead.incontext.squared import entry_names
from anchorhead.network import Network
from anchorhead.proof.descent.descent_grid import grid_embed, grid_far, grid_layer, grid_names, grid_slots
from anchorhead.targets.descent import Descent


def linked_grid_network(target: Descent, dtype: str, score_sharpness: float, sharpness: float) -> Network:
    """The network of a descent on a loss with a link of two variables, certificate left out.

    score_sharpness   h of the layer score, a power of two
    sharpness         h of the layer collect, a power of two
    """
    if target.scores is None or target.labels is None:
        raise AnchorheadError(f"the link {target.loss.link} needs a range of scores and of labels: give both")
    atom = link_grid(target.loss, target.scores, target.labels, dtype)
    slots = grid_slots(target)
    names = grid_names(slots, entry_names(target))
    scoring = scoring_of(score_sharpness, False, dtype)
    far = out_of_reach(grid_far(scoring, atom, target.labels), target, "a grid", dtype)
    p, q = atom.sides
    link = grid_layer(slots, (p, q), names, dtype)
    return assembled(target, slots, grid_embed(slots, atom, far, names, dtype), scoring, link, sharpness, far)
