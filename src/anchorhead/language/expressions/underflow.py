"""What underflow may take from products in float64, whether numbers fade out gradually or become 0."""

from __future__ import annotations

import numpy as np

LEAST = 2.0**-1074
"""The smallest number above 0."""
NORMAL = 2.0**-960
"""From here on products, and bounds on their rounding, are normal numbers: they err relative to their size."""
LOST = 2.0**-1016
"""Above what underflow takes from a product and from bounds on its rounding."""


def least(*arrays: np.ndarray) -> float:
    """The smallest size of what is not 0."""
    return min((float(np.abs(one[one != 0]).min(initial=np.inf)) for one in arrays), default=np.inf)


def lost(left: tuple[np.ndarray, ...], right: tuple[np.ndarray, ...]) -> float:
    """A bound on what underflow takes from the product of an entry of `left` with one of `right`, none of it if all
    products are normal numbers."""
    return LOST if least(*left) * least(*right) < NORMAL else 0.0
