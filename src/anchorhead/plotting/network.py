"""A network of truncated linear functions: beside its target, and its error inside the proven band."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.conditions import Excluded
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.forms import ramp_of
from anchorhead.language.targets.ramp import TruncatedLinear
from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.plotting.page import Page
from anchorhead.proof.search.search import Segments

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 4000
MAX_DRAWN = 6
"""Of more output features than these, the first are drawn."""


def draw_network(network: Network, page: Page) -> Figure:
    """Target and network over s = w·x + t above, their difference and the proven bound below."""
    certificate = network.certificate
    if network.program is None or network.construction != "truncated linear" or certificate is None:
        raise AnchorheadError(
            "the function of this network cannot be plotted: it has no program of truncated linear functions, or no "
            'certificate. Its circuit can: kind="circuit"'
        )
    target = ramp_of(network.program)
    bound = certificate.bound
    s, computed, exact = _values(network, target, certificate.on)
    left_out = certificate.condition(Excluded)
    if left_out is not None:
        exact[~left_out.holds(s)] = np.nan
    figure = page.figure(8.4, 7.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    drawn = min(target.outputs, MAX_DRAWN)
    for g in range(drawn):
        label = "target" if g == 0 else None
        upper.plot(s, exact[:, g], color=style.pale(), linewidth=style.points(9), label=label)
    for g, colour in zip(range(drawn), style.series(), strict=False):
        # where several outputs are 0, the earlier show around the later
        width, name = style.points(2.2 + (drawn - 1 - g)), f"network, output {g}" if target.outputs > 1 else "network"
        upper.plot(s, computed[:, g], color=colour, linewidth=width, label=name)
        label = "network − target" if g == 0 else None
        lower.plot(s, computed[:, g] - exact[:, g], color=colour, linewidth=style.points(1.4), label=label)
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
        lower.axhline(side, color=style.ORANGE, linewidth=style.points(1.6))
    lower.set_ylim(-1.4 * bound, 1.4 * bound)
    upper.set_xlim(s[0], s[-1])
    upper.set_ylabel("output")
    lower.set_ylabel(f"error{style.in_powers(lower.yaxis, bound)}")
    lower.set_xlabel("pre-activation s = w·x + t")
    for axes in (upper, lower):
        axes.grid(True)
    more = "" if drawn == target.outputs else f", the first {drawn} drawn"
    style.heading(upper, "Target and attention network", f"{target}{more}, {network.dtype}", legend=True)
    style.heading(lower, "", legend=True)
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
            axes.axvspan(
                low, high, facecolor=style.paper(), edgecolor=style.grey(), hatch="/////", linewidth=0, label=label
            )
