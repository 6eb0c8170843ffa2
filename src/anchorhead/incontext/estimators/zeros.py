"""Exact zeros: entries of w that the soft threshold made 0, as far as its proven error tells, are read as 0.

The last layer of a lasso's step makes S(u) = u - clip(u, -tau, tau) of an entry u, tau = rate threshold, and softmax
heads do so within an error that is proven for every u (lemmas.learners.threshold). So what is 0 at the minimum
leaves the network as 1e-15 or so. Let the column have the scale t, so that the head asks with s = u / t and t times
what it reads is subtracted. If S(u) = 0, that is |u| <= t tau, then with roundings by at most u0 each (those of 1 / t,
of its product with u, of t, of its product with what is read, and of the difference) what comes out is no larger than

    e = t (E + 6 u0 (tau + E)),    E the proven error of the clip.

Entries of at most e are therefore read as 0. This is done outside of the network, like the scaling of columns. Those
among them that were no zeros move by at most e, about as much as the threshold itself may be off.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.networks import clip_of
from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.language.targets.descent import Descent
from anchorhead.lemmas.learners.threshold import clip_error
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of


def with_zeros(learner: Learner, w: Float[np.ndarray, " weights"]) -> Float[np.ndarray, " weights"]:
    """w with exact zeros where a threshold left nothing; as it is for a learner without one."""
    descent = learner.descent
    clip = clip_of(descent, learner.dtype)
    return w if clip is None else np.where(np.abs(w) <= _least(descent, clip), 0.0, w)


def _least(descent: Descent, clip: Part) -> Float[np.ndarray, " weights"]:
    """e for each entry, below 0 where no threshold acts; all of them where the clip has no proof."""
    model, tau = arithmetic_of(clip.slopes.dtype.name), descent.rate * descent.threshold
    try:
        error = clip_error(clip, descent.rate, descent.threshold)
    except CertificateError:
        return np.full(descent.weights, -1.0)
    total = error.exact + error.rounding
    scales = np.array([*(descent.scales or [1.0] * descent.features), *[1.0] * descent.intercept])
    least = scales * (total + 6.01 * model.unit * (tau + total)) + 8 * (1 + scales) * model.tiny
    return np.where(descent.penalised > 0, least, -1.0)
