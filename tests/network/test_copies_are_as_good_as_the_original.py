"""Networks, heads, learners, plans and certificates can be pickled and copied, and their weights stay read-only."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.network import Network
from tests import networks as table

COPIES = {
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),  # noqa: S301
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


MADE = {
    "head": lambda: ah.head("gelu", on=(-3, 3), within=1e-3),
    "plan": lambda: ah.plan("sin(x)", on={"x": (-1, 1)}, within=1e-2),
    "certificate": lambda: made("head").certificate,
}


@cache
def made(name: str) -> Any:
    """One of MADE, or a network of the table."""
    return MADE[name]() if name in MADE else table.network(name)


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
    elif is_dataclass(thing):  # what was worked out on the way is no part of it
        for one in fields(thing):
            yield from arrays_in(getattr(thing, one.name))
    elif type(thing).__module__.startswith("anchorhead") and hasattr(thing, "__dict__"):
        yield from arrays_in(vars(thing))


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", [*MADE, *table.names()])
def test_arrays_of_copies_are_equal_and_read_only(how: str, name: str):
    original = made(name)
    if name == "head":  # what a call leaves behind does not stand in the way
        original(0.0)
    elif name not in MADE:
        Network.__call__(original, table.inputs(original, 1), outside="ignore")
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
    network = table.row_of("truncated linear, one head (float64)").build("float64")
    with pytest.warns(ah.OutsideWarning):
        network(np.full((3, 2), 3.0))
    with pytest.warns(ah.OutsideWarning):
        copy.deepcopy(network)(np.full((3, 2), 3.0))


@pytest.mark.slow
def test_heads_travel_to_other_processes():
    head = made("head")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (found,) = pool.map(head, [np.array([0.5])])
    assert np.array_equal(found, head(np.array([0.5])))
