"""A learner at work: the path of its weights, what the state attends to, and how far it is from exact descent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.decimals import counted
from anchorhead.incontext.trace import Trace
from anchorhead.plotting import style
from anchorhead.plotting.page import Page
from anchorhead.plotting.style import Heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONTOURS, POINTS = 14, 61
MAX_DRAWN = 6


def draw_trace(trace: Trace, page: Page) -> Figure:
    """With two weights their path over the loss's contours, else each weight by step; attention; deviation."""
    figure, (left, middle, right) = page.side_by_side(15.0, 5.8, (1, 1, 1))
    descent = trace.learner.descent
    two = descent.weights == 2 and descent.loss.value is not None
    found = [
        _over_contours(left, trace) if two else _by_step(left, trace),
        _attention(middle, trace),
        _deviation(right, trace),
    ]
    page.write(found)
    return figure


def _over_contours(axes: Axes, trace: Trace) -> Heading:
    descent = trace.learner.descent
    A, y = trace.examples.design(descent.intercept), trace.examples.y
    middle = trace.exact[-1]
    reach = 1.25 * max(float(np.abs(trace.exact - middle).max()), 1e-3)
    ticks = [np.linspace(centre - reach, centre + reach, POINTS) for centre in middle]
    grid = np.stack(np.meshgrid(*ticks), axis=-1)
    heights = np.array([[descent.objective(w, A, y) for w in row] for row in grid])
    lowest = heights.min()
    levels = lowest + (heights.max() - lowest) * np.linspace(0, 1, CONTOURS) ** 2.5
    pt = style.points
    axes.contour(*ticks, heights, levels=levels[1:], colors=style.pale(), linewidths=pt(1.2))
    axes.plot(*trace.exact.T, color=style.ORANGE, linewidth=pt(7), alpha=0.5, label="gradient descent")
    axes.plot(
        *trace.path.T, color=style.BLUE, marker="o", markersize=pt(4), linewidth=pt(1.4), label="attention layers"
    )
    axes.plot(*trace.path[-1], color=style.VERMILLION, marker="o", linestyle="", label="after all steps")
    axes.set_xlabel("w0")
    axes.set_ylabel("intercept" if descent.intercept else "w1")
    note = f"{descent.loss}, {counted(len(y), 'example')}, rate {descent.rate:g}; grey: level lines of the loss"
    return Heading(axes, "The path over the loss", note, legend=True)


def _by_step(axes: Axes, trace: Trace) -> Heading:
    descent = trace.learner.descent
    order = np.sort(np.argsort(-np.ptp(trace.exact, axis=0), kind="stable")[:MAX_DRAWN])
    for number, j in enumerate(order):
        label = "gradient descent" if number == 0 else None
        axes.plot(trace.exact[:, j], color=style.pale(), linewidth=style.points(7), label=label)
    for j, colour in zip(order, style.series(), strict=False):
        name = "intercept" if descent.intercept and j == descent.weights - 1 else f"w{j}"
        axes.plot(trace.path[:, j], color=colour, linewidth=style.points(1.6), label=name)
    axes.set_xlabel("step")
    axes.set_ylabel("weight")
    style.whole_numbers(axes.xaxis)
    axes.grid(True)
    more = "" if len(order) == descent.weights else f", {len(order)} of {descent.weights:,} weights"
    note = f"{descent.loss}, {counted(len(trace.examples.y), 'example')}{more}"
    return Heading(axes, "The weights by step", note, legend=True)


def _attention(axes: Axes, trace: Trace) -> Heading:
    steps, n = trace.learner.descent.steps, len(trace.examples.y)
    weights = {step: trace.attention(step).astype(np.float64)[:n] for step in sorted({0, steps // 8, steps - 1})}
    over = {step: 2 * n * one - 1 for step, one in weights.items()}
    order = np.argsort(over[0], kind="stable")
    for (step, one), colour in zip(over.items(), style.series(), strict=False):
        axes.plot(
            np.arange(1, n + 1),
            one[order],
            color=colour,
            marker="o",
            markersize=style.points(3),
            linewidth=style.points(1.2),
            label=f"step {step + 1:,}",
        )
    unit = style.in_powers(axes.yaxis, max(float(np.abs(one).max()) for one in over.values()))
    axes.set_xlabel("example, in the order of step 1")
    axes.set_ylabel(f"(weight over the average − 1){unit}")
    style.whole_numbers(axes.xaxis)
    axes.grid(True)
    return Heading(
        axes, "What the state attends to", "its first head; the examples' negatives get the opposite", legend=True
    )


def _deviation(axes: Axes, trace: Trace) -> Heading:
    found = trace.deviation
    floor = max(float(found.max()) * 1e-4, 1e-18)
    steps = np.arange(1, len(found))
    axes.plot(
        steps,
        np.maximum(found[1:], floor),
        color=style.BLUE,
        linewidth=style.points(1.6),
        marker="o" if len(steps) == 1 else "",
        label="largest of any weight",
    )
    if trace.certificate is not None:
        bound = trace.certificate.bound
        label = f"{trace.certificate.kind}: {bound:.3g}"
        axes.axhline(bound, color=style.ORANGE, linewidth=style.points(2.4), label=label)
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("|attention layers − gradient descent|")
    style.whole_numbers(axes.xaxis)
    axes.grid(True)
    return Heading(axes, "Distance from exact descent", f"{trace.learner.dtype}, for this prompt", legend=True)
