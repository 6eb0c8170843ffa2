"""A learner at work: the path of its weights, what the state attends to, and how far it is from exact descent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anchorhead.incontext.trace import Trace
from anchorhead.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONTOURS, POINTS = 14, 121
MOST_DRAWN = 6


def draw_trace(trace: Trace) -> Figure:
    """With two weights their path over the loss's contours, else each weight by step; attention; deviation."""
    figure = style.figure(17.0, 5.4)
    left, middle, right = figure.subplots(1, 3)
    descent = trace.learner.descent
    if descent.weights == 2 and descent.loss.value is not None:
        _over_contours(left, trace)
    else:
        _by_step(left, trace)
    _attention(middle, trace)
    _deviation(right, trace)
    return figure


def _over_contours(axes: Axes, trace: Trace) -> None:
    descent = trace.learner.descent
    A, y = trace.examples.design(descent.intercept), trace.examples.y
    middle = trace.exact[-1]
    reach = 1.25 * max(float(np.abs(trace.exact - middle).max()), 1e-3)
    ticks = [np.linspace(centre - reach, centre + reach, POINTS) for centre in middle]
    grid = np.stack(np.meshgrid(*ticks), axis=-1)
    heights = np.array([[descent.objective(w, A, y) for w in row] for row in grid])
    lowest = heights.min()
    levels = lowest + (heights.max() - lowest) * np.linspace(0, 1, CONTOURS) ** 2.5
    axes.contour(*ticks, heights, levels=levels[1:], colors=style.PALE, linewidths=1.2)
    axes.plot(*trace.exact.T, color=style.ORANGE, linewidth=7, alpha=0.5, label="gradient descent")
    axes.plot(*trace.path.T, color=style.BLUE, marker="o", markersize=4, linewidth=1.4, label="attention layers")
    axes.plot(*trace.path[-1], color=style.VERMILLION, marker="o", label="after all steps")
    axes.set_xlabel("w0")
    axes.set_ylabel("intercept" if descent.intercept else "w1")
    axes.legend(loc="best")
    style.title(axes, "The path over the loss", f"{descent.loss}, {len(y):,} examples, rate {descent.rate:g}")


def _by_step(axes: Axes, trace: Trace) -> None:
    descent = trace.learner.descent
    order = np.sort(np.argsort(-np.ptp(trace.exact, axis=0), kind="stable")[:MOST_DRAWN])
    for number, j in enumerate(order):
        label = "gradient descent" if number == 0 else None
        axes.plot(trace.exact[:, j], color=style.PALE, linewidth=7, label=label)
    for number, j in enumerate(order):
        name = "intercept" if descent.intercept and j == descent.weights - 1 else f"w{j}"
        axes.plot(trace.path[:, j], color=style.SERIES[number], linewidth=1.6, label=name)
    axes.set_xlabel("step")
    axes.set_ylabel("weight")
    axes.grid(True)
    axes.legend(loc="best", ncols=2)
    style.title(axes, "The weights by step", f"{descent.loss}, {len(trace.examples.y):,} examples")


def _attention(axes: Axes, trace: Trace) -> None:
    steps, n = trace.learner.descent.steps, len(trace.examples.y)
    weights = {step: trace.attention(step).astype(np.float64)[:n] for step in sorted({0, steps // 8, steps - 1})}
    over = {step: 2 * n * one - 1 for step, one in weights.items()}
    power = int(np.floor(np.log10(max(max(np.abs(one).max() for one in over.values()), 1e-300))))
    order = np.argsort(over[0], kind="stable")
    for (step, one), colour in zip(over.items(), style.SERIES, strict=False):
        axes.plot(
            one[order] / 10.0**power, color=colour, marker="o", markersize=3, linewidth=1.2, label=f"step {step + 1}"
        )
    axes.set_xlabel("example, in the order of step 1")
    axes.set_ylabel(f"weight over the average, less 1, in 1e{power}")
    axes.grid(True)
    axes.legend(loc="best")
    style.title(axes, "What the state attends to", "its first head; the negatives get the opposite")


def _deviation(axes: Axes, trace: Trace) -> None:
    found = trace.deviation
    floor = max(float(found.max()) * 1e-4, 1e-18)
    steps = np.arange(1, len(found))
    axes.plot(steps, np.maximum(found[1:], floor), color=style.BLUE, linewidth=1.6, label="largest of any weight")
    if trace.certificate is not None:
        bound = trace.certificate.bound
        axes.axhline(bound, color=style.ORANGE, linewidth=2.4, label=f"{trace.certificate.kind}: {bound:.3g}")
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("|attention layers − gradient descent|")
    axes.grid(True)
    axes.legend(loc="best")
    style.title(axes, "Distance from exact descent", f"{trace.learner.dtype}, for this prompt")
