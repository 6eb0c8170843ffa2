"""Conditions on what a function is given, made by hand: granted only where it is plain which number they speak of."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anchorhead.conditions import Excluded
from anchorhead.domain import Box
from anchorhead.language.expressions.parser import parse
from anchorhead.language.program import Writer
from anchorhead.language.steps import Affine, Apply, Term
from anchorhead.network import Attention, Embed, Network
from anchorhead.network.claim_table import ClaimTable
from anchorhead.network.derivation import Derivation
from anchorhead.proof.statement import Statement
from anchorhead.verify import Report, verify
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.forms import Forms, Quantities
from anchorhead.verify.programs.exact import _term

BOX = Box.of((-1, 1)).broadcast_to((1, 2))


def bump() -> Network:
    """1 where |x0| < 0.3, and 0 beyond."""
    registers = np.zeros((3, 5))
    registers[:, 2], registers[:, 3], registers[:, 4] = (-4000, 0, 4000), (-1200, 0, -1200), (0, 1, 0)
    query, key, value = np.zeros((1, 2, 5)), np.zeros((1, 2, 5)), np.zeros((1, 1, 5))
    query[0, [0, 1], [0, 1]], key[0, [0, 1], [2, 3]], value[0, 0, 4] = 1.0, 1.0, 1.0
    tokens = Embed(np.diag([1.0, 0, 0, 0, 0])[:, :2], np.eye(5)[1], tokens=1, registers=registers)
    return Network([tokens, Attention(query, key, value, np.ones((1, 1, 1)), grid=(3,))])


def number(writer: Writer, x: int, feature: int) -> int:
    return writer.add(Affine((Term(x, np.eye(2)[[feature]]),), np.zeros((1, 1))), f"x{feature}")


def of_another_number(writer: Writer, x: int) -> int:
    """No claim is about the function of x1, of which the condition speaks."""
    writer.add(Apply((parse("relu(x)"),), np.zeros(1, int), (number(writer, x, 1),)), "relu")
    return writer.add(Affine((Term(x, np.zeros((1, 2))),), np.zeros((1, 1))), "nothing")


def of_a_function_that_is_not_put_out(writer: Writer, x: int) -> int:
    writer.add(Apply((parse("0*x"),), np.zeros(1, int), (number(writer, x, 0),)), "unused")
    return writer.add(Affine((Term(x, np.zeros((1, 2))),), np.zeros((1, 1))), "nothing")


def of_a_function_of_which_nothing_is_taken(writer: Writer, x: int) -> int:
    unused = writer.add(Apply((parse("0*x"),), np.zeros(1, int), (number(writer, x, 0),)), "unused")
    return writer.add(Affine((Term(unused, np.zeros((1, 1))),), np.zeros((1, 1))), "nothing")


def of_several_numbers(writer: Writer, x: int) -> int:
    """One of them is that of another function."""
    both = writer.add(Affine((Term(x, np.eye(2)),), np.zeros((1, 2))), "x0, x1")
    found = writer.add(Apply((parse("0*x"), parse("relu(x)")), np.arange(2), (both,)), "both")
    return writer.add(Affine((Term(found, np.eye(2)[:1]),), np.zeros((1, 1))), "first")


def of_what_is_put_out(writer: Writer, x: int) -> int:
    return writer.add(Apply((parse("0*x"),), np.zeros(1, int), (number(writer, x, 0),)), "nothing")


def report(program: Callable[[Writer, int], int]) -> Report:
    """On a bump that is said to be 0, but for numbers between -0.5 and 0.5."""
    writer = Writer()
    x = writer.input(["x0", "x1"], BOX.low, BOX.high, tokens=1)
    last = program(writer, x)
    claims = ClaimTable(
        np.array([[0, 0, 2, 0, 0]]), np.array([[1.0, 0, 0, 0, 0]]), np.array([[0, 0, 0, -1]]), np.zeros((0, 0))
    )
    certificate = Statement(1e-2, (), "by hand", "nothing").certificate(BOX, "float64")
    made = bump().with_(
        program=writer.program(last),
        certificate=replace(certificate, conditions=(Excluded(((-0.5, 0.5),)),)),
        derivation=Derivation("by hand", claims=claims),
    )
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder) / "network.safetensors")
        return verify(Path(folder) / "network.safetensors")


OTHERS = {
    one.__name__: one
    for one in (
        of_another_number,
        of_a_function_that_is_not_put_out,
        of_a_function_of_which_nothing_is_taken,
        of_several_numbers,
    )
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_conditions_on_something_else_are_refused(name: str) -> None:
    assert not report(OTHERS[name]).verified


def test_a_condition_is_said_where_it_is_granted() -> None:
    found = report(of_what_is_put_out)
    assert found.verified
    assert "no argument between -0.5 and 0.5" in found.line


@pytest.mark.parametrize("shape", [(2, 1, 3), (1, 1, 2, 3)])
def test_weights_of_as_many_entries_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    """Of three tokens of two features, not of two of three."""
    with pytest.raises(NotVerified, match="weights"):
        _term(np.ones(shape), None, Forms.constants(np.ones((3, 2))), Quantities())
