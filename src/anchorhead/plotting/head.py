"""A head on a scalar: beside its target, its error inside the proven band, and the weights of its anchors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.constructions.single.certified_head import Head
from anchorhead.decimals import counted, shortened
from anchorhead.network import Network
from anchorhead.plotting import style
from anchorhead.plotting.head_view import HeadView
from anchorhead.plotting.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_FUNCTIONS = 6
MAX_PARTS = 6
"""Of more functions or parts than these, the first are drawn."""
MAX_NUMBERED = 16
"""Anchors have numbers up to so many a part."""
LONGEST_NAME = 48
CROSSINGS = "where neighbouring anchors weigh the same"

_VISIBLE = 0.05  # of the bound: a rounding term below this would not show in the band
_CLOSE = 0.98  # of an anchor's largest weight: where its number may stand


def draw_head(thing: Head | Network, page: Page) -> Figure:
    """Target and head, their difference and its band, and the attention weights of each part, over s."""
    head = HeadView.of(thing)
    parts = head.atom.parts
    drawn = parts[:MAX_PARTS]
    heights = [3.0, 2.6, *([2.2] if len(drawn) == 1 else [1.5] * len(drawn))]
    figure = page.figure(8.4, 2.4 + sum(heights))
    top, middle, *below = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    s = head.points()
    computed = head.computed(s)
    _functions(top, head, s, computed)
    _error(middle, head, s, computed)
    for number, (axes, part) in enumerate(zip(below, drawn, strict=True), start=1):
        axes.set_ylabel(f"weight,\npart {number}" if len(parts) > 1 else "weight")
        _weights(axes, s, head.weights(part, s))
    left_out = "" if len(drawn) == len(parts) else f", the first {len(drawn)} parts drawn"
    below[-1].set_xlabel("query s")
    top.set_xlim(*head.on)
    figure.align_ylabels()
    style.heading(top, _heading(head), _note(head) + left_out, legend=True)
    return figure


def _functions(axes: Axes, head: HeadView, s: np.ndarray, computed: np.ndarray) -> None:
    exact = head.target.values(s)
    names = ["head"] if head.target.outputs == 1 else [f"head, {name}" for name in head.names]
    drawn = min(head.target.outputs, MAX_FUNCTIONS)
    for m in range(drawn):
        label = "target" if m == 0 else None
        axes.plot(s, exact[:, m], color=style.pale(), linewidth=style.points(9), label=label)
    for m, colour in zip(range(drawn), style.series(), strict=False):
        axes.plot(s, computed[:, m], color=colour, label=style.label(names[m], LONGEST_NAME))
    axes.set_ylabel("output")
    axes.margins(y=0.1)
    axes.grid(True)


def _error(axes: Axes, head: HeadView, s: np.ndarray, computed: np.ndarray) -> None:
    """The signed error of what the dtype computes; the inner band is what exact arithmetic would keep."""
    kind, bound = head.certificate.kind, head.certificate.bound
    in_exact = head.certificate.term("approximation", of="")
    axes.axhspan(-bound, bound, color=style.ORANGE, alpha=0.2, linewidth=0)
    for side in (-bound, bound):
        label = f"{kind}: {bound:.3g}" if side > 0 else None
        axes.axhline(side, color=style.ORANGE, linewidth=style.points(1.8), label=label)
    if in_exact is not None and bound - in_exact.amount > _VISIBLE * bound:
        label = f"in exact arithmetic: {in_exact.amount:.3g}"
        axes.axhspan(-in_exact.amount, in_exact.amount, color=style.ORANGE, alpha=0.4, linewidth=0, label=label)
    error = computed - head.exact(s)
    for m, colour in zip(range(min(head.target.outputs, MAX_FUNCTIONS)), style.series(), strict=False):
        label = "head − target" if m == 0 else None
        axes.plot(s, error[:, m], color=colour, linewidth=style.points(1.3), label=label)
    places, _ = head.crossings()
    places = places[(places >= head.on[0]) & (places <= head.on[1])]
    if len(places):
        floor = np.full(len(places), -1.4 * bound)
        axes.plot(places, floor, "^", color=style.grey(), markersize=style.points(7), label=CROSSINGS, clip_on=False)
    axes.set_ylim(-1.4 * bound, 1.4 * bound)
    axes.set_ylabel(f"error{style.in_powers(axes.yaxis, bound)}")
    axes.grid(True)
    style.heading(axes, "", legend=True)


def _weights(axes: Axes, s: np.ndarray, weights: np.ndarray) -> None:
    """A line an anchor, coloured in the order of slopes; its number stands where it weighs most."""
    from matplotlib import colormaps
    from matplotlib.patheffects import withStroke

    count, highest = weights.shape[1], float(weights.max())
    colours = colormaps["viridis"](np.linspace(*((0.25, 1.0) if style.is_dark() else (0.0, 0.82)), count))
    for k, colour in enumerate(colours):
        axes.plot(s, weights[:, k], color=colour, linewidth=style.points(2.2 if count <= MAX_NUMBERED else 1.0))
    for label, place, height, k in _numbers(s, weights) if count <= MAX_NUMBERED else ():
        axes.annotate(
            label,
            (place, height),
            (0, style.points(3)),
            textcoords="offset points",
            color=colours[k],
            ha="center",
            va="bottom",
            fontsize=style.points(11),
            fontweight="bold",
            path_effects=[withStroke(linewidth=style.points(3), foreground=style.paper())],
        )
    axes.set_ylim(0, 1.24 * highest)
    axes.locator_params(axis="y", nbins=4)
    axes.grid(True)


def _numbers(s: np.ndarray, weights: np.ndarray) -> list[tuple[str, float, float, int]]:
    """Numbers of anchors, the place for each, and its first anchor; those that would collide share a place.

    An anchor's place is the middle of where its weight is close to its largest: log w is concave in s.
    """
    width, highest = s[-1] - s[0], float(weights.max())
    groups: list[list[int]] = []
    places, heights = np.zeros(weights.shape[1]), weights.max(axis=0)
    for k in range(weights.shape[1]):
        near = s[weights[:, k] >= _CLOSE * heights[k]]
        places[k] = np.clip((near[0] + near[-1]) / 2, s[0] + 0.01 * width, s[-1] - 0.01 * width)
        for group in groups:
            beside = abs(places[k] - places[group[-1]]) < 0.03 * width
            if beside and abs(heights[k] - heights[group[-1]]) < 0.1 * highest:
                group.append(k)
                break
        else:
            groups.append([k])
    return [(_listed(group), float(places[group].mean()), float(heights[group].max()), group[0]) for group in groups]


def _listed(group: list[int]) -> str:
    """Numbers from 1: 3–6 for neighbours, 2, 5 for others."""
    if len(group) > 2 and group[-1] - group[0] == len(group) - 1:
        return f"{group[0] + 1}–{group[-1] + 1}"
    return ", ".join(str(k + 1) for k in group)


def _heading(head: HeadView) -> str:
    return f"{shortened(head.target.name, LONGEST_NAME)} on [{head.on[0]:g}, {head.on[1]:g}]"


def _note(head: HeadView) -> str:
    count = len(head.atom.parts)
    parts = f" in {count} softmaxes that add up" if count > 1 else ""
    numbered = ", numbered below" if any(len(part) <= MAX_NUMBERED for part in head.atom.parts) else ""
    certificate = head.certificate
    known = f"{certificate.kind}: {certificate.error_in_words}"
    return f"{counted(head.atom.anchors, 'anchor')}{parts}{numbered}, {certificate.dtype}, {known}"
