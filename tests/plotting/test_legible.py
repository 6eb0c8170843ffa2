"""Nothing in a picture stands on anything else, nothing is cut off, and counts are whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anchorhead.errors import AnchorheadError
from anchorhead.plotting import plot
from plotting.pictures import THINGS, coefficients, drawn, frontier, plan, sweep, thing, trace, words
from tests.networks import names, network, row_of, tags

WHOLE = ("step", "anchors p", "example, in the order of step 1")
NO_FUNCTION = ("layer", "opaque scalar", "opaque several", "kernel smoother", "descent", "many learners")
"""Kinds of targets that are unknown, not kept, or no functions of a few numbers: drawn as circuits."""


@pytest.mark.slow_for(
    "head-column",
    "head of two parts-column",
    "plan out of reach-None",
    "trace of three weights-column",
    "plan of one error-column",
    "maximum-column",
    "plan out of reach-column",
    "trace-None",
    "trace-column",
    "heat maps-column",
)
@pytest.mark.parametrize(
    ("name", "size"),
    [*((name, "column") for name in THINGS), *((name, None) for name in ("surface", "plan out of reach", "trace"))],
)
def test_words_stand_alone_and_whole_and_legends_beside_what_is_drawn(name, size):
    require_legible(drawn(plot(thing(name), size=size)))


DRAWN = [
    name
    for name in names("float64", without=NO_FUNCTION)
    if not {"truncated linear", "constant"} <= tags(name)  # whose scalar never moves
]
FIRST = {row_of(name).kind: name for name in reversed(DRAWN)}


@pytest.mark.parametrize(
    "name", [name if name in FIRST.values() else pytest.param(name, marks=pytest.mark.slow) for name in DRAWN]
)
def test_functions_of_the_table_are_drawn_legibly(name):
    require_legible(drawn(plot(network(name), kind="function", size="column")))


@pytest.mark.parametrize("name", [name for name in names("float64") if name not in DRAWN])
def test_networks_of_which_no_function_can_be_drawn_say_so(name):
    with pytest.raises(AnchorheadError, match=r"cannot be plotted|which it does not keep"):
        plot(network(name), kind="function")


def require_legible(figure: Figure) -> None:
    found = words(figure)
    for number, (text, box) in enumerate(found):
        assert min(box.x0, box.y0) > -2, f"{text!r} is cut"
        assert max(box.x1 - figure.bbox.width, box.y1 - figure.bbox.height) < 2, f"{text!r} is cut"
        for others, other in found[:number]:
            wide = min(box.x1, other.x1) - max(box.x0, other.x0)
            high = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert min(wide, high) <= 2, f"{text!r} stands on {others!r}"
    for axes in figure.axes:
        if (legend := axes.get_legend()) is not None:
            assert legend.get_window_extent().y0 >= axes.bbox.y1 - 1
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_label_text() in WHOLE:
                ticks = axis.get_ticklocs()
                assert (ticks == np.round(ticks)).all(), axis.get_label_text()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
    assert pixels.std() > 12
    assert len(np.unique(pixels[::4, ::4].reshape(-1, 3), axis=0)) > 20


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_few_steps_have_whole_ticks(steps):
    for axes in plot(trace(steps=steps)).axes[1:]:
        ticks = axes.xaxis.get_ticklocs()
        assert (ticks == np.round(ticks)).all()


def crosses(axes: Axes) -> list[tuple[float, str]]:
    """Errors that are marked as out of reach, and the marks."""
    found = [line for line in axes.lines if line.get_marker() in ("x", "+")]
    return [(float(x), str(line.get_marker())) for line in found for x in np.atleast_1d(line.get_xdata())]


def test_errors_out_of_reach_are_marked_where_they_are_asked_for():
    reached = plot(plan())
    assert not any(crosses(axes) for axes in reached.axes)
    *sizes, anchors = plot(plan(reached=1e-3)).axes
    for axes in sizes:  # a cross for each of three forms, beside one another
        assert [mark for _, mark in crosses(axes)] == ["x"] * 3
        assert np.allclose(np.log10([error for error, _ in crosses(axes)]), -4, atol=0.2)
        assert len({error for error, _ in crosses(axes)}) == 3
    assert len(crosses(anchors)) == 1


def test_lines_of_a_plan_do_not_lie_on_one_another():
    for axes in plot(plan()).axes[:-1]:
        lines = [tuple(map(tuple, line.get_xydata())) for line in axes.lines if len(line.get_xydata()) > 1]
        assert len(lines) == len(set(lines)) == 6


def test_a_plan_of_one_error_says_its_numbers():
    figure = plot(plan((1e-3,), reached=1e-2))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("out of reach") == 6
    assert texts.count("300,000") == 6
    assert len(figure.axes[0].get_yticklabels()) == 12


def test_what_a_network_of_tokens_takes_is_drawn_above_what_it_gives():
    inputs, outputs, error = plot(thing("maximum")).axes
    first, second = (np.asarray(line.get_ydata()) for line in inputs.lines)
    _, _, copy, largest = (np.asarray(line.get_ydata()) for line in outputs.lines)
    assert np.allclose(copy, first, atol=1e-2)
    assert np.allclose(largest, np.maximum(first, second), atol=1e-2)
    assert error.get_yscale() == "log"


def test_heat_maps_say_what_dark_means():
    figure = plot(thing("heat maps"))
    assert any("dark all of it" in axes.get_ylabel() for axes in figure.axes)
    said = figure.get_suptitle() + figure.get_supxlabel()
    assert "Attention weights" in said
    assert "Each row of cells is a token, each column an anchor" in said


def test_the_scale_of_a_surface_ends_at_the_bound():
    network = thing("surface")
    ends = plot(network).axes[-1].get_ylim()
    assert ends == (-network.certificate.bound, network.certificate.bound)


def test_a_frontier_has_a_line_for_each_way_and_a_gap_where_nothing_is_known():
    upper, lower = plot(frontier()).axes
    drawn_errors = [list(line.get_ydata()) for line in upper.lines]
    for row in ("solved", "uniform", "polynomial"):
        assert [getattr(one, row) for one in frontier().rows] in drawn_errors
    assert len(lower.lines) == 2
    assert plot(frontier(1)).axes


def test_a_sweep_of_one_has_marks():
    assert all(line.get_marker() != "None" for line in plot(sweep(1, None)).axes[0].lines[1:])


@pytest.mark.slow
def test_names_of_columns_are_no_formulas():
    figure = drawn(plot(coefficients()))
    assert r"price in \$ and \$" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
