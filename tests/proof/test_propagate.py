"""Ranges and rounding bounds hold for random networks of every kind of layer."""

import dataclasses

import numpy as np
import pytest

from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax
from anchorhead.proof.propagate import propagate, rounding_error

WIDTH = 4


def widened(layer):
    """The same layer in float64."""
    if isinstance(layer, Repeat):
        return Repeat(tuple(widened(step) for step in layer.layers), layer.times)
    values = {item.name: getattr(layer, item.name) for item in dataclasses.fields(layer)}
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.dtype == np.float32:
            values[name] = value.astype(np.float64)
        elif isinstance(value, Linear):
            values[name] = widened(value)
    return type(layer)(**values)


def random_network(rng, number):
    scale = 10 ** rng.uniform(-1, 0.4)

    def weights(*shape):
        return (rng.normal(size=shape) * scale).astype(np.float32)

    embed = Embed(weights(5, WIDTH, 3), weights(5, WIDTH), weights(6, WIDTH), weights(1, WIDTH), tokens=5)
    attention = Attention(
        weights(2, 3, WIDTH),
        weights(1 + number % 2, 3, WIDTH),
        weights(2, 2, WIDTH),
        weights(2, WIDTH, 2),
        bias=weights(WIDTH) if number % 3 else None,
        mask=(None, "causal", "self+registers")[number % 3],
        skip=Linear(np.eye(WIDTH, dtype=np.float32)) if number % 2 else None,
    )
    grid = Attention(
        weights(2, 4, WIDTH), weights(1, 4, WIDTH), weights(1, 2, WIDTH), weights(2, WIDTH, 2), grid=(2, 3)
    )
    last = [
        Linear(weights(2, 3, 2), weights(6)),
        Linear(weights(6, WIDTH), mix=weights(5, 12), bias=weights(5, 6)),
        Linear(weights(5, 2, 12, WIDTH), weights(2)),
    ][number % 3]
    middle = [Repeat((attention,), 3), Softmax((2, 2)), grid] if number % 4 == 0 else [attention, Softmax((1, 3))]
    return Network([embed, *middle, last])


@pytest.mark.parametrize("number", range(24))
def test_ranges_and_rounding_hold(number):
    rng = np.random.default_rng(number)
    network = random_network(rng, number)
    exact = Network([widened(layer) for layer in network.layers])
    box = Box.of((-2, 2))
    x = np.concatenate([rng.uniform(-2, 2, (300, 5, 3)), rng.choice([-2.0, 2.0], (100, 5, 3))])
    found = propagate(network, box)["input"]
    y = exact(x)
    assert (y >= found.low).all()
    assert (y <= found.high).all()
    assert np.abs(network(x) - y).max() <= rounding_error(network, box)


def test_a_network_without_softmax_gets_a_tight_bound():
    rng = np.random.default_rng(0)
    network = Network([Embed(rng.normal(size=(2, 3)), np.zeros(2), tokens=1), Linear(rng.normal(size=(1, 2)))])
    u = 2.0**-53
    size = np.abs(network.layers[1].weight) @ np.abs(network.embed.weight) @ np.full(3, 2.0)
    assert rounding_error(network, Box.of((-2, 2))) <= 10 * u * float(size.max())


def test_any_number_of_tokens_has_no_bound():
    embed = Embed(np.eye(2), np.zeros(2))
    one = np.eye(2)[None]
    with pytest.raises(AnchorheadError, match="number of tokens"):
        propagate(Network([embed, Attention(one, one, one, one)]), Box.of((-1, 1)))
