"""Networks, heads, learners, plans and certificates can be pickled and copied, and their weights stay read-only."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.incontext import gradient_descent

COPIES = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def _relu() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))


MADE = {
    "head": lambda: ah.head("gelu", on=(-3, 3), within=1e-3),
    "ramp": lambda: ah.truncated_linear([[1.0, 2.0]], [0.5], low=-1, high=1, anchors=8, on=(-1, 1)),
    "converted": lambda: ah.convert(_relu(), on=(-1, 1), within=1e-2),
    "learner": lambda: gradient_descent(features=2, steps=3, rate=0.1, on=(-1, 1)),
    "plan": lambda: ah.plan("sin(x)", on={"x": (-1, 1)}, within=1e-2),
    "certificate": lambda: made("head").certificate,
}


@cache
def made(name: str) -> Any:
    return MADE[name]()


def arrays_in(thing: Any) -> Iterator[np.ndarray]:
    """All arrays that can be reached through attributes, sequences and mappings."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, dict):
        for one in thing.values():
            yield from arrays_in(one)
    elif isinstance(thing, list | tuple):
        for one in thing:
            yield from arrays_in(one)
    elif type(thing).__module__.startswith("anchorhead") and hasattr(thing, "__dict__"):
        yield from arrays_in(vars(thing))


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", MADE)
def test_arrays_of_copies_are_equal_and_read_only(how: str, name: str):
    original = made(name)
    if name in ("head", "converted"):  # what a call leaves behind does not stand in the way
        original(np.zeros((1, 2) if name == "converted" else ()))
    found = COPIES[how](original)
    assert type(found) is type(original)
    assert repr(found) == repr(original)
    pairs = list(zip(arrays_in(found), arrays_in(original), strict=True))
    assert pairs
    for array, other in pairs:
        assert np.array_equal(array, other)
        assert not array.flags.writeable


@pytest.mark.parametrize("how", COPIES)
def test_copies_compute_the_same_and_can_be_checked(how: str):
    head = made("head")
    found = COPIES[how](head)
    s = np.linspace(-3, 3, 101)
    assert np.array_equal(found(s), head(s))
    assert found.on == head.on
    assert found.target.kinks == head.target.kinks
    ah.check(found.network)


def test_a_copy_warns_for_itself():
    network = MADE["ramp"]()
    with pytest.warns(ah.OutsideWarning):
        network(np.full((1, 2), 2.0))
    with pytest.warns(ah.OutsideWarning):
        copy.deepcopy(network)(np.full((1, 2), 2.0))


@pytest.mark.slow
def test_heads_travel_to_other_processes():
    head = made("head")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (found,) = pool.map(head, [np.array([0.5])])
    assert np.array_equal(found, head(np.array([0.5])))
