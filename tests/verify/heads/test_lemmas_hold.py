"""The verifier's lemmas against what they speak of: nothing that they bound is ever larger.

Rounding is what an adversary makes of it: every operation errs as the model allows, in the direction that hurts.
"""

from __future__ import annotations

import numpy as np
import pytest

from anchorhead.language.expressions.parser import parse
from anchorhead.verify import constant, rounding
from anchorhead.verify.balls import precision
from anchorhead.verify.forms import Forms, Quantities
from anchorhead.verify.programs.expressions import read_expression
from anchorhead.verify.scalar.part import Part

from .adversary import (
    HEADS,
    behaviour_holds,
    constant_softmax_holds,
    dot_holds,
    head_holds,
)

FUNCTIONS = (
    "sin(3*x)*exp(x)", "gelu(x)", "gelu_tanh(x)", "mish(x)", "selu(x)", "elu(x)", "hardswish(x)", "softsign(x)",
    "abs(x - 0.3)", "min(x, x**2, 0.5)", "max(x**3, -x)", "where(x < 0.2, x, 0.2)", "soft_threshold(x)", "log(2 + x)",
    "sqrt(2 + x)", "(2 + x)**1.5", "1/(2 + x**2)", "erf(x)", "softplus(3*x)", "tanh(x)*sigmoid(x)", "celu(x, 2)",
    "leaky_relu(x)", "relu6(4*x)", "log1p(x + 1)", "expm1(x)", "clip(x, -0.5, 0.5)", "hardsigmoid(x)", "pi*x**2 + e",
)  # fmt: skip


@pytest.mark.parametrize("text", FUNCTIONS)
def test_balls_and_series_hold_the_values(text: str) -> None:
    """Against the library's own evaluation, in float64; derivatives against differences."""
    from flint import arb, arb_series

    theirs = parse(text, ("x",))
    ours = read_expression(theirs.to_json())
    x = np.linspace(-1, 1, 41)
    values = np.asarray(theirs.values({"x": x}), np.float64)
    with precision(cap=4):
        for point, value in zip(x, values, strict=True):
            ball = ours.ball({"x": arb(point)})
            assert abs(float(ball.mid()) - value) <= 1e-13 * (1 + abs(value))
            wide = ours.ball({"x": arb(point, 0.01)})
            assert wide.overlaps(ball)
            assert wide.contains(ball)
        for left, right, low, high in zip(x[:-1], x[1:], values[:-1], values[1:], strict=True):
            try:
                series = ours.series({"x": arb_series([arb(left).union(arb(right)), 1], prec=2)})
            except Exception as error:
                assert type(error).__name__ == "Undecided"  # noqa: PT017
                continue
            slope = (high - low) / (right - left)
            assert float(series[1].lower()) - 1e-10 <= slope <= float(series[1].upper()) + 1e-10


@pytest.mark.parametrize(
    "text", ["gelu(x)", "sin(5*x)", "abs(x)", "x**3 - x", "clip(x, -0.5, 0.5)", "tanh(4*x)", "min(sin(x), x)"]
)
def test_ranges_and_slopes_hold(text: str) -> None:
    assert behaviour_holds(text, -1.3, 1.1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dot_products_never_err_by_more(dtype: str) -> None:
    assert all(dot_holds(dtype, seed) for seed in range(40))


@pytest.mark.parametrize("name", HEADS)
def test_heads_never_err_by_more(name: str) -> None:
    assert head_holds(name)


def test_constant_softmaxes_never_err_by_more() -> None:
    assert constant_softmax_holds(2)
    assert constant_softmax_holds(5)


def test_weights_that_are_left_out_of_a_mean_count() -> None:
    """e^-650 of 1e300 is something, though no coefficient of float64 is as small as the weight."""
    model, nothing = rounding.MODELS["float64"], np.zeros(2)
    offsets = np.array([0.0, -650.0])
    logits = Part(nothing, offsets, nothing, -offsets, -offsets, nothing, nothing, nothing, nothing, model)
    values = Forms.constants(np.array([[0.0], [1e300]]))
    found, _ = constant.constant_softmax(logits, 0.0, values, Quantities(), model)
    assert abs(1e300 * np.exp(-650.0) - found.constant[0, 0]) <= found.error[0, 0] <= 1e40
