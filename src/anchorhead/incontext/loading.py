"""Saved networks, learners among them."""

from __future__ import annotations

from pathlib import Path

from anchorhead.constructions.learners.approximating import CONSTRUCTIONS
from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.many import ManyLearner
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.network import Network, files


def load(path: str | Path) -> Network:
    """Reads a saved network; its structure and that its weights are finite is checked, its bound is not.

    returns   a Network, or the Learner that it was

        >>> ah.head("relu", on=(-1, 1), within=1e-6).save("relu.safetensors")
        >>> ah.load("relu.safetensors").certificate.kind
        'proven'
    """
    network = files.load(path)
    known = {CONSTRUCTIONS[Descent]: Learner, CONSTRUCTIONS[ManyLearners]: ManyLearner}.get(network.construction or "")
    return network if known is None else known.of(network)
