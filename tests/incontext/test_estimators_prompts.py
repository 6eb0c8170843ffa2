"""Estimators and the prompts of their networks: the intercept is the network's, and labels are those of fit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from anchorhead import incontext
from anchorhead.errors import AnchorheadError

sklearn = pytest.importorskip("sklearn")

from sklearn.datasets import load_diabetes  # noqa: E402

from anchorhead.incontext.estimators.reference import deviation, reference  # noqa: E402


def _diabetes() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize(
    "model",
    [incontext.LinearRegression(), incontext.Ridge(), incontext.Lasso(1.5), incontext.ElasticNet(4.0)],
    ids=str,
)
def test_the_network_finds_the_intercept_and_finds_another_for_other_examples(model: Any) -> None:
    X, y = _diabetes()
    model.fit(X[:220], y[:220])
    own = model.network_(model.prompt(X[:220], y[:220]))[-1]
    assert model.labels_.centre == 0
    assert model.labels_.unit * own - model.columns_.middle @ model.coef_ == pytest.approx(model.intercept_, rel=1e-9)
    # a little narrower, so that the rate of fit is safe for them too
    others, labels = 0.8 * X[220:440] + 0.1, y[220:440] - 100
    coefficients, intercept = model.coefficients(model.network_(model.prompt(others, labels)))
    theirs = reference(model).fit(others, labels)
    assert np.abs(coefficients - theirs.coef_).max() <= 1e-4 * np.abs(theirs.coef_).max()
    assert intercept == pytest.approx(theirs.intercept_, abs=1e-4 * np.abs(theirs.coef_).max())


@pytest.mark.parametrize("away", [3.9, 0.0, 1e6, 4.1])
def test_labels_far_from_0_leave_the_coefficients_their_digits(away: float) -> None:
    X, y = _diabetes()
    y = (y - y.mean()) / y.std() + away
    for model in (incontext.LinearRegression(), incontext.Lasso(alpha=0.02)):
        other = reference(model.fit(X + 5, y)).fit(X + 5, y)
        assert deviation(model, other) <= 1e-6
        assert model.intercept_ == pytest.approx(other.intercept_, rel=1e-6, abs=1e-6)


@pytest.mark.slow
def test_prompts_take_the_labels_that_fit_takes_and_no_others() -> None:
    X, y = _diabetes()
    words = np.where(y > 140, "yes", "no")
    model = incontext.LogisticRegression(tol=1e-4).fit(X[:100, :3], words[:100])
    found, intercept = model.coefficients(model.network_(model.prompt(X[:100, :3], list(words[:100]))))
    np.testing.assert_allclose(found, model.coef_[0], rtol=1e-12)
    assert intercept == pytest.approx(model.intercept_[0], rel=1e-12)
    with pytest.raises(AnchorheadError, match="y holds 'perhaps': the classes of fit are 'no' and 'yes'"):
        model.prompt(X[:2, :3], ["yes", "perhaps"])
    ridge = incontext.Ridge(alpha=100.0, tol=1e-3).fit(X[:, :3], y)
    with pytest.raises(AnchorheadError, match="Ridge takes numbers"):
        ridge.prompt(X[:2, :3], ["yes", "no"])
    with pytest.raises(ValueError, match="X has 2 features, but Ridge is expecting 3"):
        ridge.prompt(X[:2, :2], [1, 2])


@pytest.mark.parametrize("shape", [(3,), (5,), (2, 4), ()])
def test_coefficients_take_the_weights_of_one_prompt(shape: tuple[int, ...]) -> None:
    X, y = _diabetes()
    model = incontext.Ridge(alpha=100.0, tol=1e-3).fit(X[:, :3], y)
    with pytest.raises(AnchorheadError, match="needed are the 4 weights"):
        model.coefficients(np.ones(shape))


@pytest.mark.parametrize(("alpha", "intercept"), list(product([100.0, 1.0], [True, False])))
def test_a_threshold_that_holds_all_coefficients_at_zero_does_not_hide_a_rate_that_is_too_large(alpha, intercept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    model = incontext.Lasso(alpha=alpha, fit_intercept=intercept).fit(X, y)
    again, _ = model.coefficients(model.network_(model.prompt(X, y)))
    assert np.array_equal(again, model.coef_)
