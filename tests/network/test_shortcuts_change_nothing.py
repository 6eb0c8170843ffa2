"""Picks in place of products, tokens that are handed on, and folded sums: a call gives what the bare module gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.network import Attention, Embed, Linear, Network, Repeat
from anchorhead.network.modules.picks import picks


def _picking(rng: np.random.Generator, *shape: int, exact: bool = False) -> np.ndarray:
    """Matrices with at most one entry in a row; exact: powers of two, no column twice."""
    *many, rows, columns = shape
    made = np.zeros(shape)
    for index in np.ndindex(*many):
        order = rng.permutation(columns)[:rows] if rows <= columns else rng.integers(0, columns, rows)
        chosen = order if exact else rng.integers(0, columns, rows)
        scale = 2.0 ** rng.integers(-3, 4, rows) if exact else rng.normal(size=rows)
        made[(*index, np.arange(rows), chosen)] = scale * rng.choice([-1, 1], rows)
    return made


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), exact=st.booleans(), heads=st.sampled_from([1, 2]), keeps=st.booleans())
def test_a_call_gives_what_the_bare_module_gives(seed: int, exact: bool, heads: int, keeps: bool) -> None:
    rng = np.random.default_rng(seed)
    width = 5
    embed = Embed(rng.normal(size=(width, 3)), rng.normal(size=width), states=rng.normal(size=(2, width)))
    skip = np.eye(width) if keeps else _picking(rng, width, width)
    output = rng.normal(size=(heads, width, 2))
    output[:, :3] = 0  # what examples show is not written: they ask nothing
    attention = Attention(
        rng.normal(size=(heads, 3, width)),
        _picking(rng, 1, 3, 3, exact=exact) @ np.eye(3, width),
        _picking(rng, 1, 2, 3, exact=exact) @ np.eye(3, width),
        output,
        skip=Linear(skip),
    )
    network = Network([embed, Repeat((attention,), 3), Linear(_picking(rng, 2, width))], output="state")
    x = rng.normal(size=(4, 6, 3))
    bare = network.module()(torch.from_numpy(x)).detach().numpy()
    assert np.allclose(network(x), bare, rtol=1e-11, atol=1e-11 * np.abs(bare).max())


def test_examples_that_are_only_looked_at_are_neither_copied_nor_multiplied() -> None:
    pick = np.eye(4)
    output = np.zeros((1, 4, 1))
    output[0, 3] = 1
    attention = Attention(pick[None, 3:], pick[None, :1], pick[None, 1:2], output, skip=Linear(pick))
    network = Network([Embed(np.eye(4, 2), np.zeros(4), states=pick[3:]), attention], output="state")
    runner = network._calls.plain(torch.device("cpu"))
    layer = runner.steps[0]
    assert layer._folds
    assert layer.kept == ()  # the last layer's examples are not needed at all
    looped = Network([network.embed, Repeat((attention,), 2)], output="state")._calls.plain(torch.device("cpu"))
    assert looped.steps[0].steps[0].kept == ("input",)
    tokens = looped.embed(torch.randn(1, 7, 2, dtype=torch.float64))
    assert looped.steps[0].once(tokens)["input"] is tokens["input"]


@pytest.mark.parametrize(
    ("weight", "exact"),
    [([[0, 2, 0], [0.5, 0, 0]], True), ([[0, 2, 0], [0, 1, 0]], False), ([[0, 3, 0]], False), ([[0, 0, 0]], True)],
)
def test_only_distinct_powers_of_two_round_nothing(weight: list[list[float]], exact: bool) -> None:
    found = picks(torch.tensor(weight, dtype=torch.float64))
    assert found is not None
    assert found.exact is exact


def test_a_row_with_two_entries_is_no_pick() -> None:
    assert picks(torch.tensor([[1.0, 1.0], [0.0, 1.0]])) is None
