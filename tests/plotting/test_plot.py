"""Pictures are written whole, in the format that is asked for, and leave the user's matplotlib alone."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from anchorhead.constructions.truncated_linear import truncated_linear
from anchorhead.errors import AnchorheadError
from anchorhead.network.files import load
from anchorhead.plotting import plot
from plotting.pictures import ramps, sweep, thing, trace


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_the_suffix_decides_the_format_and_the_same_thing_is_the_same_file(suffix, start, tmp_path):
    paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for path in paths:
        plot(sweep(), path, size="column")
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(start)
    assert first == second


@pytest.mark.parametrize("name", ["picture.jpeg", "picture"])
def test_other_suffixes_are_refused_with_those_allowed(name, tmp_path):
    with pytest.raises(AnchorheadError, match=r"\.png, \.svg or \.pdf"):
        plot(sweep(), tmp_path / name)


def test_what_is_no_path_is_refused():
    for call in (lambda: plot("picture.png", object()), lambda: load(3)):  # type: ignore[arg-type]
        with pytest.raises(AnchorheadError, match="path"):
            call()


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(AnchorheadError, match="no folder"):
        plot(sweep(), tmp_path / "missing" / "picture.png")


def test_a_picture_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")
    with pytest.raises(AnchorheadError, match="int cannot be plotted"):
        plot(3, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ramps().with_(program=None), "no program"),
        (lambda: ramps().with_(certificate=None), "certificate"),
        (lambda: truncated_linear(np.zeros((2, 2)), np.zeros(2), -1, 1), "no input of its box changes"),
    ],
)
def test_networks_of_which_no_function_is_known_say_so_where_it_is_asked_for(make, message):
    with pytest.raises(AnchorheadError, match=message):
        plot(make(), kind="function")


def test_a_network_that_never_reaches_its_range_has_a_picture():
    assert plot(truncated_linear(np.full((2, 2), 0.1), np.full(2, 9.0), -1, 1)).axes


def test_a_figure_is_returned_that_pyplot_does_not_know_of(tmp_path):
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    mine = pyplot.figure()
    before = dict(mpl.rcParams)
    assert isinstance(plot(sweep()), Figure)
    assert isinstance(plot(sweep(), tmp_path / "picture.png"), Figure)
    assert dict(mpl.rcParams) == before
    assert pyplot.get_fignums() == [mine.number]
    assert pyplot.gcf() is mine
    pyplot.close(mine)


def test_notebooks_show_figures_without_pyplot_and_with_it():
    formatters = pytest.importorskip("IPython.core.formatters")
    shown, _ = formatters.DisplayFormatter().format(plot(sweep(), size="column"))
    assert shown["image/png"].startswith(b"\x89PNG")
    assert "Picture" in shown["text/plain"]


def test_axes_of_ones_own_are_drawn_into(tmp_path):
    figure = Figure(figsize=(6, 3))
    left, right = figure.subplots(1, 2)
    assert plot(sweep(), ax=left) is figure
    assert plot(ramps(), tmp_path / "both.svg", kind="circuit", ax=right) is figure
    assert len(left.lines) == 3
    assert any("Attention" in text.get_text() for text in right.texts)
    assert figure.get_size_inches().tolist() == [6, 3]
    assert (tmp_path / "both.svg").exists()


@pytest.mark.parametrize("name", ["head", "ramps", "plan", "trace", "heat maps"])
def test_what_needs_several_panels_says_who_takes_one(name):
    with pytest.raises(AnchorheadError, match='sweeps can, and networks with kind="circuit"'):
        plot(thing(name), ax=Figure().add_subplot())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"ax": "left"}, "axes of matplotlib"),
        ({"ax": Figure().add_subplot(), "size": "slide"}, "leave one out"),
        ({"size": "poster"}, '"column", "slide"'),
        ({"size": (3, -1)}, "inches"),
        ({"size": 3}, "inches"),
        ({"size": "ab"}, "inches"),
        ({"kind": "circuit"}, "only heads and networks"),
        ({"x": [1.0]}, "only heads and networks"),
    ],
)
def test_options_that_do_not_fit_are_refused(words, message):
    with pytest.raises(AnchorheadError, match=message):
        plot(sweep(), **words)


def test_sizes_are_inches_and_words_follow():
    sizes = {size: plot(sweep(), size=size) for size in ("column", None, "slide", (5.0, 4.0))}
    assert sizes["column"].get_figwidth() == 3.5
    assert sizes["slide"].get_size_inches().tolist() == [13.333, 7.5]
    assert sizes[5.0, 4.0].get_size_inches().tolist() == [5, 4]
    fonts = [figure.axes[0].xaxis.label.get_size() for figure in sizes.values()]
    assert fonts[0] == 8 < fonts[3] < fonts[1] == 13 < fonts[2] == 16
    widths = [figure.axes[0].lines[-1].get_linewidth() for figure in sizes.values()]
    assert widths[0] < widths[3] < widths[1] < widths[2]


def test_what_the_user_changed_in_matplotlib_wins():
    with mpl.rc_context({"font.size": 9, "axes.facecolor": "#123456", "grid.color": "red"}):
        figure = plot(sweep())
    figure.canvas.draw()  # outside: ticks that are made now have the same look
    axes = figure.axes[0]
    assert axes.xaxis.label.get_size() == 9
    assert mpl.colors.to_hex(axes.get_facecolor()) == "#123456"
    assert {line.get_color() for line in axes.get_xgridlines()} == {"red"}
    assert {line.get_color() for line in plot(sweep()).axes[0].get_xgridlines()} == {"#DADADA"}


def test_dark_styles_and_cycles_are_kept():
    from cycler import cycler

    with mpl.rc_context({"text.color": "white", "axes.facecolor": "black", "axes.prop_cycle": cycler(color=["lime"])}):
        figure = plot(trace(intercept=True))
    assert figure.axes[0].lines[-1].get_color() == "lime"
    assert figure.axes[0].title.get_color() == "white"


@pytest.mark.slow
def test_matplotlib_is_imported_only_to_plot():
    code = "import sys, anchorhead.plotting, anchorhead.lab; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
