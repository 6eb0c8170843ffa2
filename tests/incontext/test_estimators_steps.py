"""What estimators rest on: momentum with thresholds, scales of columns, and knowing when a learner has settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.networks import linked_network, squared_network
from anchorhead.errors import AnchorheadError
from anchorhead.incontext.settled import settle, states
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.losses import named_loss
from anchorhead.lemmas.learners.threshold import NotKnown
from benchmarks.made_table import made_table

from .data import regression


def _learner(**words: Any) -> Learner:
    target = Descent(named_loss("squared"), **{"steps": 2_000, "rate": 0.2, "features": 5, "momentum": 0.8, **words})
    return Learner.of(squared_network(target, 2.0**-11, "float64"))


def test_momentum_with_a_threshold_settles_at_lassos_minimum() -> None:
    """There the gradient is -threshold sign(w) where w is not 0, and no larger than the threshold elsewhere."""
    X, y = regression()
    net = _learner(threshold=0.15)
    found = settle(net, net.prompt(X, y), 1e-9)
    assert found.outcome == "settled"
    gradient = X.T @ (X @ found.w - y) / len(y)
    free = np.abs(found.w) > 1e-9
    assert free.any()
    assert not free.all()
    np.testing.assert_allclose(gradient[free], -0.15 * np.sign(found.w[free]), atol=1e-8)
    assert np.abs(gradient[~free]).max() < 0.15


@pytest.mark.parametrize("words", [{}, {"threshold": 0.1}, {"threshold": 0.1, "decay": 0.3, "intercept": True}])
def test_v_is_the_step_that_w_made(words: dict[str, Any]) -> None:
    net = _learner(steps=20, **words)
    before = np.zeros(net.descent.weights)
    for _, w, v in states(net, net.prompt(*regression())):
        np.testing.assert_allclose(v, w - before, atol=1e-14)
        before = w


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_scales_of_columns_are_followed_and_not_taken_for_proven(loss: str) -> None:
    scales = (1.0, 0.1, 3.0, 0.7, 2.0)
    layout = "direct" if loss == "squared" else "transformer"
    target = Descent(
        named_loss(loss), 40, 0.1, 5, False, 0.2, 0.05, 0.7, layout=layout, scales=scales
    )  # fmt: skip
    built = (
        squared_network(target, 2.0**-11, "float64")
        if loss == "squared"
        else linked_network(target, "float64", 2.0**-11, 2.0**-11)
    )
    net = Learner.of(built)
    X, y = regression()
    prompt = net.prompt(X, (y > 0).astype(float) if loss == "logistic" else y)
    assert np.abs(net(prompt, path=True) - net.exact(prompt, path=True)).max() <= 1e-9
    same = replace(target, scales=None).path(X, y)
    assert np.abs(net.exact(prompt) - same[-1]).max() > 1e-3
    assert net.descent.scales == scales
    with pytest.raises(NotKnown, match="not proven"):
        net.certify(prompt)


@pytest.mark.slow
def test_scales_on_columns_are_penalties_on_columns_as_they_were() -> None:
    X, y = regression()
    scales = np.array([1.0, 0.5, 2.0, 1.0, 0.25])
    plain = _learner(threshold=0.05, decay=0.1, steps=4_000, rate=0.05)
    scaled = _learner(threshold=0.05, decay=0.1, steps=4_000, rate=0.05, scales=tuple(scales))
    first = settle(plain, plain.prompt(X, y), 1e-9, patient=True).w
    # the same examples in columns that were divided by 1 / scales
    second = settle(scaled, scaled.prompt(X * scales, y), 1e-9, patient=True).w
    np.testing.assert_allclose(second * scales, first, atol=1e-7)


@pytest.mark.slow
def test_a_rate_that_is_too_large_and_a_momentum_that_is_too_small_are_noticed() -> None:
    X, y = made_table(rows=200, columns=20)
    prompt = _learner(features=20).prompt(X, y / y.std())
    fast = _learner(features=20, rate=1.0)
    assert settle(fast, prompt, 1e-8).outcome == "diverged"
    slow = _learner(features=20, rate=0.01, momentum=0.5)
    found = settle(slow, prompt, 1e-8)
    assert found.outcome == "slow"
    assert found.momentum > 0.7
    assert found.steps < 500
    better = settle(_learner(features=20, rate=0.1, momentum=found.momentum), prompt, 1e-8, patient=True)
    assert better.outcome == "settled"
    exact = np.linalg.lstsq(X, y / y.std(), rcond=None)[0]
    assert np.abs(better.w - exact).max() <= 1e-7 * np.abs(exact).max()
    assert better.learner.descent.steps == better.steps
    assert settle(_learner(features=20, rate=0.1, steps=15), prompt, 1e-8).outcome == "steps"


def test_a_learner_without_momentum_is_refused() -> None:
    net = _learner(momentum=0.0)
    with pytest.raises(AnchorheadError, match="without momentum"):
        settle(net, net.prompt(*regression()), 1e-8)


def test_bad_scales_and_labels_of_tables_are_named() -> None:
    with pytest.raises(AnchorheadError, match="5 numbers above 0"):
        _learner(scales=(1.0, 2.0))
    with pytest.raises(AnchorheadError, match="one of"):
        made_table("words")  # type: ignore[arg-type]
