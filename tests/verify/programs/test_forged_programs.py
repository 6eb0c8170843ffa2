"""Programs of numbers that are known up to radii, or that are no numbers of float64 on the way: what is the same but
for these is not the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from anchorhead.domain import Box
from anchorhead.language.expressions.parser import parse
from anchorhead.language.program import Writer
from anchorhead.language.steps import Affine, Apply, Term
from anchorhead.network import Embed, Linear, Network
from anchorhead.proof.statement import Statement
from anchorhead.verify import verify
from anchorhead.verify.forms import Forms, Quantities
from anchorhead.verify.programs.exact import _term


def _difference_of_sines(folder: Path, radius: float) -> bool:
    """Whether 0 is verified for sin(u x) - sin(v x), where u and v are 1 up to a radius, each by itself."""
    box, writer = Box.of((-1, 1)).broadcast_to((1, 1)), Writer()
    x = writer.input(["x"], box.low, box.high, tokens=1)
    twice = writer.add(Affine((Term(x, np.ones((2, 1)), np.full((2, 1), radius)),), np.zeros((1, 2))), "u x, v x")
    sines = writer.add(Apply((parse("sin(x)"),), np.zeros(2, int), (twice,)), "sines")
    apart = writer.add(Affine((Term(sines, np.array([[1.0, -1.0]])),), np.zeros((1, 1))), "difference")
    net = Network([Embed(np.ones((1, 1)), np.zeros(1), tokens=1), Linear(np.zeros((1, 1)))])
    certificate = Statement(1e-3, (), "by hand", "a difference").certificate(box, net.dtype)
    net.with_(program=writer.program(apart), certificate=certificate).save(folder / "network.safetensors")
    return verify(folder / "network.safetensors").verified


def test_functions_of_numbers_that_may_differ_do_not_cancel(tmp_path: Path) -> None:
    assert not _difference_of_sines(tmp_path, 0.5)


def test_functions_of_the_same_number_cancel(tmp_path: Path) -> None:
    assert _difference_of_sines(tmp_path, 0.0)


SMALL = 2.0**-600
FIRST = {
    "a constant": Affine((Term(0, np.zeros((1, 1))),), np.full((1, 1), SMALL)),
    "the radius of a constant": Affine((Term(0, np.zeros((1, 1))),), np.zeros((1, 1)), np.full((1, 1), SMALL)),
    "the radius of a weight": Affine((Term(0, np.zeros((1, 1)), np.ones((1, 1))),), np.zeros((1, 1))),
}
"""Numbers as small as that, for inputs that are."""


@pytest.mark.parametrize("kind", FIRST)
def test_what_is_large_again_is_not_lost_where_it_is_small(kind: str) -> None:
    """Times 2^-600 that is below all float64, times 2^1600 it is 2^400 at the end: no 0."""
    box, writer = Box.of((-SMALL, SMALL)).broadcast_to((1, 1)), Writer()
    writer.input(["x"], box.low, box.high, tokens=1)
    last = writer.add(FIRST[kind], "small")
    for factor in (SMALL, 2.0**800, 2.0**800):
        last = writer.add(Affine((Term(last, np.full((1, 1), factor)),), np.zeros((1, 1))), "times")
    net = Network([Embed(np.ones((1, 1)), np.zeros(1), tokens=1), Linear(np.zeros((1, 1)))])
    certificate = Statement(1e-3, (), "by hand", "a product").certificate(box, net.dtype)
    with tempfile.TemporaryDirectory() as folder:
        net.with_(program=writer.program(last), certificate=certificate).save(Path(folder) / "network.safetensors")
        assert not verify(Path(folder) / "network.safetensors").verified


def test_radii_of_small_weights_of_small_numbers_count() -> None:
    quantities, small = Quantities(), np.full((1, 1), SMALL)
    ids = quantities.add(-small[0], small[0])
    x = Forms(ids, np.ones((1, 1, 1)), *[np.zeros((1, 1))] * 3)
    assert _term(np.zeros((1, 1)), small, x, quantities).rounding > 0
