"""The evaluation "direct": what runs is what is modelled, and bounds hold for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb

import anchorhead.verify.direct as direct
import anchorhead.verify.series as series
from anchorhead.language.interpret import run
from anchorhead.language.numbers import Balls
from anchorhead.network import Network
from anchorhead.network.direct.lower import _Lowering
from anchorhead.network.direct.plans import HeadsPlan, joined
from anchorhead.network.direct.saturated import saturated
from anchorhead.verify.balls import precision
from anchorhead.verify.rounding import arithmetic_of
from tests.networks import names, network, row_of

from . import heads_directly
from .files import report

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
NAMES = [name for name in names() if row_of(name).name in DIRECT and name != FEW]


@pytest.mark.slow
def test_no_other_row_names_it() -> None:
    known = {name: network(name).certificate for name in names("proven")}
    stated = {name for name, one in known.items() if one is not None and "direct" in one.evaluations}
    assert stated == {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_the_series_that_run_are_those_that_are_counted(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Every head of the library's plan that has a series is one whose error was asked for."""
    counted: set[tuple[bytes, ...]] = set()
    series_of = direct.series_of

    def told(*keys: Any) -> Any:
        counted.add(tuple(one.tobytes() for one in keys[:3]))
        return series_of(*keys)

    monkeypatch.setattr(direct, "series_of", told)
    assert report(name, tmp_path).verified
    net = network(name)
    assert net.certificate is not None
    lowering = _Lowering(net.embed, tuple(net.layers[1:]), net.output, net.dtype, net.certificate.on)
    lowering.run()
    plans = [step for step in joined(lowering.steps) if isinstance(step, HeadsPlan)]
    for keys in (keys for step in plans for _, keys in step.groups):
        same_series(keys, net.dtype)
        assert tuple(one.tobytes() for one in keys) in counted


def same_series(keys: heads_directly.Keys, dtype: str) -> None:
    """Both have one, or neither; numbers agree as far as they are rounded."""
    ours, theirs = series.series_of(*keys, arithmetic_of(dtype)), saturated(*keys, dtype)
    assert (ours is None) == (theirs is None)
    if ours is None or theirs is None:
        return
    assert ours.origin == theirs.origin
    assert (ours.scale, ours.shift) == (theirs.scale, theirs.shift)
    assert ours.kept == tuple(power for power, _ in theirs.coefficients)
    for mine, end in ((ours.left, theirs.low), (ours.right, theirs.high)):
        assert (mine is None) == np.isinf(end)
        assert mine is None or mine.stored.contains(arb(end))


def test_whether_there_is_a_series_is_told_alike() -> None:
    rng, found = np.random.default_rng(5), 0
    for _ in range(150):
        dtype = str(rng.choice(["float32", "float64"]))
        kinks = tuple(np.sort(rng.uniform(-2, 2, rng.integers(0, 3))))
        gentle, steep = 10 ** rng.uniform(-6, 0), 10 ** rng.uniform(2, 13)
        keys = heads_directly.head(dtype, gentle, steep, kinks, rng.uniform(-3, 3))
        same_series(keys, dtype)
        found += series.series_of(*keys, arithmetic_of(dtype)) is not None
    assert 20 < found < 130


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
    lowering = _Lowering(net.embed, tuple(net.layers[1:]), net.output, net.dtype, net.certificate.on)
    lowering.run()
    moved = x.copy()
    steps = joined(lowering.steps)
    for step in steps[:1]:
        if not isinstance(step, HeadsPlan):
            continue
        rows = [(b, w, keys) for before, keys in step.groups for w, b in zip(before.weight, before.bias, strict=True)]
        for number, one in enumerate(moved):
            bias, weight, keys = rows[number % len(rows)]
            found = series.series_of(*keys, arithmetic_of(net.dtype))
            side = None if found is None else found.left
            at = 0.0 if side is None else float(side.at + (number - 4) / side.slope)
            place = int(np.abs(weight).argmax())
            flat = one.reshape(-1)
            flat[place] += (at - (weight @ flat + bias)) / weight[place]
    return np.clip(moved, low, high)
