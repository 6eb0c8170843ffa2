"""Callables of many inputs: fitted, converted, measured; the same for a seed; failure brings the best network."""

import numpy as np
import pytest
import torch

from anchorhead.certificate import Certificate
from anchorhead.constructions.build_request import FORMS, LAYOUTS, BuildRequest
from anchorhead.constructions.fitting import fitted, ridge_fit
from anchorhead.constructions.fitting.fitted import approximate_fitted
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.language.targets.opaque_several import CallableSeveral
from anchorhead.proof.search import callable_search
from anchorhead.terms import added_up


@pytest.fixture(autouse=True)
def _shorter_searches(monkeypatch):
    monkeypatch.setattr(callable_search, "SAMPLES", 1 << 12)
    monkeypatch.setattr(callable_search, "ROUNDS", 20)


def target(f, low, high, tokens=None):
    low, high = np.array(low, float), np.array(high, float)
    return CallableSeveral(f, low, high, tokens, tuple(f"x{i}" for i in range(len(low))))


def friedman(x):
    return (10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]) / 30


def waves(x):
    return np.sin(2 * np.cumsum(x, axis=1))


def values(network, one):
    """The network on flat inputs, as its dtype computes it."""
    shape = (len(one.low),) if one.tokens is None else (one.tokens, len(one.low) // one.tokens)
    return lambda x: network(x.reshape(-1, *shape), outside="raise").astype(np.float64).reshape(len(x), -1)


def certificate_of(network) -> Certificate:
    assert network.certificate is not None
    return network.certificate


def assert_no_worse_place_is_found(network, one, count=2000):
    """Points inside and on faces, in the network and in the function."""
    rng = np.random.default_rng(99)
    x, drawn = rng.uniform(one.low, one.high, (count, len(one.low))), rng.random((count, len(one.low)))
    x = np.where(drawn < 0.2, one.low, np.where(drawn > 0.8, one.high, x))
    assert np.abs(values(network, one)(x) - one.values(x)).max() <= certificate_of(network).bound


def test_a_function_of_five_inputs_is_fitted_and_its_error_is_split():
    one = target(friedman, [0] * 5, [1] * 5)
    network = approximate_fitted(one, BuildRequest(1e-2))
    certificate = certificate_of(network)
    assert certificate.kind == "measured"
    assert certificate.bound <= 1e-2
    assert [(term.kind, term.of) for term in certificate.terms] == [("found", "fitting"), ("error", "conversion")]
    assert added_up(certificate.terms) <= certificate.bound
    assert certificate.term("error").amount <= 0.02 * 1e-2
    assert "evaluations" in certificate.method
    assert "seed 0" in certificate.method
    assert network.construction == "opaque several"
    assert_no_worse_place_is_found(network, one)


def test_the_fitting_error_is_that_of_the_place_the_certificate_names():
    one = target(friedman, [0] * 5, [1] * 5)
    certificate = certificate_of(network := approximate_fitted(one, BuildRequest(1e-2, seed=3)))
    at = certificate.method.split("at (")[1].split(")")[0]
    x = np.array([[float(c) for c in at.split(",")]])
    found = float(np.abs(values(network, one)(x) - one.values(x)).max())
    assert found == pytest.approx(certificate.term("found").amount, rel=1e-3)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    one = target(lambda x: np.tanh(x.sum(axis=1)), [-1] * 6, [1] * 6)
    same, again, other = (approximate_fitted(one, BuildRequest(1e-2, seed=seed)) for seed in (1, 1, 2))
    x = np.random.default_rng(0).uniform(-1, 1, (50, 6))
    assert np.array_equal(same(x), again(x))
    assert not np.array_equal(same(x), other(x))


@pytest.mark.parametrize(("form", "layout"), [*zip(FORMS, LAYOUTS * 2, strict=False), ("deep", "sequence")])
def test_forms_and_layouts_are_built_from_the_fit(form, layout):
    one = target(lambda x: np.sin(x.sum(axis=1, keepdims=True) + x), [0] * 3, [0.5] * 3, tokens=3)
    dtype = "float32" if form == "deep" else "float64"
    network = approximate_fitted(one, BuildRequest(1e-2, form=form, layout=layout, dtype=dtype))
    assert network.dtype == dtype
    assert certificate_of(network).bound <= 1e-2
    assert_no_worse_place_is_found(network, one)


def test_even_anchors_are_those_of_relu():
    one = target(lambda x: np.abs(x @ np.arange(1.0, 6)) + x[:, 0], [-1] * 5, [1] * 5)
    network = approximate_fitted(one, BuildRequest(1.0, placement="uniform"))
    assert "uniform anchors" in certificate_of(network).method
    assert "relu" in certificate_of(network).method
    assert certificate_of(network).bound <= 1.0
    assert_no_worse_place_is_found(network, one)


@pytest.mark.slow
def test_the_largest_of_three_needs_two_hidden_layers_and_gets_them():
    one = target(lambda x: x.max(axis=1), [0] * 3, [1] * 3)
    network = approximate_fitted(one, BuildRequest(5e-3))
    assert "deep" in certificate_of(network).method
    assert certificate_of(network).bound <= 5e-3
    assert_no_worse_place_is_found(network, one)


def test_causal_networks_cannot_see_later_tokens():
    one = target(waves, [0] * 3, [1] * 3, tokens=3)
    network = approximate_fitted(one, BuildRequest(1e-2, causal=True))
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 40, 3, 1))
    y[:, :2] = x[:, :2]
    assert np.array_equal(network(x)[:, :2], network(y)[:, :2])
    assert not np.array_equal(network(x)[:, 2], network(y)[:, 2])
    assert_no_worse_place_is_found(network, one)


