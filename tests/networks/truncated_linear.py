"""Rows of the paper's two theorems on truncated linear functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import anchorhead as ah
from anchorhead.network import Network

from .row import Row, row


def _truncated(name: str, **words: Any) -> Row:
    def build(dtype: str) -> Network:
        rng = np.random.default_rng(3)
        return ah.truncated_linear(rng.normal(size=(3, 2)), rng.normal(size=3), -1, 1, on=(-2, 2), dtype=dtype, **words)

    options = {name: word for name, word in words.items() if name != "outputs"}
    return row(f"truncated linear, {name}", "truncated linear", build, "proven", "tokens", options=options)


def _of_nothing(dtype: str) -> Network:
    return ah.truncated_linear(np.zeros((3, 2)), np.full(3, 0.5), -1, 1, on=(-2, 2), anchors=5, dtype=dtype)


ROWS = (
    _truncated("one head", anchors=5),
    _truncated("as many anchors as tokens"),
    _truncated("many heads", heads=2),
    _truncated("outputs", anchors=6, outputs=[0, 0, 1, 1, 0, 0]),
    _truncated("outputs of many heads", heads=2, outputs=[0, 1]),
    _truncated("flat", anchors=5, sharpness=0.3),
    row(
        "truncated linear, of nothing",
        "truncated linear",
        _of_nothing,
        *("proven", "tokens", "constant"),
        options={"anchors": 5},
    ),
)
