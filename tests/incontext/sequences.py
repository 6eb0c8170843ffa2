"""Networks in the sequence layout, with a range of scores for those who state none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anchorhead.constructions.learners.networks import anchored
from anchorhead.constructions.learners.written import network_of
from anchorhead.language.targets.descent import Descent
from anchorhead.network import Network


def sequence_network(target: Descent, dtype: str, labels: float = 4.0) -> Network:
    """For |y| up to `labels`, where the target does not say. Residuals of a straight link reach no further than this
    with a safe rate (lemmas.learners.box); other links get a range that serves standardised examples."""
    grown = (1 + target.momentum) / (1 - target.momentum)
    reach = 8.0 if target.loss.link.affine() is None else 1.125 * grown * float(np.sqrt(target.examples)) * labels
    target = replace(target, scores=target.scores or (-reach, reach))
    return network_of(target, anchored(target, target.labels or labels, dtype), dtype)
