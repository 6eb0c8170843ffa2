"""Named functions are torch's, to the last digits, and their enclosures contain the true values."""

import math

import mpmath
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flint import arb, ctx

from anchorhead.errors import AnchorheadError
from anchorhead.language.targets import NAMED, analyse, parse

TORCH = {
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "leaky_relu(x, 0.3)": lambda x: F.leaky_relu(x, 0.3),
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "hardtanh(x, -2, 3.5)": lambda x: F.hardtanh(x, -2, 3.5),
    "clip(x, -2, 3.5)": lambda x: torch.clip(x, -2, 3.5),
    "abs": torch.abs,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "elu": F.elu,
    "elu(x, 0.7)": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "celu": F.celu,
    "celu(x, 1.7)": lambda x: F.celu(x, 1.7),
    "softplus": lambda x: F.softplus(x, threshold=1000),
    "softplus(x, 2.5)": lambda x: F.softplus(x, 2.5, threshold=1000),
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softsign": F.softsign,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "reciprocal": torch.reciprocal,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "soft_threshold": F.softshrink,
    "soft_threshold(x, 1.25)": lambda x: F.softshrink(x, 1.25),
}
SELU = (mpmath.mpf(1.0507009873554804934193349852946), mpmath.mpf(1.6732632423543772848170429916717))
EXACT = {
    "relu": lambda x: max(x, 0),
    "leaky_relu": lambda x: x if x > 0 else mpmath.mpf(0.01) * x,
    "relu6": lambda x: min(max(x, 0), 6),
    "hardtanh": lambda x: min(max(x, -1), 1),
    "abs": abs,
    "hardswish": lambda x: x * min(max(x + 3, 0), 6) / 6,
    "hardsigmoid": lambda x: min(max(x + 3, 0), 6) / 6,
    "gelu": lambda x: x * (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf(0.044715) * x**3))) / 2,
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "mish": lambda x: x * mpmath.tanh(mpmath.log(1 + mpmath.exp(x))),
    "elu": lambda x: x if x > 0 else mpmath.exp(x) - 1,
    "selu": lambda x: SELU[0] * (x if x > 0 else SELU[1] * (mpmath.exp(x) - 1)),
    "celu": lambda x: x if x > 0 else mpmath.exp(x) - 1,
    "softplus": lambda x: mpmath.log(1 + mpmath.exp(x)),
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softsign": lambda x: x / (1 + abs(x)),
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "sqrt": mpmath.sqrt,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "soft_threshold": lambda x: max(x - 0.5, 0) + min(x + 0.5, 0),
}
POSITIVE = ("log", "log1p", "sqrt", "reciprocal")


def expression(text: str):
    return parse(text if "(" in text else f"{text}(x)")


def points(name: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.normal(0, 3, 200), rng.normal(0, 0.01, 50), np.linspace(-12, 12, 97), [0.0]])
    x = x[np.abs(x) > 1e-3] if name.startswith("reciprocal") else x
    return np.abs(x) + 1e-3 if name in POSITIVE else x


def test_every_name_of_the_issue_is_there_and_checked() -> None:
    asked = (
        "relu leaky_relu relu6 hardtanh abs hardswish hardsigmoid gelu gelu_tanh silu mish elu "
        "selu celu softplus tanh sigmoid softsign erf exp log sqrt square reciprocal sin cos soft_threshold"
    )
    assert set(asked.split()) <= set(NAMED)
    assert set(EXACT) == set(NAMED) - {"clip"}
    assert {text.split("(")[0] for text in TORCH} == set(NAMED)
    assert all(named.description and "\n" not in named.description for named in NAMED.values())


@pytest.mark.parametrize("text", TORCH)
def test_named_functions_equal_torch(text: str) -> None:
    x = points(text)
    ours = expression(text).values({"x": x})
    theirs = TORCH[text](torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=4e-14, atol=1e-15)


@pytest.mark.parametrize("name", EXACT)
def test_values_and_balls_against_high_precision(name: str) -> None:
    named, x = expression(name), points(name)[::4]
    ours = named.values({"x": x})
    with mpmath.workdps(120), ctx.workprec(128):
        for point, value in zip(x, ours, strict=True):
            exact = EXACT[name](mpmath.mpf(float(point)))
            # in a tail the rounding of the argument is multiplied by x**2: relative 1e-13; else a few ulp
            assert abs(value - exact) <= 1e-13 * abs(exact) + 1e-300, (point, value, exact)
            assert abs(value - exact) <= 2e-15 * max(1, abs(exact)), (point, value, exact)
            ball = named.ball({"x": arb(float(point))})
            assert ball.overlaps(arb(mpmath.nstr(exact, 50)) + arb(0, 1e-45)), (point, ball, exact)
            assert float(ball.rad()) <= 1e-33 * max(abs(float(exact)), 1e-30)


@pytest.mark.parametrize("name", sorted(set(EXACT) - {"exp", "expm1", "log", "log1p", "sqrt", "tan"}))
def test_far_out_nothing_overflows(name: str) -> None:
    x = np.array([-1e5, -1000.0, -745.5, 745.5, 1000.0, 1e5])
    values = expression(name).values({"x": x})
    assert np.isfinite(values).all()
    with ctx.workprec(128):
        for point, value in zip(x, values, strict=True):
            exact = float(expression(name).ball({"x": arb(float(point))}).mid())
            assert math.isclose(value, exact, rel_tol=1e-14, abs_tol=1e-300)


@pytest.mark.parametrize(
    ("name", "kinks"),
    {
        "relu": [0], "leaky_relu": [0], "relu6": [0, 6], "hardtanh": [-1, 1], "abs": [0],
        "hardswish": [-3, 3],
        "hardsigmoid": [-3, 3], "elu": [0], "selu": [0], "celu": [0], "softsign": [0],
        "soft_threshold": [-0.5, 0.5], "gelu": [], "gelu_tanh": [], "silu": [], "mish": [], "softplus": [],
        "tanh": [], "sigmoid": [], "erf": [], "square": [], "sin": [], "cos": [], "exp": [],
    }.items(),
)  # fmt: skip
def test_kinks_of_named_functions_are_exact(name: str, kinks: list[float]) -> None:
    found = analyse(expression(name), -10, 10).kinks
    assert [float(kink.at) for kink in found] == kinks
    assert all(kink.at.is_exact() and kink.jump.is_zero() for kink in found)


def test_a_parameter_out_of_range_says_what_it_must_be() -> None:
    with pytest.raises(AnchorheadError, match="low=2, high=1 of hardtanh: low must lie below high"):
        parse("hardtanh(x, 2, 1)")
