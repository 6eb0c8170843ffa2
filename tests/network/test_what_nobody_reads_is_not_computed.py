"""Liveness: tokens of a kind that no later layer reads neither ask nor are kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax

NAMES = ("x", "y", "weight", "one")


def embed(registers=0, states=0):
    rng = np.random.default_rng(0)
    return Embed(
        rng.normal(size=(4, 2)),
        rng.normal(size=4),
        registers=rng.normal(size=(registers, 4)) if registers else None,
        states=rng.normal(size=(states, 4)) if states else None,
        features=NAMES,
    )


def attention(writes=(0, 1, 2, 3), reads=(0, 1, 2, 3), **more):
    """Two heads that read and write the given features alone."""
    rng = np.random.default_rng(1)
    query, key, value, output = (rng.normal(size=(2, 4, 4)) for _ in range(4))
    unread = [i for i in range(4) if i not in reads]
    for matrix in (query, key, value):
        matrix[:, :, unread] = 0
    output[:, [i for i in range(4) if i not in writes]] = 0
    return Attention(query, key, value, output, **more)


@pytest.fixture
def logits(monkeypatch):
    """The shapes of all logits that are formed."""
    shapes: list[tuple[int, ...]] = []
    softmax = torch.softmax

    def watched(x, dim):
        shapes.append(tuple(x.shape[-3:]))
        return softmax(x, dim)

    monkeypatch.setattr(torch, "softmax", watched)
    return shapes


X = np.random.default_rng(2).normal(size=(5, 7, 2))


def test_only_the_tokens_that_leave_the_network_ask(logits):
    Network([embed(3, 1), attention()])(X)
    assert logits == [(2, 7, 11)]
    logits.clear()
    Network([embed(3, 1), attention()], output="state")(X)
    assert logits == [(2, 1, 11)]


def test_registers_that_read_nothing_of_the_batch_ask_once_for_all(logits):
    Network([embed(3), attention(mask="causal")], output="register")(X)
    assert logits == [(2, 3, 3)]


def test_example_tokens_of_a_learner_ask_nothing(logits):
    """The skip carries the examples; the heads write the features that are read at the state alone."""
    learner = attention(writes=(2,), reads=(0, 1, 2), skip=Linear.identity(NAMES, "float64"))
    reading = attention(writes=(2,), reads=(0, 1), skip=Linear.identity(NAMES, "float64"))
    Network([embed(states=2), Repeat([reading], 3)], output="state")(X)
    assert logits == [(2, 2, 9)] * 3
    logits.clear()
    Network([embed(states=2), Repeat([learner], 3)], output="state")(X)
    assert logits == [(2, 7, 9), (2, 2, 9)] * 3, "keys that read what the heads write are needed of every token"


def test_a_head_that_writes_nothing_is_not_asked(logits):
    made = Network([embed(), attention(writes=(), bias=np.ones(4))])
    assert (made(X) == 1).all()
    assert logits == []
    (weights,) = made.attention(X)
    assert weights.shape == (5, 2, 0, 0)


def test_a_linear_map_that_drops_what_the_heads_wrote_stops_them(logits):
    keep = Linear(np.eye(4)[:2])
    Network([embed(), attention(writes=(2, 3), skip=Linear.identity(NAMES, "float64")), keep])(X)
    assert logits == []
    block = Linear(np.array([np.eye(2), np.zeros((2, 2))]))
    Network([embed(), attention(writes=(2, 3), skip=Linear.identity(NAMES, "float64")), block])(X)
    assert logits == []
    mixed = Linear(np.eye(4)[2:], mix=np.ones((1, 7)))
    fixed = Embed(np.ones((4, 2)), np.ones(4), tokens=7)
    Network([fixed, attention(writes=(2, 3)), mixed])(X)
    assert logits == [(2, 7, 7)]


def test_a_softmax_reads_its_whole_group(logits):
    first = Linear(np.eye(4)[:1])
    heads = attention(writes=(1,), skip=Linear.identity(NAMES, "float64"))
    Network([embed(), heads, Softmax((1, 3)), first])(X)
    assert [shape for shape in logits if shape[0] == 2] == []
    logits.clear()
    Network([embed(), heads, Softmax((2, 2)), first])(X)
    assert logits[0] == (2, 7, 7)


def test_nan_in_a_kind_that_nobody_reads_never_matters():
    bare = Network([embed(3, 2), attention(mask="causal")]).module()
    x = torch.from_numpy(X)
    y = bare(x)
    with torch.no_grad():
        bare.embed.state.fill_(torch.nan)
    assert torch.equal(bare(x), y)


def test_nan_in_a_feature_that_nobody_reads_never_matters_across_tokens():
    """An input token's own answer is not needed by a state that reads its features x and y alone."""
    heads = attention(writes=(2, 3), reads=(0, 1), skip=Linear.identity(NAMES, "float64"))
    made = Network([embed(states=1), heads, attention(reads=(0, 1))], output="state")
    bare = made.module()
    first, second = bare.attentions()
    assert first.asking == ()
    assert second.asking == ("state",)
    y = bare(torch.from_numpy(X))
    with torch.no_grad():
        first.query.fill_(torch.nan)
    assert torch.equal(bare(torch.from_numpy(X)), y)


def test_an_output_that_no_input_reaches_is_the_same_for_every_input():
    made = Network([embed(3)], output="register")
    y = made(X)
    assert y.shape == (5, 3, 4)
    assert (y == made.embed.registers).all()
    assert made(X[:0]).shape == (0, 3, 4)


def test_wide_block_diagonal_maps_are_never_made_dense():
    """200,000 blocks of one feature: dense they would take 320 GB."""
    wide = 200_000
    first = Embed(np.ones((wide, 1)), np.zeros(wide))
    made = Network([first, Linear(np.full((wide, 1, 1), 2.0))])
    assert (made(np.ones((1, 1))) == 2).all()
    assert (made.layers[1](np.ones((1, wide))) == 2).all()
