"""What objects show of themselves in notebooks is well-formed, escaped, and loads nothing."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.as_html import MAX_ROWS, Markup, block, curve, flow, table, text
from anchorhead.errors import NotReached
from anchorhead.lab.in_context import LearnerRow, LearnerStudy
from plotting.pictures import THINGS, thing, trace
from tests.networks import names, network

VOID = {"br", "polyline", "rect", "path", "circle"}


class Page(HTMLParser):
    """Refuses what is not closed, scripts, and whatever would be loaded."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(content)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag not in {"script", "link", "img", "iframe", "style", "b2"}
        for name, value in attrs:
            assert name not in {"src", "href", "onclick", "onload"}
            assert "url(" not in (value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def page(of: object) -> str:
    """The words of an object's HTML."""
    return " ".join(Page(of._repr_html_()).words)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in THINGS if name not in ("surface", "maximum")])
def test_everything_that_can_be_plotted_shows_itself(name):
    assert page(thing(name))


@pytest.mark.parametrize("name", names())
def test_every_network_shows_its_layers_and_what_is_known(name):
    net = network(name)
    words = page(net)
    assert f"{net.parameters:,} parameters" in words
    assert all(type(layer).__name__ in words for layer in net.layers)
    if net.certificate is not None:
        assert net.certificate.target in words
        assert f"{net.certificate.kind} within {net.certificate.bound:.3g}" in words


def test_a_certificate_shows_all_that_it_prints():
    certificate = network("grid (float64)").certificate
    words = page(certificate)
    for line in (certificate.method, certificate.arithmetic, certificate.target, *map(str, certificate.terms)):
        assert line in words


def test_signs_of_html_in_what_is_shown_stay_signs():
    head = ah.head(named("<i>&'"), (-1, 1), anchors=2)
    assert "<i>" not in head._repr_html_()
    assert "<i>&'" in page(head)
    labelled = network("attention (float64)")
    odd = labelled.layers[1]
    bad = "<script>alert(1)</script>"
    changed = labelled.with_(layers=(labelled.layers[0], type(odd)(**{**vars(odd), "labels": (bad, "\x1b[31m")})))
    assert bad in page(changed)
    assert "\x1b" not in changed._repr_html_()
    error = NotReached(bad, changed, 1.0, 0.5)
    assert bad in page(error)


def named(name: str):
    def function(x):
        return np.tanh(x)

    function.__name__ = name
    return function


def test_a_report_of_a_converted_model_is_a_table():
    from anchorhead.convert.attention_only.report import AttentionOnlyReport, LayerReport

    certificate = network("head (float64)").certificate
    layer = LayerReport("layer <0>", 8, 8, "gelu", 9, -3.0, 3.0, 1e-6, certificate, 1e-7, 10, 100, 120)
    report = AttentionOnlyReport("Bert<x>", "float32", 1e-5, "proven", (layer,), (), ())
    words = page(report)
    assert "Bert<x> as attention only, in float32: 1 feed-forward sublayer replaced" in words
    assert "layer <0>" in words
    assert str(report).splitlines()[0] in words


def test_a_study_and_a_trace_without_a_certificate_show_themselves():
    study = LearnerStudy((LearnerRow("squared", "direct", 3, 10, 1e-9, np.nan, ""),), ())
    assert "squared" in page(study)
    from dataclasses import replace

    assert "not certified: too <large>" in page(replace(trace(), certificate=None, why="too <large>"))


def test_the_shared_pieces_escape_and_cut():
    assert text("<&\"'\n>") == "&lt;&amp;&quot;&#x27;<br>&gt;"
    assert text(Markup("<b>")) == "<b>"
    assert block("<t>", "", "<p>").count("&lt;") == 2
    assert f"and {5:,} more rows" in table(("a",), [[i] for i in range(MAX_ROWS + 5)])
    Page(table((), [["<", 1]]) + flow("<what>", [("<Attention>", 3)] * 30))
    Page(curve("<what>", [0.0, 1.0], [0.0, np.nan], [1.0, 2.0]))
    assert curve("nothing", [0.0, 1.0], [np.nan, np.inf]) == ""
