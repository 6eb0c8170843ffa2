"""The paper's picture of attention weights: both constructions at one input, for several ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anchorhead.constructions.truncated_linear import truncated_linear
from anchorhead.decimals import counted
from anchorhead.domain import Box
from anchorhead.lab.sweeps import ON, known_of, sample_functions, sharpness_of
from anchorhead.network import Network
from anchorhead.plotting import HeatMap, HeatMaps
from anchorhead.proof.search.search import Segments

WIDTHS = (1.0, 2.0, 4.0, 8.0)
FARTHEST = 2.4
"""The pre-activations of the sample input go from -FARTHEST to FARTHEST."""


def heat_maps(
    widths: Sequence[float] = WIDTHS, tokens: int = 20, heads: int = 3, features: int = 4, seed: int = 0
) -> HeatMaps:
    """The attention weights over ranges [-width/2, width/2] of an input whose tokens are sorted by s.

    The sharpness beta, the best one for the middle of the ranges, is the same for all: weights spread over
    several anchors where the range is narrow and its anchors are close, and gather on one where it is wide.
    """
    w, _ = sample_functions(tokens, features, -FARTHEST, FARTHEST, seed)
    s = np.linspace(-FARTHEST, FARTHEST, tokens)
    rows = {
        "single head": _row(w, s, widths, {"anchors": tokens}, intervals=tokens - 1),
        counted(heads, "head"): _row(w, s, widths, {"heads": heads}, intervals=(tokens - 2) * heads),
    }
    return HeatMaps(s, rows)


def _row(
    w: np.ndarray, s: np.ndarray, widths: Sequence[float], options: dict[str, Any], intervals: int
) -> tuple[HeatMap, ...]:
    reference = sorted(widths)[len(widths) // 2]
    c = sharpness_of(_network(w, reference, options, None))
    beta = c / (reference / intervals) ** 2
    return tuple(_heat_map(_network(w, width, options, beta), s, width) for width in widths)


def _network(w: np.ndarray, width: float, options: dict[str, Any], beta: float | None) -> Network:
    return truncated_linear(w, np.zeros(len(w)), -width / 2, width / 2, on=(-ON, ON), sharpness=beta, **options)


def _heat_map(network: Network, s: np.ndarray, width: float) -> HeatMap:
    target, certificate = known_of(network)
    x = Segments.of(target, Box.of((-ON, ON))).inputs(s[None])
    (weights,) = network.attention(x)
    return HeatMap(-width / 2, width / 2, weights[0], sharpness_of(network), certificate.bound)
