"""The solver of heads with their own key, and their closed forms."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from anchorhead.heads.self_keys.self_key import SelfKeyHead
from anchorhead.heads.self_keys.self_key_closed import closed
from anchorhead.language.expressions.activation_names import activation_of
from tools.self_key_glued import glued_heads
from tools.self_key_solver import Fit, Problem, fits, head_of

S = np.concatenate([np.linspace(-30, 30, 4001), np.linspace(-1e-6, 1e-6, 501)])


def error_of(head: SelfKeyHead, name: str) -> float:
    return float(np.abs((head(S) - activation_of(name)[1].values({"x": S})) / np.maximum(1, np.abs(S))).max())


PROBLEM = Problem.of(lambda s: s * ndtr(s), 12.0, 1.0, 0.0)
STEP = {3: 2.25, 5: 1.375, 8: 1.0625}


@cache
def best(registers: int) -> Fit:
    return fits(PROBLEM, registers, [STEP[registers]])[0]


@pytest.mark.parametrize(("registers", "within"), [(3, 4e-3), (5, 1e-4), (8, 4e-6)])
def test_gelu_is_solved_in_even_steps(registers: int, within: float) -> None:
    fit = best(registers)
    assert fit.error <= within
    for dtype in ("float32", "float64"):
        head = head_of(fit, PROBLEM, "gelu", dtype)
        assert error_of(head, "gelu") <= within
        assert (np.round(head.slopes / fit.step) * fit.step == head.slopes).all()
        assert head.values[0] == 0


def test_more_registers_are_better() -> None:
    assert best(3).error > 10 * best(5).error > 100 * best(8).error


@pytest.mark.parametrize(
    "name",
    ["relu", "leaky_relu(x, 0.3)", "abs", "relu6", "hardtanh(x, -3, 0.5)", "hardsigmoid", "soft_threshold(x, 0.25)",
     "silu", "quick_gelu", "tanh", "sigmoid", "elu", "elu(x, 2)", "selu", "celu(x, 0.5)", "linear"],
)  # fmt: skip
def test_closed_forms_are_right_up_to_the_dtype(name: str) -> None:
    shown, function = activation_of(name)
    for dtype, within in (("float32", 1e-6), ("float64", 1e-13)):
        head = closed(function, shown, dtype)  # type: ignore[arg-type]
        assert head is not None
        assert error_of(head, name) <= within


def test_other_functions_have_no_closed_form() -> None:
    for name in ("gelu", "sin", "relu(x + 1)", "softsign"):
        assert closed(activation_of(name)[1], name, "float64") is None


def test_hardswish_is_glued_from_a_parabola_and_two_lines() -> None:
    heads = glued_heads("hardswish", "float64", 4)
    assert min(error_of(head, "hardswish") for head in heads) <= 1e-8
    assert glued_heads("hardswish", "float64", 1) == []
