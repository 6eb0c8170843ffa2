"""Estimators: scikit-learn's own answers, out of a forward pass."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest

import anchorhead as ah
from anchorhead import incontext
from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from benchmarks.made_table import made_table

sklearn = pytest.importorskip("sklearn")

from scipy.optimize import minimize  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_diabetes  # noqa: E402
from sklearn.exceptions import ConvergenceWarning, NotFittedError  # noqa: E402
from sklearn.linear_model import HuberRegressor  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

from anchorhead.incontext.estimators.estimators import ColumnWarning  # noqa: E402
from anchorhead.incontext.estimators.reference import deviation, reference  # noqa: E402


def _standardised(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _data(name: str, label: str = "number") -> tuple[np.ndarray, np.ndarray]:
    if name == "table":
        return made_table(label)  # type: ignore[arg-type]
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        return _standardised(X), (y > 140).astype(float) if label == "class" else y
    X, y = load_breast_cancer(return_X_y=True)
    return _standardised(X), np.round(X[:, 0]) if label == "count" else y.astype(float)


def _models(y: np.ndarray) -> dict[str, tuple[Any, str]]:
    """Penalties in proportion to the labels, so that they matter and leave something."""
    size = float(y.std())
    return {
        "linear": (incontext.LinearRegression(), "number"),
        "ridge": (incontext.Ridge(alpha=1.0), "number"),
        "lasso": (incontext.Lasso(alpha=0.02 * size), "number"),
        "elastic net": (incontext.ElasticNet(alpha=0.05 * size), "number"),
        "logistic": (incontext.LogisticRegression(C=0.3, tol=1e-5), "class"),
        "poisson": (incontext.PoissonRegressor(alpha=0.1, tol=1e-5), "count"),
    }


LONG = [(kind, name) for kind in ("logistic", "poisson") for name in ("cancer", "table")]
LONG += [("linear", "cancer"), ("poisson", "diabetes")]
LONG += [("linear", "table"), ("ridge", "cancer"), ("elastic net", "table")]
CASES = [
    pytest.param(kind, name, marks=[pytest.mark.slow] if (kind, name) in LONG else [])
    for kind in ("linear", "ridge", "lasso", "elastic net", "logistic", "poisson")
    for name in ("diabetes", "cancer", "table")
]


@pytest.mark.slow_for("lasso-cancer", "elastic net-cancer", "lasso-table", "ridge-table", "logistic-diabetes")
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_coefficients_and_predictions_are_those_of_scikit_learn(kind: str, name: str) -> None:
    model, label = _models(_data(name)[1])[kind]
    X, y = _data(name, label)
    model.fit(X, y)
    other = reference(model).fit(X, y)
    assert deviation(model, other) <= (1e-6 if label == "number" else 1e-4)
    ask = "decision_function" if label == "class" else "predict"
    ours, theirs = getattr(model, ask)(X), getattr(other, ask)(X)
    assert np.abs(ours - theirs).max() <= 1e-5 * np.abs(theirs).max()
    assert model.n_layers_ >= model.n_iter_ >= 1


@pytest.mark.slow
def test_columns_of_very_different_sizes_are_penalised_as_they_are() -> None:
    X, y = _data("diabetes")
    sizes = 10.0 ** np.linspace(-3, 4, X.shape[1])
    for model in (incontext.Ridge(alpha=5.0), incontext.Lasso(alpha=0.5), incontext.ElasticNet(alpha=0.1)):
        model.fit(X * sizes + 3 * sizes, y)
        other = reference(model).fit(X * sizes + 3 * sizes, y)
        assert model.network_.descent.scales is not None
        apart = np.abs((model.coef_ - other.coef_) * sizes).max()
        assert apart <= 1e-4 * np.abs(other.coef_ * sizes).max()


@pytest.mark.slow
def test_without_an_intercept_the_line_goes_through_the_origin() -> None:
    X, y = _data("diabetes")
    for model in (incontext.Ridge(fit_intercept=False), incontext.LinearRegression(fit_intercept=False)):
        assert deviation(model.fit(X + 1, y), reference(model).fit(X + 1, y)) <= 1e-4
        assert model.intercept_ == 0
    model = incontext.PoissonRegressor(alpha=0.1, fit_intercept=False, tol=1e-5).fit(X[:, :3], np.round(y / 40))
    assert deviation(model, reference(model).fit(X[:, :3], np.round(y / 40))) <= 1e-4


@pytest.mark.slow
def test_hubers_objective_is_as_low_as_any_solver_finds_and_scikit_learns_with_its_scale() -> None:
    X, y = _data("diabetes")
    y = y + 300 * (np.random.default_rng(0).random(len(y)) < 0.05)
    other = HuberRegressor(tol=1e-10, max_iter=100_000).fit(X, y)
    model = incontext.HuberRegressor(scale=other.scale_, tol=1e-6).fit(X, y)
    assert deviation(model, other) <= 1e-4
    found = minimize(
        lambda p: model.objective(X, y, p[:-1], p[-1]), np.append(model.coef_, model.intercept_), method="BFGS"
    )
    assert model.objective(X, y) <= found.fun * (1 + 1e-6)


@pytest.mark.slow
def test_the_quantiles_objective_is_as_low_as_any_solver_finds() -> None:
    X, y = _data("diabetes")
    X = X[:, [2, 3, 8]]
    for quantile, alpha in ((0.5, 2.0), (0.9, 0.0)):
        model = incontext.QuantileRegressor(quantile=quantile, alpha=alpha, tol=1e-6).fit(X, y)
        found = minimize(
            lambda p, model=model: model.objective(X, y, p[:-1], p[-1]),
            np.append(model.coef_, model.intercept_),
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000},
        )
        assert model.objective(X, y) <= found.fun * (1 + 1e-6)
        below = np.mean(y <= model.predict(X))
        assert abs(below - quantile) < 0.05


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == "Ridge" else [pytest.mark.slow]) for name in incontext.ESTIMATORS],
)
def test_scikit_learns_checks_pass(name: str) -> None:
    """With few steps where a step is three layers: the checks are of manners, not of digits."""
    one_layer = name in ("LinearRegression", "Ridge", "Lasso", "ElasticNet")
    model = getattr(incontext, name)(**({"tol": 1e-4} if one_layer else {"max_iter": 12}))
    passed = 0
    for estimator, check in estimator_checks_generator(model):
        try:
            check(estimator)
        except SkipTest:
            continue
        passed += 1
    assert passed >= 40


def test_the_network_saves_loads_and_runs_on_another_prompt(tmp_path: Path) -> None:
    X, y = _data("diabetes")
    model = incontext.Ridge(alpha=1.0).fit(X[:200], y[:200])
    assert isinstance(model.network_, Network)
    model.network_.save(tmp_path / "fitted.safetensors")
    network = ah.load(tmp_path / "fitted.safetensors")
    again, intercept = model.coefficients(network(model.prompt(X[:200], y[:200])))
    np.testing.assert_allclose(again, model.coef_, rtol=1e-12)
    assert intercept == pytest.approx(model.intercept_, rel=1e-12)
    others, _ = model.coefficients(network(model.prompt(X[200:400], y[200:400])))
    exact, _ = model.coefficients(network.exact(model.prompt(X[200:400], y[200:400])))
    assert np.abs(others - exact).max() <= 1e-7 * np.abs(exact).max()
    assert np.abs(others - model.coef_).max() > 1


def test_the_fit_of_few_steps_is_proven() -> None:
    X, y = _data("diabetes")
    model = incontext.Ridge(alpha=100.0).fit(X, y)
    certificate = model.network_.certify(model.prompt(X, y))
    prompt = model.prompt(X, y)
    assert certificate.kind == "proven"
    assert np.abs(model.network_(prompt) - model.network_.exact(prompt)).max() <= certificate.bound <= 1e-3


def test_they_serve_in_pipelines_grids_and_pickles() -> None:
    X, y = load_diabetes(return_X_y=True)
    search = GridSearchCV(make_pipeline(StandardScaler(), incontext.Ridge()), {"ridge__alpha": [1.0, 100.0]}, cv=2)
    best = search.fit(X[:120], y[:120]).best_estimator_
    assert best.score(X[:120], y[:120]) > 0.3
    again = pickle.loads(pickle.dumps(best))  # noqa: S301
    assert np.array_equal(again.predict(X), best.predict(X))
    assert not hasattr(clone(best)[-1], "coef_")


def test_float32_is_coarser_but_settles() -> None:
    X, y = _data("diabetes")
    model = incontext.Ridge(alpha=10.0, dtype="float32").fit(X, y)
    assert model.network_.dtype == "float32"
    assert deviation(model, reference(model).fit(X, y)) <= 1e-2


def test_classes_may_be_words_and_probabilities_add_up() -> None:
    X, y = _data("diabetes", "class")
    words = np.where(y > 0, "yes", "no")
    model = incontext.LogisticRegression(tol=1e-4).fit(X[:100, :3], words[:100])
    assert set(model.predict(X[:, :3])) == {"no", "yes"}
    proba = model.predict_proba(X[:, :3])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.log(proba), model.predict_log_proba(X[:, :3]), rtol=1e-9)


def test_one_class_is_named_as_it_was_written() -> None:
    with pytest.raises(AnchorheadError, match="y holds one class, 'yes': two"):
        incontext.LogisticRegression().fit(np.eye(4), ["yes"] * 4)


@pytest.mark.slow
def test_a_constant_column_gets_0_and_is_named() -> None:
    X, y = _data("diabetes")
    X = np.column_stack([X[:, 2], np.full(len(y), 7.0), X[:, 3]])
    for model in (incontext.Ridge(), incontext.LinearRegression(), incontext.Lasso()):
        with pytest.warns(ColumnWarning, match="coefficient 0: 1$"):
            model.fit(X, y)
        assert model.coef_[1] == 0
        assert deviation(model, reference(model).fit(X, y)) <= 1e-4


def test_more_columns_than_examples_are_refused_without_a_penalty_and_fitted_with_one() -> None:
    X, y = _data("cancer")
    with pytest.raises(AnchorheadError, match=r"n_samples=20 for 30 columns.*Ridge"):
        incontext.LinearRegression().fit(X[:20], y[:20])
    model = incontext.Ridge(alpha=1.0).fit(X[:20], y[:20])
    assert deviation(model, reference(model).fit(X[:20], y[:20])) <= 1e-4


def test_too_few_steps_say_so() -> None:
    X, y = _data("diabetes")
    with pytest.warns(ConvergenceWarning, match="30 steps did not settle"):
        model = incontext.LinearRegression(max_iter=30).fit(X, y)
    assert model.n_iter_ == 30
    with pytest.warns(ConvergenceWarning, match="4 steps did not settle within tol=1e-07: how far is not known yet"):
        incontext.LinearRegression(max_iter=4).fit(X, y)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda: incontext.Ridge(alpha=-1.0), "alpha=-1.0: Ridge takes a number of at least 0"),
        (lambda: incontext.ElasticNet(l1_ratio=1.5), "l1_ratio=1.5"),
        (lambda: incontext.QuantileRegressor(quantile=1.0), "quantile=1.0"),
        (lambda: incontext.HuberRegressor(epsilon=0.5), "epsilon=0.5"),
        (lambda: incontext.Lasso(max_iter=0), "max_iter=0"),
        (lambda: incontext.Lasso(tol="small"), "tol='small'"),
        (lambda: incontext.PoissonRegressor(), "out of the valid range"),
        (lambda: incontext.LogisticRegression(), "Only binary classification"),
    ],
)
def test_what_cannot_be_is_named(model: Any, said: str) -> None:
    X, y = np.random.default_rng(0).standard_normal((12, 3)), np.array([-1.0, 0, 1] * 4)
    with pytest.raises(AnchorheadError, match=said):
        model().fit(X, y)


def test_use_before_fit_and_missing_values_are_refused() -> None:
    X, y = _data("diabetes")
    with pytest.raises(NotFittedError):
        incontext.Ridge().predict(X)
    with pytest.raises(ValueError, match="NaN"):
        incontext.Ridge().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(AnchorheadError, match="overflows"):
        incontext.Ridge().fit(np.where(X > 2, 1e200, X), y)
