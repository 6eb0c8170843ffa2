"""Claims for networks that are made by hand, as derivations name them."""

from __future__ import annotations

import numpy as np

from anchorhead.network.claim_table import ClaimTable
from anchorhead.verify.named import Claimed, Named, Table

ENTRY = (2, 0, 0)
"""The function of a program of an input, a map of it and a function of that."""
TANH = Claimed(Named(ENTRY, 1.0, 0.0, 1.0, 0.0, 0.0), 0, None)
"""Of softmaxes that read that function of the number which they ask with."""


def each(count: int, values: np.ndarray | None = None) -> Table:
    """So many softmaxes of the first layer, each of which computes that."""
    one, numbers = [0, 0, *ENTRY], [1.0, 0.0, 1.0, 0.0, 0.0]
    return Table({0: [(one, numbers, [(head, 0, values)]) for head in range(count)]})


def together(layer: int, count: int, sum_is: float) -> ClaimTable:
    """So many softmaxes of a layer, the first, which add up to a constant."""
    softmaxes = np.stack([np.zeros(count, int), np.arange(count), np.zeros(count, int), np.full(count, -1)], axis=1)
    units = np.array([[layer, 0, *ENTRY]])
    return ClaimTable(units, np.array([[1.0, 0.0, 0.0, sum_is, 0.0]]), softmaxes, np.zeros((0, 0)))
