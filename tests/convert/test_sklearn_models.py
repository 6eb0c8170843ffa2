"""scikit-learn's networks become attention: the same predictions on every test sample, the error proven."""

from __future__ import annotations

import warnings
from copy import copy

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.convert import classes_of

datasets = pytest.importorskip("sklearn.datasets")
neural_network = pytest.importorskip("sklearn.neural_network")
linear_model = pytest.importorskip("sklearn.linear_model")
model_selection = pytest.importorskip("sklearn.model_selection")
preprocessing = pytest.importorskip("sklearn.preprocessing")


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


@pytest.fixture(scope="module")
def digits():
    X, y = datasets.load_digits(return_X_y=True)
    train, test, labels, _ = model_selection.train_test_split(X / 16, y, random_state=0)
    model = neural_network.MLPClassifier(hidden_layer_sizes=(16,), max_iter=30, random_state=0)
    return fitted(model, train, labels), test


def test_digits_are_classified_alike_on_every_test_sample(digits):
    model, test = digits
    network = ah.convert(model, on=(0, 1), within=1e-6)
    assert network.certificate.kind == "proven"
    logits = network(test)
    assert np.array_equal(classes_of(model, logits), model.predict(test))
    exact = np.maximum(test @ model.coefs_[0] + model.intercepts_[0], 0) @ model.coefs_[1] + model.intercepts_[1]
    assert np.abs(logits - exact).max() <= network.certificate.bound + 1e-12
    ah.check(network)


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_diabetes_is_predicted_alike_on_every_test_sample(activation):
    X, y = datasets.load_diabetes(return_X_y=True)
    X = preprocessing.minmax_scale(X)
    train, test, targets, _ = model_selection.train_test_split(X, (y - y.mean()) / y.std(), random_state=0)
    model = neural_network.MLPRegressor(hidden_layer_sizes=(6, 4), activation=activation, max_iter=40, random_state=1)
    fitted(model, train, targets)
    network = ah.convert(model, on=(0, 1), within=1e-4)
    assert network.certificate.kind == "proven"
    assert np.abs(network(test)[:, 0] - model.predict(test)).max() <= network.certificate.bound + 1e-12


def test_two_classes_and_several_labels_have_logits_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(80, 3))
    for y in (np.where(X[:, 0] > 0, "up", "down"), (X[:, :2] > 0).astype(int)):
        model = fitted(neural_network.MLPClassifier(hidden_layer_sizes=(3,), max_iter=60, random_state=0), X, y)
        network = ah.convert(model, on=(-1, 1), within=1e-5)
        assert np.array_equal(classes_of(model, network(X)), model.predict(X))


def test_float32_models_stay_float32():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 2)).astype(np.float32)
    model = fitted(neural_network.MLPRegressor(hidden_layer_sizes=(3,), max_iter=20, random_state=0), X, X.sum(1))
    assert ah.convert(model, on=(0, 1), within=1e-2).dtype == "float32"


def test_counts_are_predicted_alike_where_the_loss_is_poissons():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    try:
        model = neural_network.MLPRegressor("poisson", hidden_layer_sizes=(3,), max_iter=20, random_state=0)
        fitted(model, X, rng.poisson(1 + X[:, 0]))
    except (TypeError, ValueError):
        pytest.skip("this scikit-learn has no Poisson loss for networks")
    network = ah.convert(model, on=(0, 1), within=1e-3)
    assert np.abs(network(X)[:, 0] - model.predict(X)).max() <= network.certificate.bound + 1e-12


def test_the_box_must_be_given(digits):
    with pytest.raises(ah.AnchorheadError, match="on is missing"):
        ah.convert(digits[0], within=1e-2)


def test_other_estimators_and_unfitted_ones_are_refused_by_name(digits):
    ridge = fitted(linear_model.Ridge(), [[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ah.AnchorheadError, match="a Ridge of scikit-learn cannot be converted: MLPRegressor and MLPCl"):
        ah.convert(ridge, on=(0, 1), within=1e-2)
    with pytest.raises(ah.AnchorheadError, match="not fitted"):
        ah.convert(neural_network.MLPRegressor(), on=(0, 1), within=1e-2)
    with pytest.raises(ah.AnchorheadError, match="has no classes"):
        classes_of(ridge, np.zeros((1, 1)))
    with pytest.raises(ah.AnchorheadError, match="logits of shape"):
        classes_of(digits[0], np.zeros((1, 3)))


def test_converted_networks_are_planned_as_models_are(digits):
    plan = ah.plan(digits[0], on=(0, 1), within=[1e-2, 1e-4])
    assert len(plan.rows) >= 2


@pytest.mark.parametrize(
    ("name", "value"), [("coefs_", "x"), ("coefs_", [[["a"]]]), ("coefs_", []), ("intercepts_", None)]
)
def test_models_whose_weights_are_none_are_refused(name, value, digits):
    model = copy(digits[0])
    setattr(model, name, value)
    with pytest.raises(ah.AnchorheadError, match=f"{name}|call fit first"):
        ah.convert(model, on=(0, 1), within=1e-2)


def test_columns_keep_their_names(digits):
    model = copy(digits[0])
    model.feature_names_in_ = np.array([f"pixel {i}" for i in range(64)], dtype=object)
    network = ah.convert(model, on=(0, 1), within=1e-2)
    assert network.embed.features is not None
    assert network.embed.features[63] == "pixel 63"
    assert "(pixel " in network.layers[-2].labels[0]


def test_a_model_without_a_box_is_told_where_to_find_one(digits):
    with pytest.raises(ah.AnchorheadError, match=r"X\.min"):
        ah.convert(digits[0], within=1e-2)
