"""Under a small memory cap a call works in blocks: the same numbers, never more logits than the budget."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Network, Repeat, calls
from tests import networks as table
from tests.networks.random_networks import networks


class Watch:
    """Notes how many numbers each softmax of the modules gets, and how many a causal mask has."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        softmax, triu = torch.softmax, torch.Tensor.triu

        def watched_softmax(x, dim):
            self.sizes.append(x.numel())
            return softmax(x, dim)

        def watched_triu(x, diagonal=0):
            self.sizes.append(x.numel())
            return triu(x, diagonal)

        patch.setattr(torch, "softmax", watched_softmax)
        patch.setattr(torch.Tensor, "triu", watched_triu)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(networks(), st.sampled_from([1, 100, 400]), st.integers(0, 2**32 - 1))
def test_random_networks_in_blocks(drawn, cap, seed):
    whole, tokens = drawn
    x = np.random.default_rng(seed).uniform(-1, 1, (5, tokens, whole.embed.inputs))
    y = whole(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "MEMORY_CAP", cap)
        z = whole.with_()(x)
    assert z.shape == y.shape
    assert np.abs(z - y).max(initial=0) <= 1e-12 * (1 + np.abs(y).max(initial=0))


@pytest.mark.parametrize("name", table.names("layer", "float64"))
def test_every_layer_of_the_table_in_blocks(name, monkeypatch):
    whole = table.network(name)
    x = np.random.default_rng(0).uniform(-1, 1, (4, 3, 2))
    y = whole(x)
    for cap in (1, 8 * 10, 8 * 30):
        monkeypatch.setattr(calls, "MEMORY_CAP", cap)
        assert np.abs(whole.with_()(x) - y).max() <= 1e-13 * (1 + np.abs(y).max())


def long_network(mask, registers=8, heads=3, **more):
    rng = np.random.default_rng(1)
    embed = Embed(rng.normal(size=(2, 1)), rng.normal(size=2), registers=rng.normal(size=(registers, 2)))
    q, k, v, o = (rng.normal(size=(heads, 2, 2)) for _ in range(4))
    return Network([embed, Attention(q, k, v, o, mask=mask, **more)])


@pytest.mark.parametrize("mask", [None, "causal", "self+registers", "registers+states", "grid"])
@pytest.mark.parametrize("batch", [1, 4])
def test_logits_stay_under_the_budget(mask, batch, monkeypatch):
    made = long_network(None, grid=(4, 2)) if mask == "grid" else long_network(mask)
    x = np.random.default_rng(0).normal(size=(batch, 80, 1))
    y = made(x)
    watch = Watch(monkeypatch)
    monkeypatch.setattr(calls, "MEMORY_CAP", 8 * 100)
    z = made.with_()(x)
    assert len(watch.sizes) > 1
    assert max(watch.sizes) <= 100
    assert np.abs(z - y).max() <= 1e-13


def test_a_token_that_sees_few_is_not_worked_through_alone(monkeypatch):
    made = long_network("self+registers", registers=1, heads=1)
    watch = Watch(monkeypatch)
    monkeypatch.setattr(calls, "MEMORY_CAP", 8 * 10_000)
    made(np.zeros((4000, 1)))
    assert watch.sizes == [8000]


def test_gradients_are_the_same_in_blocks(monkeypatch):
    made = table.network("attention, causal (float64)")
    x = torch.linspace(-1, 1, 30, dtype=torch.float64).reshape(5, 3, 2).requires_grad_()
    (whole,) = torch.autograd.grad(made(x).square().sum(), x)
    monkeypatch.setattr(calls, "MEMORY_CAP", 1)
    (blocks,) = torch.autograd.grad(made.with_()(x).square().sum(), x)
    assert torch.allclose(whole, blocks, rtol=0, atol=1e-13)


@pytest.mark.parametrize("mask", [None, "causal", "self+registers"])
def test_maps_too_large_to_hold_are_refused_before_they_are_made(mask):
    with pytest.raises(AnchorheadError, match="fewer or shorter inputs"):
        long_network(mask).attention(np.zeros((50_000, 1)))


def test_maps_of_all_steps_count():
    rng = np.random.default_rng(0)
    attention = Attention(*(rng.normal(size=(1, 2, 2)) for _ in range(4)))
    embed = Embed(np.ones((2, 1)), np.zeros(2))
    once = Network([embed, Repeat([attention], 1)])
    assert once.attention(np.zeros((100, 1)))[0].shape == (1, 100, 100)
    with pytest.raises(AnchorheadError, match="1,000,000,000"):
        Network([embed, Repeat([attention], 100_000)]).attention(np.zeros((100, 1)))
