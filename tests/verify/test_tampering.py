"""No file is accepted whose network errs by more than the bound that its certificate claims.

`make slow` tries 10,000 random tamperings, some of every kind of file; here are a few of them, and all that were
accepted once, by name.
"""

from __future__ import annotations

import numpy as np
import pytest

import anchorhead as ah
from tests.networks import names, network

from . import tampering_named as named
from .tampering import breaks, hunt

ALL = 10_000
NAMES = names("proven")
FEW = names("proven", without=("descent", "parts", "deep", "uniform"))[::3]
"""Some of those whose check takes no time; the others are left to `make slow`."""
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
def test_what_was_accepted_once_is_refused(change, name, remembered):
    assert ah.check(network(name)) is network(name).certificate
    tampered = change(name)
    assert breaks(tampered, np.random.default_rng(0)) is not None
    with pytest.raises(ah.CertificateError):
        ah.check(tampered)


@pytest.mark.parametrize("name", FEW)
def test_a_few_tamperings_that_are_accepted_are_harmless(name, remembered):
    assert not hunt(name, count=6, seed=0).harmful


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_tamperings_that_are_accepted_are_harmless(name, remembered):
    found = hunt(name, count=-(-ALL // len(NAMES)), seed=1)
    assert not found.harmful
    assert found.accepted < found.tried
