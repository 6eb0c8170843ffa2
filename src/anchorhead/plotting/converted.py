"""A converted network along a path through its box: inputs, outputs beside the target's, the error under its bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.decimals import shortened
from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.plotting.page import Page
from anchorhead.plotting.several import SeveralTarget
from anchorhead.plotting.surface import draw_surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 1500
MAX_DRAWN = 5
"""Of more outputs than these, those that move most are drawn; of more inputs, none."""


def draw_converted(network: Network, function: Callable[..., Any] | None, page: Page) -> Figure:
    """Inputs along a path through the box, outputs below, then the largest error; with two inputs, the whole box."""
    target = SeveralTarget.of(network, function)
    certificate, (low, high) = target.certificate, target.box
    if low.shape == (2,):
        return draw_surface(network, target, page)
    along = np.linspace(0, 1, POINTS)
    x = _path(low, high, along).astype(network.dtype)
    exact = target.values(x).astype(np.float64).reshape(POINTS, -1)
    computed = network(x, outside="ignore").astype(np.float64).reshape(POINTS, -1)
    inputs = x.astype(np.float64).reshape(POINTS, -1)
    shown = 1 < inputs.shape[1] <= MAX_DRAWN
    heights = [1.6, 3.0, 2.0] if shown else [3.0, 2.0]
    figure = page.figure(8.4, 2.6 + sum(heights))
    *top, upper, lower = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    drawn = np.sort(np.argsort(-np.ptp(exact, axis=0), kind="stable")[:MAX_DRAWN])
    _outputs(upper, along, exact[:, drawn], computed[:, drawn], [f"network, output {output}" for output in drawn])
    _error(lower, along, np.abs(computed - exact), certificate)
    more = "" if len(drawn) == exact.shape[1] else f", {len(drawn)} of {exact.shape[1]:,} outputs drawn"
    kind = "A function as attention" if target.named else "A network as attention"
    note = f"{shortened(target.text, 110)}{more}, on {certificate.on}, {network.dtype}"
    for axes in top:
        _inputs(axes, along, inputs, target.names)
        style.heading(axes, kind, note, legend=True)
    style.heading(upper, "" if top else kind, "" if top else note, legend=True)
    style.heading(lower, "", legend=True)
    upper.set_xlim(0, 1)
    inside = "from end to end of the interval" if low.size == 1 else "along a path through the box"
    lower.set_xlabel(inside)
    for axes in (*top, upper, lower):
        axes.grid(True)
    figure.align_ylabels()
    return figure


def _inputs(axes: Axes, along: np.ndarray, inputs: np.ndarray, names: Sequence[str]) -> None:
    for number, colour in zip(range(inputs.shape[1]), style.series(), strict=False):
        label = f"input {names[number]}" if not names[number].startswith("input") else names[number]
        axes.plot(along, inputs[:, number], color=colour, linestyle="--", linewidth=style.points(1.6), label=label)
    axes.set_ylabel("input")


def _outputs(axes: Axes, along: np.ndarray, exact: np.ndarray, computed: np.ndarray, names: Sequence[str]) -> None:
    for number in range(exact.shape[1]):
        label = "target" if number == 0 else None
        axes.plot(along, exact[:, number], color=style.pale(), linewidth=style.points(8), label=label)
    widths = np.linspace(min(1.8 + 1.5 * (len(names) - 1), 6.5), 1.8, len(names))  # lines below others stay in sight
    for number, (name, colour, width) in enumerate(zip(names, style.series(), widths, strict=False)):
        axes.plot(along, computed[:, number], color=colour, linewidth=style.points(width), label=name)
    axes.set_ylabel("output")


def _error(axes: Axes, along: np.ndarray, error: np.ndarray, certificate: Certificate) -> None:
    """On a logarithmic scale, under the bound."""
    floor = max(certificate.bound * 1e-6, 1e-300)
    several = error.shape[1] > 1
    lines = {"largest of any output" if several else "error": (error.max(axis=1), style.BLUE)}
    if several:
        lines["median output"] = (np.median(error, axis=1), style.SKY)
    for label, (line, colour) in lines.items():
        axes.plot(along, np.maximum(line, floor), color=colour, linewidth=style.points(1.2), label=label)
    label = f"{certificate.kind}: {certificate.bound:.3g}"
    axes.axhline(certificate.bound, color=style.ORANGE, linewidth=style.points(2), label=label)
    axes.set_yscale("log")
    axes.set_ylim(max(floor, float(np.median(error)) * 1e-2), max(certificate.bound, floor) * 4)
    axes.set_ylabel("|network − target|")


def _path(low: np.ndarray, high: np.ndarray, along: np.ndarray) -> np.ndarray:
    """(points, inputs): every input swings between its ends, each with a frequency and a phase of its own.

    One input alone goes from end to end. On a straight line inputs would meet all at once, and outputs such as their
    maximum would hide one another.
    """
    steps = along.reshape(-1, *(1 for _ in low.shape))
    if low.size == 1:
        return low + steps * (high - low)
    rng = np.random.default_rng(0)
    turns = rng.uniform(0.5, 1.5, low.shape) * steps + rng.uniform(0, 1, low.shape)
    return np.clip(low + (high - low) * (1 - np.cos(2 * np.pi * turns)) / 2, low, high)
