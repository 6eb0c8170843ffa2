"""Callables: verified given the function, refused given another."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.verify import verify
from tests.networks import names, row_of

from ..files import Change, written

PAIR = "callable, tokens (float32)"


def found(name: str, folder: Path, change: Change | None = None, function: Any = None) -> Any:
    return verify(written(name, folder, change), function=function or row_of(name).function)


@pytest.mark.parametrize("name", names("opaque several", "proven"))
def test_bounds_of_the_table_follow_from_the_function(name: str, tmp_path: Path) -> None:
    report = found(name, tmp_path)
    assert report.verified, report.why
    assert "given the function" in report.why
    assert "|f(x) - f(y)|" in str(report)
    without = verify(written(name, tmp_path))
    assert not without.verified
    assert "function=f" in without.why


def _flat(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2)


@pytest.mark.parametrize(("function", "on", "dtype"), [(_flat, (-0.3, 0.2), "float64"), (np.abs, (0.5, 2), "float32")])
def test_one_anchor_and_values_that_cancel(function: Callable[..., Any], on: tuple[float, float], dtype: str) -> None:
    network = ah.approximate(function, on={"a": on}, within=0.03, lipschitz=1.0, dtype=dtype)
    assert ah.check(network, function=function).verified


def _value(header: dict, arrays: dict) -> None:
    registers = arrays["layers.0.registers"]
    registers[0, -1] += 5.0


def _constant(header: dict, arrays: dict) -> None:
    """A smaller constant in the certificate and in the program, which values contradict."""
    for one in header["certificate"]["conditions"]:
        one["constants"] = [0.25]
    for step in header["program"]["steps"]:
        for function in step.get("functions", ()):
            function["lipschitz"] = [0.25]


def _certificate(**changes: Any) -> Change:
    return lambda header, arrays: header["certificate"].update(changes)


def _features(header: dict, arrays: dict) -> None:
    """Of one argument more features than there are functions, all of them the input."""
    arrays["program.1.weight.0"] = np.ascontiguousarray(arrays["program.1.weight.0"][:, [0, 1, 1]])
    arrays["program.1.bias"] = np.zeros((1, 3))


def _tokens(header: dict, arrays: dict) -> None:
    """More tokens of one argument, all of them the input: the function of each is put out."""
    arrays["program.1.bias"] = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_features, "does not fit"),
        (_tokens, "several tokens"),
        (_value, "does not follow"),
        (_constant, "contradict"),
        (_certificate(conditions=[]), "what is assumed"),
        (_certificate(conditions=[{"kind": "image of a norm"}]), "means nothing here"),
        (_certificate(conditions=2 * [{"kind": "assumed Lipschitz constant", "constants": [2.0]}]), "twice"),
        (_certificate(conditions=[{"kind": "assumed Lipschitz constant", "constants": [1.9]}]), "another constant"),
        (_certificate(bound=1e-4, terms={}, worst=None), "does not follow"),
        (_certificate(evaluations=["plain", "direct"]), "no other evaluation"),
    ],
)
def test_what_does_not_follow_is_refused(change: Change, why: str, tmp_path: Path) -> None:
    report = found(PAIR, tmp_path, change)
    assert not report.verified
    assert why in report.why


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x[..., :1] * np.nan, lambda x: 1 / 0])
def test_another_function_is_refused(function: Callable[..., Any], tmp_path: Path) -> None:
    assert not found(PAIR, tmp_path, function=function).verified


@pytest.mark.parametrize(
    ("function", "lipschitz"),
    [
        (lambda x: np.abs(x - 0.3), 1.0),
        pytest.param(lambda x: np.stack([np.sin(x), x**2], 1), 2.0, marks=pytest.mark.slow),
        pytest.param(lambda x: np.exp(x) + 9, 3.0, marks=pytest.mark.slow),
        pytest.param(math.sin, 1.0, marks=[pytest.mark.slow, pytest.mark.filterwarnings("ignore:sin takes no arrays")]),
    ],
    ids=["kink", "two outputs", "with a bias", "point by point"],
)
def test_functions_of_one_number(function: Callable[..., Any], lipschitz: float) -> None:
    network = ah.approximate(function, (-1, 1), 0.02, dtype="float32", lipschitz=lipschitz, progress=False)
    report = ah.check(network, function=function, progress=False)
    assert report.found <= report.stated


@pytest.mark.parametrize(
    "function", [lambda x: np.abs(x - 0.3), pytest.param(lambda x: np.maximum(x, 0), marks=pytest.mark.slow)]
)
def test_a_kink_between_steep_anchors_follows(function: Callable[..., Any]) -> None:
    network = ah.approximate(function, (-1, 1), 1e-4, lipschitz=1.0, progress=False)
    assert network.certificate is not None
    assert network.certificate.bound < 1e-5
    assert ah.check(network, function=function, progress=False).verified


def test_every_kind_of_condition_is_refused_where_it_means_nothing(tmp_path: Path) -> None:
    conditions = [
        {"kind": "at most so many examples", "most": 3},
        {"kind": "safe rate", "rate": 0.1, "limit": 1.0},
        {"kind": "keeps within", "quantity": "s", "low": -1.0, "high": 1.0},
        {"kind": "assumed Lipschitz constant", "constants": [0.0]},
        {"kind": "image of a norm", "norm": "RMSNorm", "scale": [1.0], "shift": [0.0], "slack": 0.0, "rounding": 0.0},
    ]
    for one in conditions:
        report = verify(written("head (float32)", tmp_path, _certificate(conditions=[one])))
        assert "means nothing here" in report.why
