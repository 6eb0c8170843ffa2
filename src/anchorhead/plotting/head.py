"""A head on a scalar: beside its target, its error inside the proven band, and the weights of its anchors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.constructions.head import Head
from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.plotting.head_view import HeadView, Keys
from anchorhead.proof.head import TERMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_FUNCTIONS = 6
MOST_PARTS = 6
"""Of more functions or parts than these, the first are drawn."""
MOST_NUMBERED = 16
"""Anchors have numbers up to so many a part."""
LONGEST_NAME = 48

_VISIBLE = 0.05  # of the bound: a rounding term below this would not show in the band


def draw_head(thing: Head | Network) -> Figure:
    """Target and head, their difference and its band, and the attention weights of each part, over s."""
    head = HeadView.of(thing)
    drawn = head.parts[:MOST_PARTS]
    heights = [3.0, 2.6, *([2.2] if len(drawn) == 1 else [1.5] * len(drawn))]
    figure = style.figure(8.4, 1.6 + sum(heights))
    top, middle, *below = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    s = head.points()
    computed = head.computed(s)
    _functions(top, head, s, computed)
    _error(middle, head, s, computed)
    for number, (axes, part) in enumerate(zip(below, drawn, strict=True), start=1):
        axes.set_ylabel(f"weight,\npart {number}" if len(head.parts) > 1 else "attention weight")
        _weights(axes, part, s, s - head.origin)
    left_out = "" if len(drawn) == len(head.parts) else f", the first {len(drawn)} parts drawn"
    below[-1].set_xlabel("query s")
    top.set_xlim(*head.on)
    figure.align_ylabels()
    style.title(top, _heading(head), _note(head) + left_out)
    return figure


def _functions(axes: Axes, head: HeadView, s: np.ndarray, computed: np.ndarray) -> None:
    exact = head.target.values(s)
    names = ["head"] if head.target.outputs == 1 else [f"head, {name}" for name in head.names]
    drawn = min(head.target.outputs, MOST_FUNCTIONS)
    for m in range(drawn):
        axes.plot(s, exact[:, m], color=style.PALE, linewidth=9, label="target" if m == 0 else None)
    for m in range(drawn):
        axes.plot(s, computed[:, m], color=style.SERIES[m], label=_short(names[m]))
    axes.set_ylabel("output")
    axes.margins(y=0.1)
    axes.grid(True)
    axes.legend(loc="best")


def _error(axes: Axes, head: HeadView, s: np.ndarray, computed: np.ndarray) -> None:
    """The signed error of what the dtype computes; the inner band is what exact arithmetic would keep."""
    kind, bound = head.certificate.kind, head.certificate.bound
    in_exact = head.certificate.terms[TERMS[0]]
    axes.axhspan(-bound, bound, color=style.ORANGE, alpha=0.2, linewidth=0)
    for side in (-bound, bound):
        label = f"{kind}: at most {bound:.3g}" if side > 0 else None
        axes.axhline(side, color=style.ORANGE, linewidth=1.8, label=label and style.minus(label))
    if bound - in_exact > _VISIBLE * bound:
        label = f"{in_exact:.2g} in exact arithmetic"
        axes.axhspan(-in_exact, in_exact, color=style.ORANGE, alpha=0.4, linewidth=0, label=label)
    error = computed - head.exact(s)
    for m in range(min(head.target.outputs, MOST_FUNCTIONS)):
        axes.plot(s, error[:, m], color=style.SERIES[m], linewidth=1.3)
    places, _ = head.crossings()
    places = places[(places >= head.on[0]) & (places <= head.on[1])]
    if len(places):
        floor = np.full(len(places), -1.4 * bound)
        axes.plot(places, floor, "^", color=style.GREY, markersize=7, label="neighbours cross", clip_on=False)
    axes.set_ylim(-1.4 * bound, 2.1 * bound)
    axes.set_ylabel("head − target")
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 3), useMathText=True)
    axes.grid(True)
    axes.legend(loc="upper left", ncols=3, columnspacing=1.3, handlelength=1.4)


def _weights(axes: Axes, part: Keys, s: np.ndarray, query: np.ndarray) -> None:
    """A line an anchor, coloured in the order of slopes; its number stands where it weighs most."""
    from matplotlib import colormaps

    count, weights = len(part), part.weights(query)
    colours = colormaps["viridis"](np.linspace(0.0, 0.82, count))
    for k, colour in enumerate(colours):
        axes.plot(s, weights[:, k], color=colour, linewidth=2.2 if count <= MOST_NUMBERED else 1.0)
        if count <= MOST_NUMBERED:
            peak = int(weights[:, k].argmax())
            axes.annotate(
                f"{k + 1}",
                (s[peak], weights[peak, k]),
                (0, 3),
                textcoords="offset points",
                color=colour,
                ha="center",
                va="bottom",
                fontsize=11,
                fontweight="bold",
            )
    axes.set_ylim(0, 1.2)
    axes.set_yticks([0, 0.5, 1])
    axes.grid(True)


def _heading(head: HeadView) -> str:
    return f"{_short(head.target.name)} on [{head.on[0]:g}, {head.on[1]:g}]"


def _note(head: HeadView) -> str:
    parts = f" in {len(head.parts)} softmaxes that add up" if len(head.parts) > 1 else ""
    certificate = head.certificate
    known = f"{certificate.kind}: error at most {certificate.bound:.3g}"
    return f"{head.anchors} anchors{parts}, {certificate.dtype}, {known}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
