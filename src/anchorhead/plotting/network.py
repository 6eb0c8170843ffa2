"""A network of truncated linear functions: beside its target, and its error inside the proven band."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.proof.search import Segments
from anchorhead.targets.ramp import KIND, TruncatedLinear

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 4000
MOST_DRAWN = 6
"""Of more output features than these, the first are drawn."""


def draw_network(network: Network) -> Figure:
    """Target and network over s = w·x + t above, their difference and the proven bound below."""
    if network.target is None or network.target.kind != KIND or network.certificate is None:
        known = "none" if network.target is None else repr(network.target.kind)
        raise AnchorheadError(
            f"a network with the target {known} cannot be plotted: "
            "one with a truncated linear target and a certificate can"
        )
    target, certificate = TruncatedLinear.from_record(network.target), network.certificate
    bound = certificate.bound
    s, computed, exact = _values(network, target, certificate.on)
    left_out = np.zeros(len(s), bool)
    for low, high in certificate.excluded:
        left_out |= (s > low) & (s < high)
    exact[left_out] = np.nan
    figure = style.figure(8.4, 6.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    drawn = min(target.outputs, MOST_DRAWN)
    for g in range(drawn):
        upper.plot(s, exact[:, g], color=style.PALE, linewidth=9, label="target" if g == 0 else None)
    for g in range(drawn):
        # where several outputs are 0, the earlier show around the later
        width, name = 2.2 + (drawn - 1 - g), f"network, output {g}" if target.outputs > 1 else "network"
        upper.plot(s, computed[:, g], color=style.SERIES[g], linewidth=width, label=name)
        lower.plot(s, computed[:, g] - exact[:, g], color=style.SERIES[g], linewidth=1.4)
    _hatch(certificate.excluded, (upper, lower))
    lower.axhspan(
        -bound,
        bound,
        color=style.ORANGE,
        alpha=0.22,
        linewidth=0,
        label=f"{certificate.kind}: at most {bound:.3g}",
    )
    for side in (-bound, bound):
        lower.axhline(side, color=style.ORANGE, linewidth=1.6)
    lower.set_ylim(-1.4 * bound, 2.1 * bound)
    upper.set_xlim(s[0], s[-1])
    upper.set_ylabel("output")
    lower.set_ylabel("network − target")
    lower.set_xlabel("pre-activation s = w·x + t")
    lower.ticklabel_format(axis="y", style="sci", scilimits=(-3, 3), useMathText=True)
    for axes in (upper, lower):
        axes.grid(True)
    upper.legend(loc="upper left")
    lower.legend(loc="upper left", ncols=2)
    more = "" if drawn == target.outputs else f", the first {drawn} drawn"
    style.title(upper, "Target and attention network", f"{target}{more}, {network.dtype}")
    return figure


def _values(network: Network, target: TruncatedLinear, on: Box) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """s, and what network and target make of it; all tokens that reach so far take turns."""
    segments = Segments.of(target, on)
    least, most = segments.reach
    margin = 0.2 * (target.high - target.low)
    lows, highs = np.maximum(target.low - margin, least), np.minimum(target.high + margin, most)
    token = int((highs - lows).argmax())
    low, high = (lows[token], highs[token]) if lows[token] < highs[token] else (least[token], most[token])
    if not low < high:
        raise AnchorheadError("the network cannot be plotted: no input of its box changes s = w·x + t")
    tokens = np.flatnonzero((least <= low) & (most >= high))
    s = np.linspace(low, high, len(tokens) * -(-POINTS // len(tokens)))
    wanted = np.zeros((len(s) // len(tokens), len(least)))
    wanted[:, tokens] = s.reshape(-1, len(tokens))
    x = segments.inputs(wanted)
    computed, exact = network(x, outside="ignore"), target.values(x)
    computed, exact = (y[:, tokens].astype(float).reshape(len(s), -1) for y in (computed, exact))
    return s, computed, exact


def _hatch(excluded: tuple[tuple[float, float], ...], panels: tuple[Axes, ...]) -> None:
    """Marks the intervals of s about which the certificate says nothing."""
    for axes in panels:
        for number, (low, high) in enumerate(excluded):
            label = "left out of the certificate" if number == 0 and axes is panels[-1] else None
            axes.axvspan(low, high, facecolor="white", edgecolor=style.GREY, hatch="/////", linewidth=0, label=label)
