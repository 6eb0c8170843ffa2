"""A converted network along a path through its box: outputs beside the target's, and the error under its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.plotting.several import SeveralTarget
from anchorhead.plotting.surface import draw_surface

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 1500
MOST_DRAWN = 5
"""Of more outputs than these, those that move most are drawn."""


def draw_converted(network: Network, function: Callable[..., Any] | None = None, seed: int = 0) -> Figure:
    """Outputs along a path through the box above, the largest error of any below; with two inputs, the whole box."""
    target = SeveralTarget.of(network, function)
    certificate, (low, high) = target.certificate, target.box
    if low.shape == (2,):
        return draw_surface(network, target)
    along = np.linspace(0, 1, POINTS)
    x = _path(low, high, along, seed).astype(network.dtype)
    exact = target.values(x).astype(np.float64).reshape(POINTS, -1)
    computed = network(x, outside="ignore").astype(np.float64).reshape(POINTS, -1)
    drawn = np.sort(np.argsort(-np.ptp(exact, axis=0), kind="stable")[:MOST_DRAWN])

    figure = style.figure(8.4, 7.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    for number, output in enumerate(drawn):
        label = "target" if number == 0 else None
        upper.plot(along, exact[:, output], color=style.PALE, linewidth=8, label=label)
    widths = np.linspace(1.8 + 0.6 * (len(drawn) - 1), 1.8, len(drawn))  # lines below others stay in sight
    for output, colour, width in zip(drawn, style.SERIES, widths, strict=False):
        upper.plot(along, computed[:, output], color=colour, linewidth=width, label=f"network, output {output}")
    error = np.abs(computed - exact)
    floor = max(certificate.bound * 1e-6, 1e-300)
    several = error.shape[1] > 1
    lines = {"largest of any output" if several else "error": (error.max(axis=1), style.BLUE)}
    if several:
        lines["median output"] = (np.median(error, axis=1), style.SKY)
    for label, (line, colour) in lines.items():
        lower.plot(along, np.maximum(line, floor), color=colour, linewidth=1.2, label=label)
    lower.axhline(
        certificate.bound, color=style.ORANGE, linewidth=2, label=f"{certificate.kind}: {certificate.bound:.3g}"
    )
    lower.set_yscale("log")
    lower.set_ylim(max(floor, float(np.median(error)) * 1e-2), certificate.bound * 4)
    upper.set_xlim(0, 1)
    upper.set_ylabel("output")
    lower.set_ylabel("|network − target|")
    lower.set_xlabel("along a path through the box")
    for axes in (upper, lower):
        axes.grid(True)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    more = "" if len(drawn) == exact.shape[1] else f", {len(drawn)} outputs drawn"
    kind = "A function as attention" if target.named else "A network as attention"
    style.title(upper, kind, f"{target.text}{more}, on {certificate.on}, {network.dtype}")
    return figure


def _path(low: np.ndarray, high: np.ndarray, along: np.ndarray, seed: int) -> np.ndarray:
    """(points, inputs): every input swings between its ends, each with a frequency and a phase of its own.

    One input alone goes from end to end. On a straight line inputs would meet all at once, and outputs such as their
    maximum would hide one another.
    """
    steps = along.reshape(-1, *(1 for _ in low.shape))
    if low.size == 1:
        return low + steps * (high - low)
    rng = np.random.default_rng(seed)
    turns = rng.uniform(0.5, 1.5, low.shape) * steps + rng.uniform(0, 1, low.shape)
    return np.clip(low + (high - low) * (1 - np.cos(2 * np.pi * turns)) / 2, low, high)
