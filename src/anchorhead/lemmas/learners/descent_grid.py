"""The proof for gradient descent with a link g(s, y) of two variables (incontext.linked_grid): score, grid, collect.

As lemmas.learners.descent_linked, but the second layer is a grid over the written score and the label. The error of the
grid (lemmas.learners.grid_link) holds at the score that was written, and g moves by at most |written - s| times its
steepest slope by s in between. The label is exact.

Copies of sign 1 read the grid by one head, copies of sign -1 by another, which asks with -s and -y and whose output is
subtracted. Along s the grid has one anchor more, "off", with values 0. With t = 0 for a copy that a head is meant for,
t = 1 for the other copy and for tokens that are no examples, and M = `far`, anchors add -M t to their logits and "off"
has M t - M for examples and M t for others. Sums of these are exact, so a copy's own logits are as they would be
without, and "off" is out of its reach; in all other cases "off" alone is read, exactly 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from anchorhead.errors import CertificateError
from anchorhead.lemmas.learners import descent_linked
from anchorhead.lemmas.learners.descent_linked import ScoresOutside
from anchorhead.lemmas.learners.descent_linked_link import Known
from anchorhead.lemmas.learners.descent_linked_paths import NOTHING
from anchorhead.lemmas.learners.grid_link import GridLink
from anchorhead.lemmas.learners.loop import DescentBound
from anchorhead.lemmas.learners.transformer import read as read_form
from anchorhead.network import Network
from anchorhead.proof.arithmetic.arithmetic import Arithmetic
from anchorhead.targets.descent import Descent

METHOD = (
    "series of tanh, sinh and cosh with bounds on the rest; the link's grid interpolated at Chebyshev points, "
    "remainders on Bernstein ellipses; softmax and sums in any order of rounding; errors of the steps add up, "
    "multiplied by no more than the link's slopes allow"
)


@dataclass(frozen=True, eq=False)
class KnownGrid(Known):
    """A step as it is stored, and what is proven of its grid."""

    link: GridLink

    def head_rounding(self, model: Arithmetic) -> float:
        return self.link.error(self.facts.low, self.facts.high, 0.0, self.link.labels, 0, model).rounding

    def values(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.link.values(z, y)


def read(network: Network, target: Descent) -> KnownGrid:
    """The step, if the network is one of incontext.linked_grid for this target; CertificateError otherwise."""
    if target.scores is None or target.labels is None or target.loss.form != "g(s, y)":
        raise CertificateError("the network is no gradient descent with a grid for scores and labels that are stated")
    step = read_form(network, target)
    held = GridLink(target.loss.link, step.held, *target.scores, target.labels)
    facts = held.facts(0.0)
    return KnownGrid(step, facts, held.slopes_on_cells(), False, False, held)


def bound_for_prompt(
    step: KnownGrid, target: Descent, A: Float[np.ndarray, "n weights"], y: Float[np.ndarray, " n"], model: Arithmetic
) -> DescentBound:
    """For one prompt; raises ScoresOutside where the grid does not serve."""
    most = float(np.abs(y).max())
    if not most <= step.link.labels:
        raise ScoresOutside(
            f"labels of this prompt reach {most:.4g}, but the grid for the link {target.loss.link} serves up to "
            f"{step.link.labels:g}: build with labels=({-math.ceil(most)}, {math.ceil(most)})"
        )
    return descent_linked.bound_for_prompt(step, target, A, y, model)


def bound_for_box(
    step: KnownGrid, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> DescentBound:
    """For every prompt of at most target.examples with |x_ij| <= x_j and |y_i| <= y; see
    lemmas.learners.descent_linked."""
    if not y <= step.link.labels:
        return NOTHING
    return descent_linked.bound_for_box(step, target, x, y, model)


def error_of_a_step(
    known: KnownGrid, target: Descent, x: Float[np.ndarray, " weights"], y: float, model: Arithmetic
) -> float:
    """See lemmas.learners.descent_linked."""
    return descent_linked.error_of_a_step(known, target, x, y, model) if y <= known.link.labels else math.inf
