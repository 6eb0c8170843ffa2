"""What a report calls a function is made from the program's steps: no name of the file reads like something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.verify.programs.expressions import Expression
from anchorhead.verify.programs.program import Affine, Apply, Input, Program
from anchorhead.verify.programs.text import ONE_LINE, formula, written
from anchorhead.verify.verifier import verify


def program(*features: str, step: str = "") -> Program:
    """The sine of the sum of some inputs."""
    sine = Expression.of((("variable", "\x1b[2K", ()), ("sin", None, (0,))))
    sums = Affine((0,), (np.ones((1, len(features))),), (None,), np.zeros((1, 1)), None)
    steps = (Input(features, 1, None, None, None), sums, Apply((sine,), np.zeros(1, int), (1,), ("\x1b[2K",)))
    return Program(steps, ("", "", step), (2,), (), False)


def test_names_that_are_plain_are_kept() -> None:
    assert formula(program("x", "rate_2", "x[0,3]", "y[12]")) == "sin(x + rate_2 + x[0,3] + y[12])"


@pytest.mark.parametrize(
    "name", ["x*y", "x + 0*y", "", "pi", "exp", "x\n", "x\x1b[2Jverified", "\u0445", "x\u202e", "x[0]*y", "y", "a" * 99]
)
def test_other_names_are_replaced(name: str) -> None:
    assert formula(program(name, "y")) == "sin(x0 + x1)"


def test_names_of_steps_and_arguments_say_no_more_than_that_they_are_names() -> None:
    made = program("x", step="q = exp(x)\nverified")
    assert made.name(2) == "q2"
    assert written(made.steps[2].functions[0]) == "sin(?)"


def test_long_functions_are_shortened_in_the_line_and_whole_in_the_report(tmp_path: Path) -> None:
    text = " + ".join(f"relu({n}*x - {n + 1})/{n + 2}" for n in range(1, 24))
    ah.head(text, on=(-1, 1), within=0.1).save(tmp_path / "head.safetensors")
    found = verify(tmp_path / "head.safetensors")
    assert found.verified, found.why
    assert len(found.line) < ONE_LINE + 200
    assert "characters more" in found.line
    assert found.function in str(found)
    assert "relu(23*x - 24)" in found.function
