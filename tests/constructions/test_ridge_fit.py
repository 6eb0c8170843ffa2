"""The fit: its derivatives are right, planted networks are found again, neurons are few."""

import numpy as np
import pytest

from anchorhead.constructions.fitting.ridge_fit import fit_ridges
from anchorhead.constructions.fitting.ridge_model import ACTIVATIONS, REACH, Ridges, TwoLayers
from anchorhead.constructions.fitting.ridge_network import bent, network_of, network_on
from anchorhead.constructions.fitting.ridge_step import Steps, values
from anchorhead.effort import Effort
from anchorhead.language.targets.mlp import IDENTITY


class Function:
    def __init__(self, f, d):
        self.f, self.low, self.high = f, (-1.0,) * d, (1.0,) * d

    def values(self, x, /):
        return self.f(x)


def ridges(activation, seed=0, d=3, neurons=5, m=2):
    rng = np.random.default_rng(seed)
    outer = rng.normal(size=(neurons + d + 1, m))
    return Ridges(activation, rng.normal(size=(neurons, d)), rng.normal(size=neurons), outer)


def two_layers(seed=0, d=3, first=4, second=5, m=2):
    rng = np.random.default_rng(seed)
    return TwoLayers(
        rng.normal(size=(first, d)),
        rng.normal(size=first),
        rng.normal(size=(second, first + d)),
        rng.normal(size=second),
        rng.normal(size=(second + first + d + 1, m)),
    )


MODELS = {name: ridges(name) for name in ACTIVATIONS} | {"two layers": two_layers()}


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_is_that_of_the_sum_of_squares_with_the_outer_weights_at_their_best(name):
    model = MODELS[name].bounded()
    rng = np.random.default_rng(1)
    x, root = rng.uniform(-1, 1, (400, 3)), rng.uniform(0.5, 2, (400, 1))
    y = np.stack([np.sin(3 * x[:, 0]) * x[:, 1], np.abs(x).sum(axis=1)], axis=1)
    steps = Steps(x, y, root, 1e-14, Effort(1e12), rng)
    model, _ = steps.solved(model)
    chosen = model.chosen(rng)
    curvature, gradient = model.normal(chosen, x, y, root, steps._solver)
    assert np.linalg.eigvalsh(curvature).min() >= -1e-9 * np.abs(curvature).max()
    for _ in range(5):
        way = rng.normal(size=len(gradient))
        h = 1e-6
        up, down = (steps.solved(model.moved(chosen, sign * h * way))[1] for sign in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(-2 * gradient @ way, rel=2e-2, abs=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_the_network_on_the_box_is_what_was_fitted(name):
    model = MODELS[name]
    low, high = np.array([-3.0, 10.0, 0.5]), np.array([5.0, 11.0, 0.5])
    u = np.random.default_rng(2).uniform(-1, 1, (50, 3))
    u[:, 2] = 0
    x = (low + high) / 2 + u * (high - low) / 2
    network = network_on(model, low, high)
    assert network.values(x).astype(float) == pytest.approx(values(model, u), abs=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_straight_neurons_bent_are_the_same_function_on_the_box(name):
    low, high = np.array([-3.0, 10.0, 0.5]), np.array([5.0, 11.0, 2.5])
    straight = network_on(MODELS[name], low, high)
    without = bent(straight, low, high)
    assert all(IDENTITY not in layer.activations for layer in without.hidden)
    x = np.random.default_rng(2).uniform(low, high, (200, 3))
    x = np.concatenate([x, [low, high]])
    one, two = (each.values(x).astype(float) for each in (straight, without))
    assert one == pytest.approx(two, abs=1e-9)


def test_networks_of_one_and_two_layers_stand_side_by_side():
    low, high = np.full(3, -1.0), np.full(3, 1.0)
    one, two = ridges("tanh", d=2), two_layers()
    network = network_of([network_on(one, low[:2], high[:2]), network_on(two, low, high)], None, 3)
    x = np.random.default_rng(3).uniform(-1, 1, (20, 3))
    expected = np.concatenate([values(one, x[:, :2]), values(two, x)], axis=1)
    assert network.values(x).astype(float) == pytest.approx(expected, abs=1e-11)


def test_a_planted_network_is_found_again():
    rng = np.random.default_rng(0)
    weight, bias, outer = rng.normal(size=(4, 5)), rng.normal(size=4), rng.normal(size=(4, 1))
    fit = fit_ridges(Function(lambda x: np.tanh(x @ weight.T + bias) @ outer, 5), 1e-6, seed=0, stiffness=1e-12)
    assert fit.error <= 1e-6
    assert isinstance(fit.model, Ridges)
    assert fit.model.activation == "tanh"
    assert fit.model.neurons <= 18


def test_a_kink_across_all_inputs_is_one_relu():
    w = np.arange(1.0, 7)
    fit = fit_ridges(
        Function(lambda x: np.maximum(x @ w - 1, 0)[:, None], 6),
        1e-3,
        seed=0,
        stiffness=1e-12,
        activations=("silu", "relu"),
    )
    assert fit.error <= 1e-3
    assert fit.model.neurons <= 3


def test_pre_activations_stay_where_heads_are_at_hand():
    fit = fit_ridges(Function(lambda x: np.sign(x.sum(axis=1))[:, None], 5), 1e-2, seed=0, stiffness=1e-12, effort=2e9)
    assert fit.ended
    model = fit.model
    assert isinstance(model, Ridges)
    assert (np.abs(model.weight).sum(axis=1) + np.abs(model.bias)).max() <= REACH * (1 + 1e-12)


def test_no_more_work_is_done_than_allowed():
    asked = []

    def noise(x):
        asked.append(len(x))
        return np.sin(1e3 * x).sum(axis=1, keepdims=True)

    fit = fit_ridges(Function(noise, 5), 1e-3, seed=0, stiffness=1e-12, effort=1e9)
    assert fit.ended == "the work allowed for was done"
    assert sum(asked) < 100_000
