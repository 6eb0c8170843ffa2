"""Heads that stand for links: what is proven of them holds wherever they are asked."""

from __future__ import annotations

import numpy as np
import pytest

from anchorhead.constructions.learners.link_heads import link_head
from anchorhead.errors import CertificateError
from anchorhead.heads.atom import Part
from anchorhead.language.expressions.parser import parse
from anchorhead.lemmas.learners.links import HeadLink
from anchorhead.proof.enclosures.ranges import range_on_box
from anchorhead.proof.heads.link_heads import link_facts, logistic_form

LINKS = {
    "sigmoid(x)": (2, True),
    "tanh(x/0.1)": (2, True),
    "sigmoid(x/0.1) - 0.3": (2, True),
    "-sigmoid((1 - x)/0.1)": (2, True),
    "2 - 3*tanh(1 - 2*x)": (2, True),
    "clip(x, -1.35, 1.35)": (4, True),
    "x": (6, False),
    "x**3/3 + x/2": (None, False),
}


@pytest.mark.parametrize("text", LINKS)
def test_error_and_slopes_hold_everywhere_that_they_are_said_to(text):
    anchors, everywhere = LINKS[text]
    head = link_head(parse(text), (-4.0, 4.0), "float64")
    facts = head.facts
    assert anchors is None or [len(part) for part in head.parts] == [anchors]
    assert (facts.low == -np.inf and facts.high == np.inf) == everywhere
    reach = 1e6 if everywhere else 4.0
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-4, 4, 3000), np.geomspace(1e-12, reach, 200), -np.geomspace(1e-12, reach, 200)])
    phi = parse(text)
    rounding = 1e-15 * max(float(np.abs(part.values).max()) for part in head.parts) * 40
    assert np.abs(HeadLink(phi, head.parts).values(x, x) - phi.values({"x": x})).max() <= facts.error + rounding
    slopes = phi.derivative("x").values({"x": x})
    assert facts.least <= slopes.min()
    assert slopes.max() <= facts.slope * (1 + 1e-12)
    assert np.abs(phi.values({"x": x})).max() <= facts.size * (1 + 1e-12)
    assert facts.error <= 2e-9 * facts.size


def test_a_line_that_falls_is_told_from_one_that_rises():
    facts = link_head(parse("-2*x"), (-1.0, 1.0), "float64").facts
    assert facts.least == facts.slope == -2


def test_two_anchors_with_other_slopes_are_refused():
    form = logistic_form(parse("tanh(x)"))
    assert form is not None
    slopes, offsets, values = form.weights()
    with pytest.raises(CertificateError, match="slopes other than"):
        link_facts([Part.of(np.array(slopes) * 1.01, offsets, values, "float64")], parse("tanh(x)"), -1.0, 1.0)
    off = link_facts([Part.of(np.array(slopes) * (1 + 1e-6), offsets, values, "float64")], parse("tanh(x)"), -1.0, 1.0)
    x = np.linspace(-5, 5, 1001)
    assert np.abs(np.tanh(x * (1 + 1e-6)) - np.tanh(x)).max() <= off.error <= 1e-6


@pytest.mark.parametrize("text", ["sin(3*x)*exp(x)", "abs(x)*x", "where(x < 1/2, x, 1 - x)", "x**2 - x"])
def test_a_range_holds_all_values_and_is_not_much_wider(text):
    low, high = range_on_box(parse(text), {"x": (-2.0, 2.0)})
    values = parse(text).values({"x": np.linspace(-2, 2, 100_001)})
    assert low <= values.min()
    assert values.max() <= high
    assert high - low <= 1.03 * np.ptp(values)
