"""Where numbers overflow or underflow there is a bound or a refusal, and no warning of numpy's (here: an error)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import anchorhead as ah
from anchorhead import incontext
from anchorhead.errors import AnchorheadError

SCALES = (5e-324, 1e-300, 1e200, 8e307)


def outcome(build):
    """A network with a finite bound that it keeps to at the middle of its box, or nothing where it is refused."""
    try:
        return build()
    except AnchorheadError:
        return None


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [*((scale, "float64") for scale in SCALES), pytest.param(1e200, "float32", marks=pytest.mark.slow)],
)
def test_heads_are_built_or_refused(scale, dtype):
    on = (-scale, scale)
    for build in (
        lambda: ah.head("relu", on, within=0.1 * scale, dtype=dtype),
        lambda: ah.head("relu", on, within=0.1 * scale, dtype=dtype, placement="uniform"),
        lambda: ah.head("tanh", on, anchors=3, dtype=dtype),
        lambda: ah.head(lambda x: np.sin(x / scale), on, within=0.1, dtype=dtype),
    ):
        made = outcome(build)
        assert made is None or np.isfinite(made.certificate.bound)
        assert made is None or abs(made(0.0)) <= made.certificate.bound


@pytest.mark.slow_for("1e-300", "1e+200")
@pytest.mark.parametrize("scale", SCALES)
def test_functions_of_two_variables_are_built_or_refused(scale):
    box = {"x": (-scale, scale), "y": (-scale, scale)}
    for build in (
        lambda: ah.approximate("x*y", box, 0.1 * scale),
        lambda: ah.approximate("relu(x + y)", box, 0.1 * scale),
        lambda: ah.approximate(lambda x: (x[:, 0] / scale) * (x[:, 1] / scale), box, 0.1, dtype="float32"),
    ):
        made = outcome(build)
        assert made is None or np.isfinite(made.certificate.bound)


@pytest.mark.slow_for("1e+200", "8e+307")
@pytest.mark.parametrize("scale", SCALES)
def test_learners_are_built_or_refused(scale):
    for words in ({"rate": scale}, {"rate": 0.1, "labels": (-scale, scale)}, {"rate": 0.1, "on": (-scale, scale)}):
        made = outcome(lambda words=words: incontext.gradient_descent(steps=2, features=1, **words))
        assert made is None or np.isfinite(made.certificate.bound)


@pytest.mark.all_cases
@pytest.mark.parametrize(
    "text", ["x - x + y - y", "0*x*y", "x*y - y*x", "(x + y)**2 - x**2 - 2*x*y - y**2", "relu(x - 5)*y"]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_that_are_0_are_proven_and_verified(text, dtype):
    net = ah.approximate(text, {"x": (-1, 1), "y": (-1, 1)}, 1e-4, dtype=dtype)
    assert 0 < net.certificate.bound < 1e-300
    assert ah.check(net).line.startswith("verified")
    assert not np.asarray(net([[0.3, -0.2]])).any()


@pytest.mark.parametrize("text", ["exp(x) - exp(x)", "0*sin(x) + 2"])
def test_heads_of_constants_are_verified_however_they_are_written(text):
    head = ah.head(text, (0, 1), 1e-4)
    assert ah.check(head).line.startswith("verified")
    assert abs(head(0.5) - 2 * ("2" in text)) <= head.certificate.bound


def test_networks_whose_numbers_float64_does_not_hold_are_refused_in_words():
    linear, again = nn.Linear(2, 2, dtype=torch.float64), nn.Linear(2, 1, dtype=torch.float64)
    with torch.no_grad():
        for weight in (linear.weight, again.weight):
            weight.fill_(1e18)
    with pytest.raises(AnchorheadError, match="larger than"):
        ah.convert(nn.Sequential(linear, nn.ELU(), again, nn.ELU()), on=(-1, 1), within=1e30)


def test_prompts_whose_squares_overflow_are_refused():
    learner = incontext.gradient_descent(steps=2, rate=0.1, features=1)
    with pytest.raises(AnchorheadError, match=r"rate=0.1 is too large"):
        learner(learner.prompt([[1e200], [2e200]], [1.0, 2.0]))


def test_intervals_of_hardly_any_floats_are_refused():
    for build in (lambda on: ah.head("sin", on, 0.1), lambda on: ah.approximate("x*y", {"x": on, "y": (0, 1)}, 0.1)):
        with pytest.raises(AnchorheadError, match=r"narrower than 2.23e-308"):
            build((0.0, 1e-310))
