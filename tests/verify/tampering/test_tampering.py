"""No file is accepted whose network errs by more than the bound that its certificate claims.

`make test` tries 2,000 random tamperings, `make slow` 100,000 more, of every file of the table; those that were
accepted once are tried by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from anchorhead.network import Network
from anchorhead.verify import verify
from tests.networks import names, network

from . import named
from .changes import CHANGES
from .file import file_of, header_of
from .hunt import hunt
from .search import breaks

pytestmark = pytest.mark.all_cases

NAMES = names("proven")
FAST = {
    "head (float32)": 100,
    "head, far from 0 (float64)": 60,
    "head, uniform (float32)": 60,
    "function of one variable, constant (float32)": 220,
    "truncated linear, one head (float32)": 60,
    "truncated linear, as many anchors as tokens (float64)": 120,
    "truncated linear, flat (float32)": 60,
    "truncated linear, of nothing (float32)": 200,
    "kernel smoother (float64)": 380,
    "kernel smoother (float32)": 380,
    "grid (float32)": 30,
    "grid, tokens (float32)": 10,
    "neurons, smooth (float32)": 50,
    "learner, direct (float32)": 210,
    "learner, momentum (float64)": 60,
}
"""How many tamperings of files whose verification takes little time; the others have one each in `make test`."""
OTHERS = [name for name in NAMES if name not in FAST and "float32" in name]
CHUNKS, ALL = 4, 100_000
"""`make slow` tries so many in all, in pieces of a minute or so: a name and a number each."""
QUICK_TO_VERIFY = (
    "head", "function", "truncated linear", "kernel smoother", "grid", "neurons", "learner, direct",
    "learner, momentum",
)  # fmt: skip
SHARE = {name: 3 if name.startswith(QUICK_TO_VERIFY) else 1 for name in NAMES}
NAMED = [
    (named.another_output, "head (float64)"),
    (named.another_output, "truncated linear, one head (float64)"),
    (named.position_drowned, "attention-softmax, transformer (float32)"),
    (named.gather_drowned, "two-layer, transformer (float32)"),
    (named.gather_drowned, "two-layer, sequence (float32)"),
    (named.gather_drowned, "attention-softmax, sequence (float32)"),
    (named.gather_drowned, "deep, transformer (float32)"),
    (named.keys_rounded, "grid, tokens (float32)"),
    (named.silence_drowned, "two-layer, transformer (float32)"),
    (named.anchor_hidden, "deep, one token (float64)"),
    (named.register_dropped, "attention-softmax, one token (float64)"),
    (named.query_overflowing, "truncated linear, one head (float32)"),
    (named.scalar_counted_twice, "truncated linear, of nothing (float64)"),
]


@pytest.mark.parametrize(("change", "name"), NAMED, ids=[f"{change.__name__}, {name}" for change, name in NAMED])
def test_what_was_accepted_once_is_refused(change: Callable[[str], Network], name: str, tmp_path: Path) -> None:
    path = tmp_path / "network.safetensors"
    network(name).save(path)
    assert verify(path).verified
    tampered = change(name)
    assert breaks(tampered, np.random.default_rng(0)) is not None
    tampered.save(path)
    found = verify(path)
    assert not found.verified, found.why
    assert "could not make sense" not in found.why


@pytest.mark.parametrize("name", FAST)
def test_tamperings_that_are_accepted_are_harmless(name: str) -> None:
    found = hunt(name, FAST[name], seed=0)
    assert not found.harmful
    assert 0 < found.accepted < found.tried
    assert found.unreadable < found.tried / 3  # most meet the lemmas, not the reader


@pytest.mark.parametrize("name", OTHERS)
def test_one_tampering_of_every_other_file(name: str) -> None:
    assert not hunt(name, 1, seed=0).harmful


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("name", NAMES)
def test_many_tamperings_that_are_accepted_are_harmless(name: str, chunk: int) -> None:
    count = -(-ALL * SHARE[name] // (sum(SHARE.values()) * CHUNKS))
    found = hunt(name, count, seed=1 + chunk, all_ways=chunk == 0)
    assert not found.harmful


def test_tamperings_do_not_depend_on_the_order_of_arrays_in_a_file() -> None:
    text, arrays = header_of(file_of("head (float32)").content())
    assert list(arrays) == sorted(arrays) == list(file_of("head (float32)").arrays)
    assert json.loads(text) == file_of("head (float32)").header


def test_there_are_2000_tamperings_of_all_kinds() -> None:
    assert sum(FAST.values()) + len(OTHERS) >= 2_000
    assert len(CHANGES) == 31
