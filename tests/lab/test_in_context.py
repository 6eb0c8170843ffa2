"""The study of learners: every loss in its layouts, within what is proven; and its picture."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.image
import numpy as np
import pytest

from anchorhead import incontext
from anchorhead.errors import AnchorheadError
from anchorhead.lab.in_context import learner_study
from anchorhead.plotting import plot


def test_every_row_is_proven_and_keeps_its_bound():
    study = learner_study(["squared", "logistic", "hinge"], examples=12, features=2, steps=8)
    assert [(row.loss, row.layout) for row in study.rows] == [
        ("squared", "direct"),
        ("squared", "transformer"),
        ("squared", "sequence"),
        ("logistic", "transformer"),
        ("logistic", "sequence"),
        ("hinge", "transformer"),
        ("hinge", "sequence"),
    ]
    assert [row.layers // 8 for row in study.rows] == [1, 3, 2, 3, 2, 3, 2]
    for row in study.rows:
        assert row.kind == "proven"
        assert 0 < row.deviation <= row.bound <= 1e-7


def test_unknown_losses_are_named():
    with pytest.raises(AnchorheadError, match=r"'mean'.*squared, logistic"):
        learner_study(["mean"])


@pytest.mark.parametrize("features", [2, 4])
def test_a_trace_is_drawn(features, tmp_path):
    rng = np.random.default_rng(0)
    net = incontext.gradient_descent(steps=12, rate=0.2, features=features)
    trace = incontext.trace(net, net.prompt(rng.normal(size=(20, features)).clip(-4, 4), rng.uniform(-2, 2, 20)))
    assert trace.deviation.max() <= trace.certificate.bound
    weights = trace.attention(0)
    assert weights.shape == (40,)
    assert weights.sum() == pytest.approx(1)
    plot(trace, tmp_path / "trace.png")
    pixels = mpl.image.imread(tmp_path / "trace.png")
    assert pixels[..., :3].std() > 0.05
    with pytest.raises(AnchorheadError, match="one of 0 to 11"):
        trace.attention(12)
