"""describe() fits a terminal and names the features; attention() gives the weights that were used."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.network import Embed, Linear, Network, Repeat, Softmax
from anchorhead.network.magnitude import sizes
from anchorhead.network.modules.network import AttentionModule, RepeatModule
from tests import networks as table
from tests.networks.random_networks import networks

from .certificates import certificate
from .reference import Trace, evaluate


@pytest.mark.parametrize("name", table.names("float64"))
def test_descriptions_fit_100_columns_and_name_the_features(name):
    network = table.network(name)
    said = certificate(target="the target " * 30, method="m" * 300, arithmetic="any order, " * 40)
    for made in (network, network.with_(certificate=said)):
        lines = made.describe().splitlines()
        assert max(map(len, lines)) <= 100
        assert f"{network.parameters:,} parameters" in lines[0]
        for feature in network.embed.features[:4]:
            assert any(feature in line for line in lines)
        tokens = "" if not network.token_axis else f"{network.embed.tokens or 'tokens'}, "
        assert any(f"(..., {tokens}{network.embed.inputs})" in line for line in lines)
    assert any("logits" in line for line in lines)


@settings(max_examples=30, deadline=None)
@given(networks())
def test_random_networks_fit_100_columns(drawn):
    network, _ = drawn
    for made in (network, network.with_(certificate=certificate())):
        assert max(map(len, made.describe().splitlines())) <= 100


def test_layers_inside_a_repeat_have_their_own_features():
    embed = Embed(np.ones((2, 1)), np.zeros(2), features=("a", "b"))
    widen = Linear(np.ones((3, 2)), features=("p", "q", "r"))
    network = Network([embed, Repeat([widen, Softmax((3,)), Linear(np.ones((2, 3)), features=("a", "b"))], 4)])
    text = network.describe()
    assert "Repeat 4 times" in text
    assert all(f"  {name}\n" in text for name in ("p", "q", "r"))


def test_long_and_unprintable_names_are_tamed():
    names = ("x" * 500, "red \x1b[31m alert\nsecond line")
    text = Network([Embed(np.ones((2, 1)), np.zeros(2), features=names)]).describe()
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text
    assert "second line" in text


def test_many_features_are_counted_not_listed():
    text = Network([Embed(np.ones((1000, 1)), np.zeros(1000))]).describe()
    assert len(text.splitlines()) < 60
    assert "960 more" in text


def largest_logit(network, x):
    trace = Trace()
    evaluate(network, x, trace)
    return trace.logit


def test_the_logit_of_the_description_bounds_the_measured_one():
    network = table.network("attention (float64)").with_(certificate=certificate((-2, 2)))
    bound = sizes(network.layers, np.full((3, 2), 2.0)).logit
    assert f"{bound:.3g}" in network.describe()
    rng = np.random.default_rng(0)
    assert max(largest_logit(network, rng.uniform(-2, 2, (3, 2))) for _ in range(20)) <= bound


@pytest.mark.parametrize(("factor", "times", "largest"), [(2.0, 3, 8.0), (0.5, 10**6, 1.0), (1.0, 10**6, 1.0)])
def test_magnitudes_through_many_steps(factor, times, largest):
    layers = (Embed(np.eye(1), np.zeros(1)), Repeat([Linear(np.full((1, 1), factor))], times))
    assert sizes(layers, np.ones((1, 1))).activation == largest


@pytest.mark.parametrize("factor", [2.0, 1.0001, 1e200])
def test_magnitudes_that_grow_for_too_long_are_unknown(factor):
    step = Linear(np.array([[factor, 0.0], [0.0, 1.0]]))
    layers = (Embed(np.eye(2), np.zeros(2)), Repeat([step], 10**5), Linear(np.eye(2)[1:]), Softmax((1,)))
    assert sizes(layers, np.ones((1, 2))).activation == np.inf


def in_order(steps):
    """The attention modules, each as often as it runs."""
    for step in steps:
        if isinstance(step, AttentionModule):
            yield step
        elif isinstance(step, RepeatModule):
            for _ in range(step.times):
                yield from in_order(step.steps)


@settings(max_examples=80, deadline=None)
@given(networks(), st.integers(0, 2**32 - 1))
def test_attention_weights_are_those_of_the_formula(drawn, seed):
    """All rows of the tokens that ask, all columns of those that are seen; 0 where masked; rows sum to 1."""
    network, tokens = drawn
    x = np.random.default_rng(seed).uniform(-1, 1, (2, tokens, network.embed.inputs))
    trace = Trace()
    evaluate(network, x[1], trace)
    maps = network.attention(x)
    modules = list(in_order(network.module().steps))
    assert len(maps) == len(trace.maps) == len(modules)
    assert sum(m[1].size for m in maps) == network.module().recorded(tokens)
    for found, exact, kinds, module in zip(maps, trace.maps, trace.kinds, modules, strict=True):
        rows = [i for i, kind in enumerate(kinds) if kind in module.asking]
        columns = [k for k, kind in enumerate(kinds) if kind in module.seen]
        expected = exact[:, rows][:, :, columns]
        assert found.shape == (2, *expected.shape)
        assert np.abs(found[1] - expected).max(initial=0) <= 1e-10
        assert (found[1][expected == 0] == 0).all()
        assert np.abs(found.sum(-1) - 1).max(initial=0) <= 1e-14


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("attention", [(2, 3, 6)]),
        ("attention, causal", [(2, 3, 5)]),
        ("attention, causal, state", [(2, 2, 7)]),
        ("attention, self+registers", [(2, 3, 5)]),
        ("attention, self alone", [(2, 3, 3)]),
        ("attention, grid", [(2, 3, 6)]),
        ("linear", []),
    ],
)
def test_attention_shapes(name, shapes):
    network = table.network(f"{name} (float64)")
    x = np.random.default_rng(0).uniform(-1, 1, (5, 4, 3, 2))
    for batch in ((5, 4), (4,), ()):
        given_x = x[(0,) * (2 - len(batch))]
        assert [m.shape for m in network.attention(given_x)] == [(*batch, *shape) for shape in shapes]
        tensors = network.attention(torch.from_numpy(given_x))
        assert all(isinstance(m, torch.Tensor) for m in tensors)
    assert [m.shape for m in network.attention(x[:0])] == [(0, 4, *shape) for shape in shapes]
