"""A network gives what its layers' formulas say, by an evaluator that shares no code with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.network import Linear
from anchorhead.network.magnitude import sizes
from tests import networks as table
from tests.networks.random_networks import networks

from .reference import Trace, evaluate

seeds = st.integers(0, 2**32 - 1)


def inputs(network, tokens, seed, *batch):
    return np.random.default_rng(seed).uniform(-1, 1, (*batch, tokens, network.embed.inputs))


def close(found, exact, accuracy):
    scale = 1 + np.abs(exact).max(initial=0)
    return found.shape == exact.shape and np.abs(found - exact).max(initial=0) <= accuracy * scale


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(networks(), seeds)
def test_random_networks_in_float64(drawn, seed):
    network, tokens = drawn
    x = inputs(network, tokens, seed, 2)
    exact = np.array([evaluate(network, one) for one in x])
    y = network(x)
    assert isinstance(y, np.ndarray)
    assert y.dtype == np.float64
    assert close(y, exact, 1e-12)
    bare = network.module()(torch.from_numpy(x))
    assert close(bare.detach().numpy(), exact, 1e-12)


@settings(max_examples=40, deadline=None)
@given(networks(dtype="float32"), seeds)
def test_random_networks_in_float32(drawn, seed):
    network, tokens = drawn
    x = inputs(network, tokens, seed)
    y = network(x)
    assert y.dtype == np.float32
    assert close(y, evaluate(network, x.astype(np.float32)), 2e-4)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(networks(), seeds)
def test_batch_shapes_only_arrange(drawn, seed):
    network, tokens = drawn
    x = inputs(network, tokens, seed, 2, 3)
    y = network(x)
    shape = y.shape[2:]
    assert close(network(x[0]), y[0], 1e-13)
    assert close(network(x[1, 2]), y[1, 2], 1e-13)
    assert network(x[:0]).shape == (0, 3, *shape)
    assert network(x[0, :0]).shape == (0, *shape)
    module = network.module()
    with torch.no_grad():
        assert close(module(torch.from_numpy(x)).numpy(), y, 1e-13)
        assert module(torch.from_numpy(x[:0])).shape == (0, 3, *shape)
        assert module(torch.from_numpy(x[1, 2])).shape == shape


@settings(max_examples=60, deadline=None)
@given(networks(), seeds)
def test_magnitudes_bound_all_numbers_on_the_way(drawn, seed):
    network, tokens = drawn
    trace = Trace()
    evaluate(network, np.sign(inputs(network, tokens, seed)), trace)
    for rows in (1, tokens):
        bound = sizes(network.layers, np.ones((rows, network.embed.inputs)))
        assert trace.logit <= bound.logit * (1 + 1e-12)
        assert trace.activation <= bound.activation * (1 + 1e-12)


@pytest.mark.parametrize("name", table.names("layer", "float64"))
def test_every_layer_of_the_table(name):
    network = table.network(name)
    x = inputs(network, 3, 0, 2)
    assert close(network(x), np.array([evaluate(network, one) for one in x]), 1e-13)


@pytest.mark.parametrize("name", [name for name in table.names("layer", "float64") if name.startswith("linear")])
def test_linear_maps_agree_with_their_dense_matrix(name):
    network = table.network(name)
    linear = network.layers[1]
    assert isinstance(linear, Linear)
    tokens = linear.tokens_in or 2
    x = np.random.default_rng(0).normal(size=(7, tokens, linear.inputs))
    flat = x.reshape(7, -1) if linear.across else x
    y = (flat @ linear.dense().T).reshape(7, linear.tokens_out or tokens, linear.outputs)
    assert close(linear(x, bias=False), y, 1e-14)
    assert close(linear(x), y + (0 if linear.bias is None else linear.bias), 1e-14)
    assert (np.abs(linear(x)) <= linear.absolute()(np.abs(x)) * (1 + 1e-14)).all()


def test_tensors_give_tensors_with_gradients():
    network = table.network("attention (float64)")
    x = torch.from_numpy(inputs(network, 3, 0, 2)).requires_grad_()
    y = network(x)
    assert isinstance(y, torch.Tensor)
    assert y.requires_grad
    y.sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert not network(x.detach()).requires_grad
    with torch.no_grad():
        assert not network(x).requires_grad
    assert np.array_equal(network(x.detach().numpy()), y.detach().numpy())
