"""The evaluation "direct": the plan is the one that runs, series err by no more than is derived, bounds hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb

import anchorhead.verify.direct.series as series
import anchorhead.verify.direct.walk as walk
import anchorhead.verify.verifier as verifier
from anchorhead.language.interpret import run
from anchorhead.language.numbers import Balls
from anchorhead.network import Network
from anchorhead.network.direct.lower import _Lowering
from anchorhead.network.direct.plans import AffinePlan, HeadsPlan, SoftmaxesPlan, joined
from anchorhead.network.direct.saturated import saturated
from anchorhead.verify.balls import precision
from anchorhead.verify.direct.held import Map
from anchorhead.verify.direct.plan import Heads, Plan, Softmaxes, plan_of
from anchorhead.verify.files import read_file
from anchorhead.verify.grammar import read_network
from anchorhead.verify.rounding import arithmetic_of
from anchorhead.verify.walk import unrolled
from tests.networks import names, network, quick, row_of

from . import heads_directly
from .files import report, written

DIRECT = (
    "attention-softmax, one token",
    "deep, one token",
    "neurons, smooth",
    "neurons, uniform",
    "spline",
    "expressions",
)
"""Rows of the table whose certificates name the evaluation."""
NAMES = [name for name in names() if row_of(name).name in DIRECT]


@pytest.mark.slow
def test_no_other_row_names_it() -> None:
    known = {name: network(name).certificate for name in names("proven")}
    stated = {name for name, one in known.items() if one is not None and "direct" in one.evaluations}
    assert stated == {*NAMES}


@pytest.mark.parametrize("name", quick(NAMES))
def test_the_plan_is_the_one_that_runs(name: str, tmp_path: Path) -> None:
    stored = read_network(read_file(written(name, tmp_path)))
    same_plan(plan_of(stored, unrolled(stored.layers)), network(name))


def same_plan(plan: Plan, net: Network) -> None:
    """Same steps, from the same numbers; constants that are sums may differ in the order of the sum."""
    lowering = _Lowering(net.embed, tuple(net.layers[1:]), net.output)
    output = lowering.run()
    assert np.array_equal(output.place, plan.output.place)
    assert np.array_equal(output.factor, plan.output.factor)
    for ours, theirs in zip(plan.steps, joined(lowering.steps), strict=True):
        match ours, theirs:
            case Map(), AffinePlan():
                same_map(ours, theirs)
            case Heads(), HeadsPlan():
                assert ours.folds == theirs.folds
                for (before, keys, column), (lowered, head) in zip(ours.groups, theirs.groups, strict=True):
                    same_map(before, lowered)
                    live = keys.live
                    mine = keys.slopes[live], keys.offsets[live], keys.values[live, column]
                    assert all(np.array_equal(a, b) for a, b in zip(mine, head, strict=True))
                    same_series(mine, net.dtype)
            case Softmaxes(), SoftmaxesPlan():
                assert np.array_equal(ours.bias, theirs.bias)
                for (before, *mine), (lowered, head) in zip(ours.groups, theirs.groups, strict=True):
                    same_map(before, lowered)
                    assert all(np.array_equal(a, b) for a, b in zip(mine, head, strict=True))
            case _:
                pytest.fail(f"{type(ours).__name__} and {type(theirs).__name__}")


def same_map(ours: Map, theirs: AffinePlan) -> None:
    assert np.array_equal(ours.weight, theirs.weight)
    assert (np.abs(ours.bias - theirs.bias) <= ours.wrong).all()


def same_series(keys: heads_directly.Keys, dtype: str) -> None:
    """Both have one, or neither; numbers agree as far as they are rounded."""
    ours, theirs = series.series_of(*keys, arithmetic_of(dtype)), saturated(*keys, dtype)
    assert (ours is None) == (theirs is None)
    if ours is None or theirs is None:
        return
    unit = arithmetic_of(dtype).unit
    assert ours.origin == theirs.origin
    assert (ours.scale, ours.shift) == (theirs.scale, theirs.shift)
    assert ours.kept == tuple(power for power, _ in theirs.coefficients)
    for mine, other, end in ((ours.left, theirs.left, theirs.low), (ours.right, theirs.right, theirs.high)):
        assert (mine is None) == (other is None)
        if mine is not None and other is not None:
            assert abs(float(mine.at) - other.at) <= 2 * unit * abs(other.at)
            assert abs(float(mine.slope) - other.slope) <= 2 * unit * abs(other.slope)
            assert float(mine.width) == pytest.approx(other.width, rel=1e-15)
            assert mine.end.contains(arb(end))


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


@pytest.mark.parametrize("name", heads_directly.HEADS)
def test_series_err_by_no_more_than_is_derived(name: str) -> None:
    assert heads_directly.library_holds(name)
    assert 0.1 < heads_directly.worst_share(name) <= 1


@pytest.mark.parametrize("name", quick(NAMES))
def test_no_input_is_found_beyond_the_bound(name: str) -> None:
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
    assert 0 < worst <= net.certificate.bound


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
    lowering = _Lowering(net.embed, tuple(net.layers[1:]), net.output)
    lowering.run()
    moved = x.copy()
    steps = joined(lowering.steps)
    for step in steps[:1]:
        if not isinstance(step, HeadsPlan):
            continue
        rows = [(b, w, keys) for before, keys in step.groups for w, b in zip(before.weight, before.bias, strict=True)]
        for number, one in enumerate(moved):
            bias, weight, keys = rows[number % len(rows)]
            found = saturated(*keys, net.dtype)
            at = 0.0 if found is None or found.left is None else found.left.at + found.left.width * (number - 4) / 4
            place = int(np.abs(weight).argmax())
            flat = one.reshape(-1)
            flat[place] += (at - (weight @ flat + bias)) / weight[place]
    return np.clip(moved, low, high)


def test_a_bound_that_holds_for_plain_alone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "walk_directly", lambda *a: replace_constant(walk.walk_directly(*a)))
    found = report(SPLINE, tmp_path)
    assert not found.verified
    assert "'direct'" in found.why


def replace_constant(form: Any) -> Any:
    return type(form)(form.ids, form.coefficients, form.constant + 1.0, *form.arrays[2:])


SPLINE, DEEP = "spline (float32)", "deep, one token (float32)"


@pytest.mark.parametrize(
    ("owner", "name", "make", "which"),
    [
        (series.Series, "error", lambda f: lambda self, *a: 1.0, SPLINE),
        (series.Series, "magnitude", lambda f: lambda self, *a: (0.0, 1e6), DEEP),
        (walk, "_bias_off", lambda f: lambda *a: f(*a) + 1.0, SPLINE),
        (walk, "heard", lambda f: lambda given: [replace(f(given)[0], keys=np.arange(99)) for _ in given], DEEP),
    ],
)
def test_every_error_counts(
    owner: Any, name: str, make: Callable[..., Any], which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Larger errors of series, of what is folded and of constants, keys that are left out and heard: all noticed."""
    monkeypatch.setattr(owner, name, make(getattr(owner, name)))
    found = report(which, tmp_path)
    assert not found.verified
    assert "direct" in found.why


MUTATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "roundings are none": ("_gamma", lambda f: lambda self, n: arb(0)),
    "what is left of the series is nothing": ("_rest", lambda f: lambda self, s: arb(0)),
    "sigmoids are exact": ("_near", lambda f: lambda self, *a: arb(0)),
    "inputs are near the origin": ("_furthest", lambda f: lambda self, *a: f(self, *a) / 4),
}


@pytest.mark.parametrize("what", MUTATIONS)
def test_a_broken_lemma_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, make = MUTATIONS[what]
    monkeypatch.setattr(series.Series, name, make(getattr(series.Series, name)))
    assert max(heads_directly.worst_share(one) for one in ("a line, float32", "a kink, float32")) > 1
