"""Asking for an activation by name: the smallest proven head, or a message that says what can be had."""

from __future__ import annotations

import numpy as np
import pytest

from anchorhead.constructions.single.self_key_head import self_key_head
from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.activation_names import ALIASES, activation_of
from anchorhead.language.targets import parse


@pytest.mark.parametrize(
    ("name", "same"),
    [("gelu_new", "gelu_tanh"), ("gelu_pytorch_tanh", "gelu_tanh"), ("gelu_python", "gelu"), ("swish", "silu"),
     ("linear", "linear"), ("quick_gelu", "quick_gelu"), ("relu", "relu"), ("leaky_relu", "leaky_relu")],
)  # fmt: skip
def test_names_of_transformers_are_known(name: str, same: str) -> None:
    assert self_key_head(name, 1e-3, "float32").function == same


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_smallest_head_within_the_error_is_given(dtype: str) -> None:
    found = [self_key_head("gelu", within, dtype) for within in (1e-2, 1e-3, 1e-4, 1e-5)]
    assert [head.bound <= within for head, within in zip(found, (1e-2, 1e-3, 1e-4, 1e-5), strict=True)] == [True] * 4
    assert [head.registers for head in found] == sorted({head.registers for head in found})


def test_parameters_are_heeded() -> None:
    s = np.linspace(-4, 4, 101)
    for text in ("leaky_relu(x, 0.3)", "hardtanh(x, -2, 2)", "elu(x, 0.25)", "x*sigmoid(3*x)"):
        head = self_key_head(parse(text), 1e-5, "float32")
        assert np.abs(head(s) - parse(text).values({"x": s})).max() <= 1e-4
        assert head.bound <= 1e-5


def test_gelu_fast_is_the_tanh_form_and_says_by_how_much_not() -> None:
    near, fast = self_key_head("gelu_tanh", 1e-5, "float64"), self_key_head("gelu_fast", 1e-5, "float64")
    assert near.exact < fast.exact <= near.exact + 1.1e-12
    s = np.linspace(-9, 9, 2001)
    exact = 0.5 * s * (1 + np.tanh(s * 0.7978845608 * (1 + 0.044715 * s * s)))
    other = activation_of("gelu_tanh")[1].values({"x": s})
    assert (np.abs(exact - other) / np.maximum(1, np.abs(s))).max() <= 1e-12
    with pytest.raises(AnchorheadError, match="gelu_fast"):
        self_key_head("gelu_fast", 1e-13, "float64")


@pytest.mark.parametrize(("name", "low", "high"), [("sin", -np.pi, np.pi), ("square(relu(x) + 1)", 0.25, 1.0)])
def test_functions_without_lines_get_registers_alone_on_an_interval(name: str, low: float, high: float) -> None:
    """From the table of heads, and solved anew."""
    head = self_key_head(name, 1e-2, "float32", low, high)
    assert head.own is None
    assert head.bound <= 1e-2
    assert (head.low, head.high) == (low, high)
    s = np.linspace(low, high, 501)
    assert np.abs(head(s) - activation_of(name)[1].values({"x": s})).max() <= 1e-2


def test_what_cannot_be_had_is_said() -> None:
    with pytest.raises(AnchorheadError, match=r"out of reach for gelu in float32: .* can be reached.*float64"):
        self_key_head("gelu", 1e-9, "float32")
    with pytest.raises(AnchorheadError, match=r"no head for the whole line.*low and high.*gelu"):
        self_key_head("sin", 1e-3)
    with pytest.raises(AnchorheadError, match=r"'swiglu' is not known: .*gelu"):
        self_key_head("swiglu", 1e-3)
    with pytest.raises(AnchorheadError, match="above 0"):
        self_key_head("gelu", 0.0)
    with pytest.raises(AnchorheadError, match="low < high"):
        self_key_head("gelu", 1e-3, low=1.0, high=0.0)
    with pytest.raises(AnchorheadError, match="variables"):
        self_key_head("x*y", 1e-3)
    with pytest.raises(AnchorheadError, match="overflow"):
        self_key_head("gelu", 1e-3, "float32", high=1e35)
    with pytest.raises(AnchorheadError):
        self_key_head("gelu", 1e-3, "float16")


def test_every_alias_is_an_expression_of_one_variable() -> None:
    for name in ALIASES:
        assert len(activation_of(name)[1].variables) == 1
