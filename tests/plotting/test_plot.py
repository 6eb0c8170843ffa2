"""Pictures are written whole, show something, and leave the user's matplotlib alone."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import matplotlib.image
import matplotlib.text
import numpy as np
import pytest

from anchorhead.constructions.truncated_linear import truncated_linear
from anchorhead.errors import AnchorheadError
from anchorhead.lab import heat_maps
from anchorhead.network.files import load
from anchorhead.plotting import Row, Sweep, plot, style
from anchorhead.plotting.heat_maps import draw_heat_maps


def network(**options):
    rng = np.random.default_rng(0)
    return truncated_linear(rng.normal(size=(4, 2)), rng.normal(size=4), -1, 1, **options)


def sweep(count: int = 3, rate: float | None = -1.0) -> Sweep:
    rows = tuple(Row(2**k, 8, 1, 2**k, 2 / 2**k, 0.3 / 2**k, 0.25 / 2**k, 2.7) for k in range(3, 3 + count))
    return Sweep("single-head", "anchors p", rows, -1.0, 1.0, "float64", rate)


THINGS = {
    "single head": lambda: network(anchors=8),
    "heads": lambda: network(heads=2, dtype="float32"),
    "several outputs": lambda: network(anchors=8, outputs=lambda k: k // 4),
    "many outputs": lambda: network(anchors=8, outputs=list(range(8))),
    "sweep": sweep,
    "sweep of one": lambda: sweep(1, None),
    "heat maps": lambda: heat_maps(widths=(1.0, 4.0), tokens=6),
}


@pytest.mark.parametrize("name", THINGS)
def test_a_picture_of_everything_that_can_be_plotted_is_not_blank(name, tmp_path):
    plot(THINGS[name](), tmp_path / "picture.png")
    pixels = mpl.image.imread(tmp_path / "picture.png")
    assert min(pixels.shape[:2]) > 500
    assert pixels[..., :3].std() > 0.05
    assert len(np.unique(pixels[::4, ::4].reshape(-1, pixels.shape[-1]), axis=0)) > 20


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_the_suffix_decides_the_format_and_the_same_thing_is_the_same_file(suffix, start, tmp_path):
    paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for path in paths:
        plot(sweep(), path)
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
    ("thing", "message"),
    [
        (lambda: network().with_(target=None), "target none"),
        (lambda: network().with_(certificate=None), "certificate"),
        (lambda: truncated_linear(np.zeros((2, 2)), np.zeros(2), -1, 1), "no input of its box changes"),
    ],
)
def test_networks_that_have_no_picture_are_refused(thing, message, tmp_path):
    with pytest.raises(AnchorheadError, match=message):
        plot(thing(), tmp_path / "picture.png")


def test_a_network_that_never_reaches_its_range_has_a_picture(tmp_path):
    plot(truncated_linear(np.full((2, 2), 0.1), np.full(2, 9.0), -1, 1), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").exists()


def test_plotting_leaves_pyplot_as_it_was(tmp_path):
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    mine = pyplot.figure()
    before = dict(mpl.rcParams)
    plot(sweep(), tmp_path / "picture.png")
    assert dict(mpl.rcParams) == before
    assert pyplot.get_fignums() == [mine.number]
    assert pyplot.gcf() is mine
    pyplot.close(mine)


def test_matplotlib_is_imported_only_to_plot():
    code = "import sys, anchorhead.plotting, anchorhead.lab; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_no_words_of_a_heat_map_stand_on_others():
    with mpl.rc_context(style.PARAMETERS):
        figure = draw_heat_maps(heat_maps(widths=(1.0, 4.0), tokens=6))
        figure.canvas.draw()
    texts = [thing for thing in figure.findobj() if isinstance(thing, matplotlib.text.Text) and thing.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text().strip()]
    for number, (words, box) in enumerate(boxes):
        for others, other in boxes[:number]:
            wide = min(box.x1, other.x1) - max(box.x0, other.x0)
            high = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert min(wide, high) <= 3, f"{words!r} stands on {others!r}"
