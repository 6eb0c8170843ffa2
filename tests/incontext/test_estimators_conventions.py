"""What scikit-learn's users count on: exact zeros, scores, silence, and words where something is not taken."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from anchorhead import incontext
from anchorhead.errors import AnchorheadError
from benchmarks.made_table import made_table

pytest.importorskip("sklearn")

from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from anchorhead.incontext.estimators.reference import reference
from anchorhead.incontext.estimators.zeros import with_zeros

X, Y = load_diabetes(return_X_y=True)
X = X / X.std(axis=0)
SCALES = np.array([1, 10, 0.1, 1, 5, 1, 1e3, 30, 1, 1e-3])
EVERY = [
    incontext.LinearRegression,
    incontext.Ridge,
    incontext.Lasso,
    incontext.ElasticNet,
    incontext.LogisticRegression,
    incontext.PoissonRegressor,
    incontext.HuberRegressor,
    incontext.QuantileRegressor,
]


SPARSE = [
    incontext.Lasso(alpha=8.0),
    incontext.Lasso(alpha=8.0, fit_intercept=False),
    incontext.ElasticNet(alpha=4.0, l1_ratio=0.8),
    incontext.Lasso(alpha=8.0, dtype="float32", tol=1e-4),
]


@pytest.mark.slow_for(
    "ElasticNet(alpha=4.0, l1_ratio=0.8)-of other scales",
    "Lasso(alpha=8.0)-of other scales",
    "Lasso(alpha=8.0, fit_intercept=False)-alike",
)
@pytest.mark.parametrize(("model", "kind"), list(product(SPARSE, ("of other scales", "alike"))), ids=str)
def test_a_threshold_leaves_the_zeros_that_scikit_learn_finds(model, kind):
    columns = X if kind == "alike" else X * SCALES
    found = clone(model).fit(columns, Y)
    theirs = reference(model).fit(columns, Y).coef_
    assert np.array_equal(found.coef_ != 0, theirs != 0)
    again, _ = found.coefficients(found.network_(found.prompt(columns, Y)).astype(np.float64))
    assert np.array_equal(again != 0, theirs != 0)


def test_all_may_be_zero():
    assert not incontext.Lasso(alpha=100.0).fit(X, Y).coef_.any()


@pytest.mark.slow
def test_zeros_are_told_by_the_threshold_s_own_error_and_nothing_else_is():
    model = incontext.Lasso(alpha=8.0).fit(X, Y)
    w = model.network_(model.prompt(X, Y))
    read = with_zeros(model.network_, w)
    small = read != w
    tau = model.network_.descent.rate * model.network_.descent.threshold
    assert small.any()
    assert not read[small].any()
    assert np.abs(w[small]).max() <= 1e-12 * tau
    # beyond twice the error every entry is kept, as is whatever stands in the intercept's place
    least = np.full_like(w, 2e-12 * tau)
    assert np.array_equal(with_zeros(model.network_, least), least)
    tiny = np.full_like(w, 1e-300)
    assert np.flatnonzero(with_zeros(model.network_, tiny)).tolist() == [len(w) - 1]
    ridge = incontext.Ridge().fit(X, Y)
    assert np.array_equal(with_zeros(ridge.network_, tiny), tiny)


def test_the_score_of_poisson_is_the_share_of_deviance_explained():
    columns, counts = made_table("count")
    columns, counts = columns[:200, :5], counts[:200]
    ours = incontext.PoissonRegressor(alpha=0.1, tol=1e-5).fit(columns, counts)
    theirs = linear_model.PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=1000).fit(columns, counts)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(counts))
    assert ours.score(columns, counts) == pytest.approx(theirs.score(columns, counts), rel=1e-5)
    assert ours.score(columns, counts, weight) == pytest.approx(theirs.score(columns, counts, weight), rel=1e-5)


@pytest.mark.parametrize("kind", EVERY)
def test_nothing_is_written_unless_asked_for(kind):
    assert kind().verbose is False
    assert kind().get_params()["verbose"] is False


@pytest.mark.parametrize("kind", EVERY)
def test_weights_of_examples_are_refused_in_words(kind):
    y = Y > 140 if kind is incontext.LogisticRegression else Y
    ones = np.ones(len(Y))
    for refused in (lambda: kind().fit(X, y, sample_weight=ones), lambda: kind().fit(X, y, ones)):
        with pytest.raises(AnchorheadError, match=rf"fit of {kind.__name__} was given sample_weight: .* leave it out"):
            refused()
    with pytest.raises(AnchorheadError, match="was given check_input"):
        kind().fit(X, y, check_input=False)


def test_weights_that_are_none_are_taken():
    columns, labels = X[:60, :3], Y[:60]
    plain = incontext.Ridge().fit(columns, labels)
    assert np.array_equal(incontext.Ridge().fit(columns, labels, sample_weight=None).coef_, plain.coef_)
    assert np.array_equal(incontext.Ridge().fit(columns, labels, None).coef_, plain.coef_)
    weight = np.linspace(0.5, 2, len(labels))
    theirs = linear_model.Ridge().fit(columns, labels)
    assert plain.score(columns, labels, weight) == pytest.approx(theirs.score(columns, labels, weight), rel=1e-6)


def test_weights_of_classes_are_refused_in_words():
    with pytest.raises(AnchorheadError, match=r"class_weight='balanced' of LogisticRegression.*alike; leave it out"):
        incontext.LogisticRegression(class_weight="balanced")
    assert clone(incontext.LogisticRegression(C=2.0)).C == 2.0
