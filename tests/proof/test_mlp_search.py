"""The search finds errors where they are, never more than the true ones, and within its budget."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.network import Network
from anchorhead.proof.search.mlp_search import EVALUATIONS, Worst, worst_error

RELU = parse("relu(x)")


def mlp(sizes, tokens=None, activation=RELU, seed=0):
    rng = np.random.default_rng(seed)
    maps = [Affine(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(sizes)]
    hidden = [Hidden.of(one.weight, one.bias, activation) for one in maps[:-1]]
    return Mlp(tuple(hidden), maps[-1], tokens)


def converted(target, on=(-1, 1), within=1e-6, **options) -> Network:
    return ah.convert(target, on=on, within=within, **options)


def searched(network: Network, target, **options) -> Worst:
    assert network.certificate is not None
    return worst_error(network, target, network.certificate.on, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("tokens", [None, 2])
def test_the_error_found_is_that_of_its_input_and_close_to_the_bound(tokens, dtype):
    target = mlp((4, 8, 2), tokens)
    network = converted(target, within=0.1, dtype=dtype)
    worst = searched(network, target, evaluations=4000)
    assert worst.x.shape == target.input_shape
    assert network.certificate.on.contains(worst.x).all()
    there = np.abs(network(worst.x) - target.values(worst.x)).reshape(-1)
    assert there.argmax() == worst.output
    # alone an input is summed in another order than in a batch
    assert worst.error == pytest.approx(float(there[worst.output]), rel=0.2)
    assert network.certificate.bound / 10 < worst.error <= network.certificate.bound


def test_it_finds_more_than_random_inputs_do():
    for activation, within in (("relu(x)", 1e-6), ("gelu(x)", 1e-1)):
        target = mlp((20, 30, 3), activation=parse(activation), seed=3)
        network = converted(target, on=(-0.2, 0.2), within=within)
        x = np.random.default_rng(0).uniform(-0.2, 0.2, (20_000, 20))
        random = float(np.abs(network(x) - target.values(x)).max())
        assert searched(network, target, evaluations=5000).error > 1.05 * random


def test_a_narrow_error_is_found():
    """A head that is a little wrong errs at the kink alone, a millionth of the box wide."""
    target = mlp((3, 4, 4, 1), seed=5)
    network = converted(target, within=1e-3)
    assert searched(network, target, evaluations=3000).error > network.certificate.bound / 50


def test_a_network_that_was_changed_is_caught():
    target = mlp((4, 8, 2), seed=1)
    network = converted(target)
    attention = network.layers[-2]
    output = np.array(attention.output)
    output[3] *= 1.001
    layers = [*network.layers[:-2], dataclasses.replace(attention, output=output), network.layers[-1]]
    changed = Network(
        layers,
        certificate=network.certificate,
        program=network.program,
        derivation=network.derivation,
        token_axis=False,
    )
    assert searched(changed, target, evaluations=500).error > 100 * network.certificate.bound


@pytest.mark.parametrize("activation", ["gelu(x)", "tanh(x)", "leaky_relu(x)"])
def test_activations_that_float64_rounds_are_compared_in_balls(activation):
    """Noise of 1e-16 in the comparison would show: these bounds are a few times that."""
    target = mlp((2, 3, 1), activation=parse(activation), seed=2)
    network = converted(target, on=(-0.5, 0.5), within=1e-9)
    assert 0 < searched(network, target, evaluations=1000).error <= network.certificate.bound


def test_the_seed_decides_and_the_budget_is_kept():
    target = mlp((5, 7, 2), seed=4)
    network = converted(target)
    one, two, other = (searched(network, target, seed=seed, evaluations=1000) for seed in (0, 0, 1))
    assert one.error == two.error
    assert np.array_equal(one.x, two.x)
    assert not np.array_equal(one.x, other.x)
    assert 1000 <= one.evaluations <= 2000


@pytest.mark.slow
def test_large_networks_take_no_more_evaluations():
    target = mlp((50, 400, 400, 20), seed=6)
    network = converted(target, within=1e-3)
    worst = searched(network, target)
    assert worst.evaluations <= 2 * EVALUATIONS
    assert 0 < worst.error <= network.certificate.bound


def test_boxes_without_room_and_networks_without_neurons():
    target = mlp((3, 4, 2), seed=7)
    point = converted(target, on=([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]))
    assert np.array_equal(searched(point, target, evaluations=200).x, [0.1, 0.2, 0.3])
    affine = Mlp((), Affine(np.array([[0.1, 0.7]]), np.array([0.3])))
    network = converted(affine)
    assert searched(network, affine, evaluations=200).error <= network.certificate.bound
