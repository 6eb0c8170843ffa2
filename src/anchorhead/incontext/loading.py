"""Saved networks, learners among them."""

from __future__ import annotations

from pathlib import Path

from anchorhead.incontext.learner import Learner
from anchorhead.network import Network, files
from anchorhead.targets.descent import KIND


def load(path: str | Path) -> Network:
    """Reads a saved network; its structure and that its weights are finite is checked, its bound is not."""
    network = files.load(path)
    return Learner.of(network) if network.target is not None and network.target.kind == KIND else network
