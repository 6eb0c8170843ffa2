"""The evaluation "direct": what runs is what is modelled, and bounds hold for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb
from torch import nn

import anchorhead as ah
import anchorhead.verify.direct as direct
from anchorhead.language.interpret import run
from anchorhead.language.numbers import Balls
from anchorhead.network import Network
from anchorhead.network.direct import Series as Runs
from anchorhead.network.direct import planned, saturated
from anchorhead.network.direct.plans import HeadsPlan
from anchorhead.network.direct.stored_series import stored_series
from anchorhead.verify import verify
from anchorhead.verify.balls import precision
from anchorhead.verify.series import Found, that_runs
from tests.networks import names, network, row_of

from ..files import parts_of, report, rewritten
from . import heads_directly
from .heads_directly import Keys

DIRECT = (
    "attention-softmax, one token",
    "deep, one token",
    "neurons, smooth",
    "neurons, uniform",
    "spline",
    "expressions",
)
"""Rows of the table whose certificates name the evaluation."""
FEW = "attention-softmax, one token (float64)"
"""The sum of its few weights is granted less than series may err by: it runs as it is written."""
DTYPES = "float64", "float32"
NAMES = [name for name in names() if row_of(name).name in DIRECT and name != FEW]


@pytest.mark.slow
def test_no_other_row_names_it() -> None:
    known = {name: network(name).certificate for name in names("proven")}
    stated = {name for name, one in known.items() if one is not None and "direct" in one.evaluations}
    assert stated == {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_the_series_that_run_are_those_that_are_counted(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Every head of the library's plan that has a series is one whose error was asked for."""
    counted: list[tuple[Found | None, set]] = []

    def told(stored: Sequence[Found], keys: Keys, off: np.ndarray) -> Found | None:
        found = that_runs(stored, keys, off)
        counted.append((found, set(zip(*(column.tolist() for column in keys), strict=True))))
        return found

    monkeypatch.setattr(direct, "that_runs", told)
    assert report(name, tmp_path).verified
    for keys, series in _series(network(name)):
        own = set(zip(*(column.tolist() for column in keys), strict=True))
        assert any(one == heads_directly.as_read(series, network(name).dtype) and own <= of for one, of in counted)


def _series(net: Network) -> list[tuple[Keys, Runs]]:
    """The heads that run by a series."""
    assert net.certificate is not None
    assert net.derivation is not None
    find = stored_series(net.derivation.data)
    plans = [step for step in planned(net.layers, net.output, net.dtype).steps if isinstance(step, HeadsPlan)]
    found = [(keys, find(*keys, net.dtype)) for step in plans for _, keys in step.groups]
    return [(keys, series) for keys, series in found if series is not None]


@pytest.mark.parametrize("name", ["spline (float32)", "expressions (float64)"])
def test_what_is_stored_is_what_runs(name: str) -> None:
    """Without what the derivation stores, heads are softmaxes; what is found anew is what is stored."""
    net = network(name)
    stored = _series(net)
    assert stored
    assert all(series == saturated(*keys, net.dtype) for keys, series in stored)
    assert not _series(net.with_(derivation=replace(net.derivation, data={})))  # type: ignore[type-var]


@pytest.mark.parametrize("change", ["scale", "shift", "origin", "high", "coefficients", "low"])
def test_series_that_are_something_else_are_refused(change: str, tmp_path: Path) -> None:
    """Each by less than a hundredth; clipping on the wrong side makes a constant of it."""

    def changed(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for one in header["derivation"]["data"]["series"]:
            match change:
                case "coefficients":
                    one[change] = [[2, 0.01]]
                case "low" | "high":
                    one[change] = {"low": None, "high": 0.0625}[change]
                case _:
                    one[change] = one[change] * 1.0078125 + 0.0078125

    assert report("spline (float32)", tmp_path).verified
    assert not report("spline (float32)", tmp_path, changed).verified


@pytest.fixture(scope="module", params=[(a, b) for a in ("two-layer", "attention-softmax") for b in DTYPES])
def bent(request: Any, tmp_path_factory: Any) -> tuple[Network, Path]:
    """A network of many GELUs, whose heads or groups run as a quotient, and its file."""
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(4, 48), nn.GELU(), nn.Linear(48, 2)).double()
    form, dtype = request.param
    net = ah.convert(model, on=(-1, 1), within={"float64": 1e-5, "float32": 1e-2}[dtype], dtype=dtype, form=form)
    path = tmp_path_factory.mktemp("bent") / "network.safetensors"
    net.save(path)
    return net, path


def test_networks_of_quotients_are_verified(bent: tuple[Network, Path]) -> None:
    net, path = bent
    assert net.derivation is not None
    (series,) = net.derivation.data["series"]
    assert series["below"]
    found = verify(path)
    assert found.verified
    assert net.certificate is not None
    assert found.found <= net.certificate.bound
    again = ah.load(path)
    x = np.random.default_rng(0).uniform(-1, 1, (50, 4)).astype(net.dtype)
    assert np.array_equal(again(x), net(x))


