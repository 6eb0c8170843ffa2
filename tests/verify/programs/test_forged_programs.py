"""Programs of numbers that are known up to radii: what is the same but for these is not the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from anchorhead.domain import Box
from anchorhead.language.expressions.parser import parse
from anchorhead.language.program import Writer
from anchorhead.language.steps import Affine, Apply, Term
from anchorhead.network import Embed, Linear, Network
from anchorhead.proof.statement import Statement
from anchorhead.verify import verify


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
