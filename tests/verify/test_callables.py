"""Callables: verified given the function, refused given another, and no bound on cells is exceeded."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anchorhead as ah
import anchorhead.verify.grids.cover as cover
from anchorhead.verify import verify
from anchorhead.verify.grids.cover import Lipschitz, cover_bound, interval_bound
from anchorhead.verify.grids.head import Grid
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.scalar import Part
from tests.networks import names, quick, row_of

from .files import Change, written

PAIR = "callable, tokens (float32)"


def found(name: str, folder: Path, change: Change | None = None, function: Any = None) -> Any:
    return verify(written(name, folder, change), function=function or row_of(name).function)


@pytest.mark.parametrize("name", quick(names("opaque several", "proven")))
def test_bounds_of_the_table_follow_from_the_function(name: str, tmp_path: Path) -> None:
    report = found(name, tmp_path)
    assert report.verified, report.why
    assert "given the function" in report.why
    assert "|f(x) - f(y)|" in str(report)
    without = verify(written(name, tmp_path))
    assert not without.verified
    assert "function=f" in without.why


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


@pytest.mark.parametrize(
    ("change", "why"),
    [
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


def ripple(x: np.ndarray) -> np.ndarray:
    """With slopes of up to 3 along each axis."""
    return np.sin(3 * x[..., 0]) * np.cos(3 * x[..., 1])


def flat(x: np.ndarray) -> np.ndarray:
    return np.zeros(x.shape[:-1])


def _grid(scale: float) -> Grid:
    rng = np.random.default_rng(4)
    slopes = [np.linspace(-6, 6, side).astype(np.float32).astype(float) for side in (5, 4)]
    offsets = [(-(one**2) / 12).astype(np.float32).astype(float) for one in slopes]
    values = scale * rng.normal(size=(5, 4, 1)).astype(np.float32).astype(float)
    return Grid(list(zip(slopes, offsets, strict=True)), np.zeros(2), values, np.zeros(1))


def _share_of_grid(counts: int, scale: float = 1.0, function: Callable[..., Any] = ripple) -> float:
    """The largest difference that is found between a grid and a function, as a share of the bound on it."""
    grid, x = _grid(scale), np.random.default_rng(1).uniform(-1, 1, (4000, 2))
    read = grid.values[..., 0]
    for j, (slopes, offsets) in enumerate(grid.axes):
        z = x[:, j : j + 1] * slopes + offsets
        w = np.exp(z - z.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        read = np.einsum("nk,k...->n...", w, read) if j == 0 else np.einsum("nk,nk->n", w, read)
    worst = float(np.abs(read - function(x)).max())
    constants = Lipschitz((3.0, 3.0) if function is ripple else (0.0, 0.0), euclidean=False)
    model = arithmetic_of("float32")
    return worst / cover_bound(grid, function, 0.0, constants, [-1.0, -1.0], [1.0, 1.0], model, [counts] * 2, 1e9)


def _share_of_interval() -> float:
    """The same for a head of five anchors on a number, with few cells, which are large."""
    rng = np.random.default_rng(2)
    slopes, offsets, values = (rng.normal(size=5).astype(np.float32).astype(float) * c for c in (8, 1, 2))
    nothing, sizes = np.zeros(5), np.abs(offsets)
    part = Part(slopes, offsets, values, sizes, sizes, np.ones(5), nothing, nothing, nothing, arithmetic_of("float32"))
    x = np.linspace(-1, 1, 20001)
    w = np.exp(x[:, None] * slopes + offsets)
    worst = float(np.abs(w @ values / w.sum(axis=1) - np.sin(3 * x)).max())
    sine = Lipschitz((3.0,), euclidean=False)
    return worst / interval_bound(part, 0.0, lambda x: np.sin(3 * x[:, 0]), 0.0, sine, (-1.0, 1.0), 1e9)


def test_no_difference_exceeds_the_bounds_on_cells() -> None:
    assert 0.1 < _share_of_grid(12) < _share_of_grid(96) <= 1
    assert 0.3 < _share_of_interval() <= 1


def _without(place: int) -> Callable[..., Any]:
    """What is found on cells, one of its numbers left out."""

    def broken(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *a: [0 * one if n == place else one for n, one in enumerate(f(*a))]

    return broken


MUTATIONS: dict[str, tuple[Any, str, Callable[..., Any], tuple[Any, ...]]] = {
    "functions do not move": (Lipschitz, "over", lambda f: lambda self, step: 0 * f(self, step), (1, 0.0)),
    "heads do not move": (cover, "_on_cells", _without(1), (1, 1.0, flat)),
    "values are not compared": (cover, "_on_cells", _without(0), (96,)),
}


@pytest.mark.parametrize("what", MUTATIONS)
def test_a_broken_lemma_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, make, case = MUTATIONS[what]
    assert _share_of_grid(*case) <= 1
    monkeypatch.setattr(owner, name, make(getattr(owner, name)))
    monkeypatch.setattr(cover, "_require_constant", lambda *a: None)
    assert _share_of_grid(*case) > 1


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
