"""Pictures of heads show the error where it is largest, say what they show, and come out of files as well."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anchorhead.constructions.head import head
from anchorhead.errors import AnchorheadError
from anchorhead.network.files import load
from anchorhead.plotting import plot
from anchorhead.plotting.head import MAX_NUMBERED, draw_head
from anchorhead.plotting.head_view import HeadView
from anchorhead.plotting.page import Page
from anchorhead.proof.heads.head import head_errors


def measured(x):
    return np.tanh(x) ** 3


HEADS = {
    "smooth": lambda: head("softplus", (-3, 3), anchors=2),
    "kink": lambda: head("relu", (-1, 1), anchors=4, max_slope=1e5),
    "two parts": lambda: head("abs", (-1, 1), 1e-4, dtype="float32"),
    "several functions": lambda: head(["tanh(x)", "x"], (1, 2), anchors=2),
    "opaque": lambda: head(measured, (-1, 1), anchors=2),
    "many anchors": lambda: head("gelu", (-4, 4), anchors=MAX_NUMBERED + 1, placement="uniform"),
    "exact up to rounding": lambda: head("sigmoid", (-4, 4), anchors=2),
    "far from 0": lambda: head("sin", (1000, 1001), anchors=3),
}


@pytest.fixture(scope="module")
def heads():
    return {name: make() for name, make in HEADS.items()}


@pytest.mark.slow_for("smooth")
@pytest.mark.parametrize("name", HEADS)
def test_the_drawn_error_stays_in_the_band_and_reaches_what_exact_arithmetic_errs_by(name, heads):
    view = HeadView.of(heads[name])
    s = view.points()
    error = np.abs(view.computed(s) - view.exact(s)).max()
    bound, (in_exact, _) = view.certificate.bound, head_errors(view.certificate)
    assert error <= bound
    if in_exact > 0.9 * bound:
        assert error >= 0.95 * bound


def test_the_error_at_a_kink_would_be_missed_by_even_points(heads):
    view = HeadView.of(heads["kink"])
    even = np.linspace(*view.on, 3000)
    missed, seen = (np.abs(view.computed(s) - view.exact(s)).max() for s in (even, view.points()))
    assert missed < 0.5 * seen


def test_points_are_those_of_the_dtype_within_the_domain():
    view = HeadView.of(head("relu", (-0.1, 0.1), anchors=3, dtype="float32"))
    s = view.points()
    assert float(np.float32(0.1)) > 0.1
    assert -0.1 <= s[0] < s[-1] <= 0.1
    assert (s == s.astype(np.float32)).all()


@pytest.mark.parametrize("name", ["two parts", "several functions"])
def test_a_head_that_was_saved_has_the_same_picture(name, heads, tmp_path):
    plot(heads[name], tmp_path / "made.svg", size="column")
    heads[name].save(tmp_path / "head.safetensors")
    plot(load(tmp_path / "head.safetensors"), tmp_path / "loaded.svg", size="column")
    assert (tmp_path / "made.svg").read_bytes() == (tmp_path / "loaded.svg").read_bytes()


@pytest.mark.parametrize("name", HEADS)
def test_there_is_a_panel_for_the_weights_of_each_part_with_a_line_an_anchor(name, heads):
    _, _, *below = draw_head(heads[name], Page()).axes
    assert [len(axes.lines) for axes in below] == [len(part) for part in heads[name].parts]
    for axes, part in zip(below, heads[name].parts, strict=True):
        total = sum(np.asarray(line.get_ydata()) for line in axes.lines)
        assert np.allclose(total, 1)
        assert bool(axes.texts) == (len(part) <= MAX_NUMBERED)


@pytest.mark.parametrize(("name", "kind"), [("two parts", "proven"), ("opaque", "measured")])
def test_a_picture_says_what_it_shows(name, kind, heads):
    shown, top, middle = heads[name], *draw_head(heads[name], Page()).axes[:2]
    note = " ".join(text.get_text() for text in top.texts)
    for words in (f"{shown.anchors} anchors", shown.dtype, kind, f"{shown.certificate.bound:.3g}"):
        assert words in note
    title = top.get_title("left") + top.get_title("center")
    assert shown.target.name in title
    assert "[−1, 1]" in title
    legend = [text.get_text() for text in middle.get_legend().get_texts()]
    assert f"{kind}: {shown.certificate.bound:.3g}" in legend


def test_the_part_of_exact_arithmetic_is_drawn_where_rounding_shows(heads):
    for name, shows in (("smooth", False), ("exact up to rounding", True)):
        legend = draw_head(heads[name], Page()).axes[1].get_legend()
        assert any("exact arithmetic" in text.get_text() for text in legend.get_texts()) == shows


def test_a_head_without_a_certificate_has_no_band_to_show(heads):
    with pytest.raises(AnchorheadError, match="without a certificate"):
        plot(replace(heads["smooth"].network, certificate=None), kind="function")
