"""A network that computes truncated linear functions: beside its target, and its error inside the proven band."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.proof.search import Segments
from anchorhead.targets.ramp import KIND, TruncatedLinear

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 4001
MOST_DRAWN = 6
"""Of more output features than these, the first are drawn."""


def draw_network(network: Network) -> Figure:
    """Target and network over s = w·x + t above, their difference and the proven bound below."""
    if network.target is None or network.target.kind != KIND or network.certificate is None:
        known = "none" if network.target is None else repr(network.target.kind)
        raise AnchorheadError(
            f"a network with the target {known} cannot be plotted: one with a truncated linear target and a certificate can"
        )
    target, bound = TruncatedLinear.from_record(network.target), network.certificate.bound
    s, computed, exact = _values(network, target)
    left_out = np.zeros(len(s), bool)
    for low, high in network.certificate.excluded:
        left_out |= (s > low) & (s < high)
    error = np.where(left_out[:, None], np.nan, computed - exact)
    figure = style.figure(8.4, 6.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    drawn = min(target.outputs, MOST_DRAWN)
    for g in range(drawn):
        own = f" {g}" if target.outputs > 1 else ""
        upper.plot(s, exact[:, g], color=style.PALE, linewidth=8, label="target" if g == 0 else None)
        upper.plot(s, computed[:, g], color=style.SERIES[g], label=f"network, output{own}" if own else "network")
        lower.plot(s, error[:, g], color=style.SERIES[g], linewidth=1.4)
    _hatch_left_out(network, (upper, lower))
    lower.axhspan(-bound, bound, color=style.ORANGE, alpha=0.22, linewidth=0, label=f"proven: at most {bound:.3g}")
    for side in (-bound, bound):
        lower.axhline(side, color=style.ORANGE, linewidth=1.6)
    lower.set_ylim(-1.6 * bound, 1.6 * bound)
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


def _values(network: Network, target: TruncatedLinear) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """s, and what network and target make of it, for the token that reaches farthest."""
    assert network.certificate is not None
    segments = Segments.of(target, network.certificate.on)
    least, most = segments.reach
    token = int((most - least).argmax())
    margin = 0.2 * (target.high - target.low)
    low, high = max(target.low - margin, least[token]), min(target.high + margin, most[token])
    s = np.linspace(low, high, POINTS)
    x = segments.inputs(np.repeat(s[:, None], len(target.t), axis=1))
    return s, network(x, outside="ignore")[:, token].astype(float), target.values(x)[:, token].astype(float)


def _hatch_left_out(network: Network, panels: tuple[Axes, ...]) -> None:
    """Marks what the certificate says nothing about."""
    excluded = network.certificate.excluded if network.certificate else ()
    for axes in panels:
        for number, (low, high) in enumerate(excluded):
            label = "left out of the certificate" if number == 0 and axes is panels[-1] else None
            axes.axvspan(low, high, facecolor="white", edgecolor=style.GREY, hatch="/////", linewidth=0, label=label)