@pytest.mark.parametrize("change", ["scale", "shift", "origin", "high", "coefficients", "below", "one below", "less"])
def test_quotients_that_are_something_else_are_refused(change: str, bent: tuple[Network, Path], tmp_path: Path) -> None:
    """By a hundredth, or without their denominators or the highest power of these."""

    def changed(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        (one,) = header["derivation"]["data"]["series"]
        match change:
            case "coefficients" | "one below":
                row = one["coefficients" if change == "coefficients" else "below"][1]
                row[1] = row[1] * 1.01 + 0.01
            case "below":
                one["below"] = []
            case "less":
                one["below"].pop()
            case "high":
                one[change] = 0.5
            case _:
                one[change] = one[change] * 1.0078125 + 0.0078125

    assert not verify(rewritten(parts_of(bent[1]), tmp_path, changed)).verified


@pytest.mark.parametrize("damage", [[[0, 1.0]], [[1, 0.5], [1, 0.5]], [[1.5, 1.0]], [[49, 1.0]], [[1]], "none"])
def test_quotients_that_are_damaged_are_refused(damage: Any, bent: tuple[Network, Path], tmp_path: Path) -> None:
    def changed(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        header["derivation"]["data"]["series"][0]["below"] = damage

    found = verify(rewritten(parts_of(bent[1]), tmp_path, changed))
    assert not found.verified
    assert "series" in found.why


def test_no_input_is_found_beyond_what_follows_from_quotients(bent: tuple[Network, Path]) -> None:
    """Inputs that carry neurons to the ends of their intervals, where quotients err most, and steps uphill."""
    net, path = bent
    assert net.certificate is not None
    rng, found = np.random.default_rng(5), verify(path).found
    x = rng.choice([-1.0, 1.0], (24, 1, 4)) * rng.choice([1.0, 1.0, 0.97, 0.5], (24, 1, 4))
    worst = 0.0
    for _ in range(6):
        x = np.clip(x, -1, 1).astype(net.dtype)
        errors = _errors(net, x)
        worst = max(worst, float(errors.max()))
        best = x[errors.argsort()[-6:]].astype(np.float64)
        x = np.repeat(best, 4, axis=0) + rng.normal(size=(24, 1, 4)) * 10 ** rng.uniform(-5, -0.5)
    assert 0 < worst <= found <= net.certificate.bound


@pytest.mark.parametrize("change", ["numbers", "powers", "clipped", "keys", "none"])
def test_series_that_are_damaged_are_refused(change: str, tmp_path: Path) -> None:
    def changed(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        one = header["derivation"]["data"]["series"][0]
        one.update({
            "numbers": {"scale": "much"}, "powers": {"coefficients": [[2.5, 1.0]]}, "clipped": {"low": 0.1},
            "keys": {"values": [1.0]}, "none": {"origin": None},
        }[change])  # fmt: skip

    found = report("spline (float32)", tmp_path, changed)
    assert not found.verified
    assert "series" in found.why


@pytest.mark.parametrize("name", NAMES)
def test_no_input_is_found_beyond_what_follows(name: str, tmp_path: Path) -> None:
    """Random inputs, inputs near kinks, and steps uphill from the worst; the error is that of balls, with no
    tolerance."""
    net = network(name)
    assert net.certificate is not None
    assert net.program is not None
    rng, (tokens, features) = np.random.default_rng(3), (net.embed.tokens or 1, net.embed.inputs)
    low, high = (np.broadcast_to(end, (tokens, features)) for end in (net.certificate.on.low, net.certificate.on.high))
    x = rng.uniform(low, high, (24, tokens, features))
    x[:8] = _at_kinks(net, x[:8], low, high)
    worst = 0.0
    for _ in range(4):
        x = np.clip(x, low, high).astype(net.dtype)
        errors = _errors(net, x)
        worst = max(worst, float(errors.max()))
        best = x[errors.argsort()[-6:]].astype(np.float64)
        x = np.repeat(best, 4, axis=0) + (high - low) * rng.normal(size=(24, tokens, features)) * 10 ** rng.uniform(
            -7, -1
        )
    assert 0 < worst <= report(name, tmp_path).found <= net.certificate.bound


def _errors(net: Network, x: np.ndarray) -> np.ndarray:
    """Upper bounds on |net(x) - program(x)|, the largest of all outputs."""
    assert net.program is not None
    rows = np.asarray(net(x if net.token_axis else x[:, 0], evaluation="direct", outside="raise"), np.float64)
    found = []
    with precision(160):
        for row, y in zip(x, rows, strict=True):
            given = np.vectorize(lambda one: arb(float(one)), otypes=[object])(row)
            exact = run(net.program, [given], Balls())[net.program.output].reshape(-1)
            found.append(max(float(abs(arb(float(a)) - b).upper()) for a, b in zip(y.reshape(-1), exact, strict=True)))
    return np.array(found)


def _at_kinks(net: Network, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Inputs moved along one feature to where a query of the first heads meets a crossing."""
    assert net.certificate is not None
    moved = x.copy()
    for step in planned(net.layers, net.output, net.dtype).steps[:1]:
        if not isinstance(step, HeadsPlan):
            continue
        rows = [(b, w, keys) for before, keys in step.groups for w, b in zip(before.weight, before.bias, strict=True)]
        for number, one in enumerate(moved):
            bias, weight, keys = rows[number % len(rows)]
            found = saturated(*keys, net.dtype)
            kink = found is not None and np.isfinite(found.low)
            at = found.low + (number - 4) / np.ptp(keys[0]) if found is not None and kink else 0.0
            place = int(np.abs(weight).argmax())
            flat = one.reshape(-1)
            flat[place] += (at - (weight @ flat + bias)) / weight[place]
    return np.clip(moved, low, high)
