"""What follows for files of the table is what it was: a term that is dropped, or counted twice, shows here."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from .files import report

FOLLOWS = {
    "two-layer, transformer (float32)": 8.0786e-04,
    "attention-softmax, one token (float32)": 2.98386e-03,
    "attention-softmax, sequence (float32)": 8.27209e-04,
    "deep, one token (float32)": 3.18940e-03,
    "neurons, smooth (float32)": 2.342008e-03,
    "expressions, causal (float32)": 1.262149e-04,
    "kernel smoother (float32)": 7.883241e-06,
}
"""Of files without grids, so that what is stated changes nothing of what follows."""
CLOSE = 2e-3
"""Bounds may move by so much of themselves."""


@pytest.mark.parametrize("name", FOLLOWS)
def test_what_follows_is_what_it_was(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = report(name, Path(folder)).found
    assert abs(found / FOLLOWS[name] - 1) < CLOSE