def test_functions_that_are_not_causal_are_refused_with_two_inputs():
    one = target(lambda x: x + x[:, ::-1], [0] * 5, [1] * 5, tokens=5)
    with pytest.raises(AnchorheadError, match=r"depends on input token .* agree up to token"):
        approximate_fitted(one, BuildRequest(1e-2, causal=True))


BOXES = {
    "far from zero": ([1000] * 5, [1001] * 5),
    "of very different sizes": ([0, 0, -1e-6, 0, -1e6], [1e3, 1e-3, 1e-6, 1, 1e6]),
    "with an input that is fixed": ([0, 0, 0, 0, 0.3], [1, 1, 1, 1, 0.3]),
}


@pytest.mark.parametrize(("name", "size"), list(zip(BOXES, (1e-12, 1.0, 1e12), strict=True)))
def test_boxes_and_ranges_of_every_size_are_fitted(name, size):
    low, high = map(np.array, BOXES[name])
    width = np.where(high > low, high - low, 1)
    one = target(lambda x: size * np.sin(((x - low) / width).sum(axis=1)), low, high)
    network = approximate_fitted(one, BuildRequest(1e-2 * size))
    assert certificate_of(network).bound <= 1e-2 * size
    assert_no_worse_place_is_found(network, one)


def test_constants_and_linear_maps_need_no_neurons():
    for f in (lambda x: np.full((len(x), 2), 3.0), lambda x: x @ np.arange(10.0).reshape(5, 2) - 1):
        network = approximate_fitted(target(f, [0] * 5, [1] * 5), BuildRequest(1e-6))
        assert "linear" in certificate_of(network).method
        assert certificate_of(network).bound <= 1e-9


def test_progress_is_told_of_neurons_and_errors_and_the_last_is_what_was_reached():
    told = []
    one = target(friedman, [0] * 5, [1] * 5)
    network = approximate_fitted(one, BuildRequest(1e-2, progress=told.append))
    neurons = [int(status.doing.split()[1]) for status in told]
    assert neurons == sorted(neurons)
    assert told[-1].error <= 0.01
    assert told[-1].error == pytest.approx(certificate_of(network).bound, rel=0.1)


@pytest.mark.slow
def test_what_was_not_reached_brings_the_best_network_and_says_how_far_it_came(monkeypatch):
    monkeypatch.setattr(fitted, "EFFORT", 3e9)
    one = target(lambda x: np.tanh(1e5 * (x.sum(axis=1) - 2.5)), [0] * 5, [1] * 5)
    with pytest.raises(
        NotReached, match=r"within=0.001 was not reached: .* neurons, errs by .* What would help"
    ) as info:
        approximate_fitted(one, BuildRequest(1e-3))
    error = info.value
    certificate = certificate_of(error.network)
    assert error.within == 1e-3 < error.bound == certificate.bound
    assert certificate.kind == "measured"
    assert "work allowed for" in str(error)
    x = np.random.default_rng(0).random((2000, 5))
    off = np.abs(values(error.network, one)(x) - one.values(x)).max()
    assert off <= certificate.bound


def test_the_limit_on_neurons_is_kept_and_told(monkeypatch):
    monkeypatch.setattr(ridge_fit, "MAX_NEURONS", 12)
    monkeypatch.setattr(ridge_fit, "TRIAL", 12)
    one = target(lambda x: np.sin(9 * x).sum(axis=1), [0] * 5, [1] * 5)
    with pytest.raises(NotReached, match="12 neurons in one hidden layer are the most"):
        approximate_fitted(one, BuildRequest(1e-3, form="two-layer"))


def test_torch_functions_in_float32_are_fitted():
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    one = target(lambda x: module(x.float()), [-1] * 6, [1] * 6)
    assert certificate_of(approximate_fitted(one, BuildRequest(1e-2))).bound <= 1e-2


CHANCE = np.random.default_rng(0)
BAD = {
    "chance": (lambda x: CHANCE.random(len(x)), {}, "a second time"),
    "batches": (lambda x: x.sum(axis=1) - x.mean(), {}, "in a smaller batch"),
    "not finite": (lambda x: np.where(x.sum(axis=1) > 4.5, np.nan, 1.0), {}, r"is nan at \["),
    "another shape later": (lambda x: x[:, :2] if len(x) == 64 else x[:, :3], {}, "returned"),
    "within 0": (friedman, {"within": 0}, "within=0"),
    "within text": (friedman, {"within": "a"}, "within='a'"),
    "within nan": (friedman, {"within": np.nan}, "within=nan"),
    "seed": (friedman, {"seed": 1.5}, "seed=1.5: a whole number"),
    "negative seed": (friedman, {"seed": -1}, "seed=-1: a whole number"),
    "form": (friedman, {"form": "wide"}, "form='wide'"),
    "layout": (friedman, {"layout": "wide"}, "layout='wide'"),
    "placement": (friedman, {"placement": "wide"}, "placement='wide'"),
    "causal": (friedman, {"causal": True}, "causal=True without tokens"),
}


@pytest.mark.parametrize("name", BAD)
def test_nonsense_is_refused_with_the_reason(name):
    f, words, message = BAD[name]
    with pytest.raises(AnchorheadError, match=message):
        approximate_fitted(target(f, [0] * 5, [1] * 5), BuildRequest(**{"within": 1e-2, **words}))
