"""Numbers that a network forms must stay below the largest of its dtype: no model of rounding covers infinities."""

from __future__ import annotations

import numpy as np

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from anchorhead.network.magnitude import sizes

ROOM = 8
"""How many times below the largest number of the dtype everything has to stay."""


def has_room(network: Network, box: Box) -> bool:
    """Whether all numbers that it forms stay below it, for inputs in a box of the network's input shape."""
    return all(size <= _limit(network) for size in _largest(network, box))


def require_room(network: Network, box: Box) -> None:
    if not has_room(network, box):
        raise AnchorheadError(
            f"numbers of up to {max(_largest(network, box)):.3g} on {box} are too near to the largest of "
            f"{network.dtype}, {np.finfo(network.dtype).max:.3g}: use a smaller box or smaller weights"
            + (", or float64" if network.dtype == "float32" else "")
        )


def _largest(network: Network, box: Box) -> tuple[float, float, float]:
    """Bounds on all logits, on all activations, and on all entries of queries, keys and values."""
    found = sizes(network.layers, np.atleast_2d(box.magnitude))
    return found.logit, found.activation, found.asked


def _limit(network: Network) -> float:
    return float(np.finfo(network.dtype).max) / ROOM
