"""A function, a domain and an error in; a network that keeps to it out."""

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.language.expressions.parser import parse

BOXES = {"x": (-1.0, 1.0), "y": (0.0, 2.0), "z": (-3.0, 3.0)}


def inputs(on, count=2000, seed=0):
    low, high = np.array(list(on.values())).T
    rng = np.random.default_rng(seed)
    corners = np.where(rng.random((count, len(low))) < 0.5, low, high)
    return np.concatenate([rng.uniform(low, high, (count, len(low))), corners])


def exact(texts, names, x):
    columns = {name: x[:, i] for i, name in enumerate(names)}
    return np.stack([parse(text, tuple(names)).values(columns) * np.ones(len(x)) for text in texts], axis=1)


@pytest.mark.slow_for("x*z-float32", "abs(x - y)*2 + cos(x + y) - z-float32", "x*z-float64")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "texts", [["x*y + sin(z)"], ["x*z", "max(x, z) + y"], ["abs(x - y)*2 + cos(x + y) - z"]], ids=lambda t: t[0]
)
def test_the_error_stays_within_its_bound(texts, dtype):
    net = ah.approximate(texts, on=BOXES, within=1e-3, dtype=dtype)
    x = inputs(BOXES).astype(dtype)
    error = np.abs(net(x).astype(float) - exact(texts, list(BOXES), x.astype(float)))
    assert net.certificate is not None
    assert error.max() <= net.certificate.bound <= 1e-3
    assert net.certificate.kind == "proven"
    ah.check(net)


@pytest.mark.parametrize("layout", ["transformer", "sequence"])
@pytest.mark.parametrize("form", ["two-layer", "attention-softmax", "deep"])
def test_every_form_and_layout_does(form, layout):
    net = ah.approximate("abs(x + y) - 0.5*z", on=BOXES, within=1e-4, form=form, layout=layout)
    x = inputs(BOXES)
    error = np.abs(net(x) - exact(["abs(x + y) - 0.5*z"], list(BOXES), x))
    assert error.max() <= net.certificate.bound <= 1e-4


def test_what_a_grid_does_not_reach_layers_do():
    on = dict.fromkeys("xyz", (-1, 1))
    net = ah.approximate("1/(1 + x**2 + y**2 + z**2)", on=on, within=1e-6)
    x = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    assert np.abs(net(x)[:, 0] - 1 / (1 + (x**2).sum(axis=1))).max() <= net.certificate.bound <= 1e-6
    assert net.parameters < 1_000
    assert ah.approximate("sin(x*y)", on={"x": (0, 1), "y": (0, 1)}, within=1e-4, layout="sequence").embed.tokens == 1


def test_one_variable_is_one_head_without_a_token_axis():
    net = ah.approximate("relu", on={"x": (-1, 1)}, within=1e-6)
    x = np.linspace(-1, 1, 1001)[:, None]
    assert net(x).shape == (1001, 1)
    assert np.abs(net(x) - np.maximum(x, 0)).max() <= net.certificate.bound <= 1e-6
    assert [type(layer).__name__ for layer in net.layers] == ["Embed", "Attention"]


def test_expressions_for_every_token_of_a_sequence():
    rows = [["x[0,0]*x[1,0]"], ["max(x[0,0], x[1,1])"]]
    net = ah.approximate(rows, tokens=2, features=2, on=(0, 1), within=1e-3)
    x = np.random.default_rng(0).random((500, 2, 2))
    y = net(x)
    assert y.shape == (500, 2, 1)
    assert np.abs(y[:, 0, 0] - x[:, 0, 0] * x[:, 1, 0]).max() <= net.certificate.bound <= 1e-3
    assert np.abs(y[:, 1, 0] - np.maximum(x[:, 0, 0], x[:, 1, 1])).max() <= net.certificate.bound


@pytest.mark.parametrize("text", ["max(x, y, x*y)", "x*y*z*v*w", "x*0 + y", "e*x + pi*y", "3"])
def test_switches_of_anything_and_products_of_many_and_constants_are_proven(text):
    on = {name: (-1.0, 1.0) for name in "xyzvw" if name in text.replace("max", "")} or {
        "x": (-1.0, 1.0),
        "y": (0.0, 1.0),
    }
    net = ah.approximate(text, on=on, within=1e-3)
    x = inputs(on)
    assert np.abs(net(x) - exact([text], list(on), x)).max() <= net.certificate.bound <= 1e-3
    ah.check(net)


def test_what_is_no_sum_of_ridges_goes_to_a_grid():
    text, on = "sin(3*x)*cos(2*y) + exp(x*y)", {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
    net = ah.approximate(text, on=on, within=1e-6)
    x = inputs(on)
    assert np.abs(net(x) - exact([text], ["x", "y"], x)).max() <= net.certificate.bound <= 1e-6
    assert net.embed.registers is not None
    assert len(net.embed.registers) <= 600
    measured = ah.approximate(text, on=on, within=1e-4, prove=False)
    assert measured.certificate.kind == "measured"


def test_callables_are_measured_with_the_worst_place_found():
    net = ah.approximate(lambda x: np.sin(x[:, :1] * x[:, 1:]), on={"x": (-1, 1), "y": (-1, 1)}, within=1e-4)
    assert net.certificate.kind == "measured"
    assert net.certificate.bound <= 1e-4
    assert "evaluations" in net.certificate.method
    x = inputs({"x": (-1, 1), "y": (-1, 1)}, seed=3)
    assert np.abs(net(x)[:, 0] - np.sin(x[:, 0] * x[:, 1])).max() <= 1e-4
    sums = ah.approximate(lambda x: torch.cumsum(torch.exp(-x), 1), tokens=4, features=1, on=(0, 1), within=1e-2)
    x = np.random.default_rng(0).random((200, 4, 1))
    assert np.abs(sums(x) - np.cumsum(np.exp(-x), axis=1)).max() <= 1e-2


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (lambda x: x[:, 0, 0], {"tokens": 2, "features": 1, "on": (0, 1)}, r"\(batch, 2, outputs\) is needed"),
        (lambda x: x[:, :1] / 0.0 * 0.0, {"on": {"x": (0, 1), "y": (0, 1)}}, "must be finite"),
        (lambda x: x.nothing, {"on": {"x": (0, 1), "y": (0, 1)}}, "AttributeError"),
        (lambda x: x.sum(1, keepdims=True), {"on": dict.fromkeys("abcdf", (0, 1)), "lipschitz": 3}, "at most 4 inputs"),
        (lambda x: x, {"on": {"x": (0, 1), "y": (0, 1)}, "form": "deep", "lipschitz": 2}, "leave out one or the other"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_callables_that_will_not_do_are_refused_with_the_reason(function, options, message):
    with pytest.raises(ah.AnchorheadError, match=message):
        ah.approximate(function, within=1e-2, **options)


def test_causal_targets_are_told_from_others():
    causal = [["x[0,0]"], ["max(x[0,0], x[1,0])"]]
    net = ah.approximate(causal, tokens=2, features=1, on=(0, 1), within=1e-3, causal=True)
    x = np.random.default_rng(0).random((50, 2, 1))
    other = x.copy()
    other[:, 1] = 1 - other[:, 1]
    assert np.array_equal(net(x)[:, 0], net(other)[:, 0])
    with pytest.raises(ah.AnchorheadError, match="output token 0 depends on input token 1"):
        ah.approximate([["x[1,0]"], ["x[0,0]"]], tokens=2, features=1, on=(0, 1), within=1e-3, causal=True)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        ("x*y", {"on": {"x": (0, 1)}}, "y is not known here.*on= has no interval for y"),
        ("x", {"on": {"x": (0, 1), "y": (0, 1)}}, "interval for y"),
        ("x + 1/y", {"on": {"x": (0, 1), "y": (-1, 1)}}, "not defined"),
        ("x + y", {"on": {"x": (0, 1), "y": (1, 1)}}, "single point"),
        ("x*y", {"on": (0, 1)}, "give each its own"),
        ("x + y", {"on": {"x": (0, 1), "y": (0, 1)}, "form": "three-layer"}, "form='three-layer'"),
        ([["x[0,0]"]], {"on": (0, 1), "tokens": 2, "features": 1}, "a list for each token"),
        ([["x[0,0]"]], {"on": (0, 1), "tokens": 1}, "give both"),
        ("where(x < y, x, x*y)", {"on": {"x": (-1, 1), "y": (-1, 1)}}, "not continuous: it jumps from"),
        ("where(x < y, x*z, v*w)", {"on": dict.fromkeys("xyzvw", (0, 1))}, "at most 4 variables"),
        ("sin(x*y)", {"on": {"x": (0, 1), "y": (0, 1)}, "form": "two-layer"}, "form='two-layer'"),
        ("where(x < y, x*x, x*y)", {"on": {"x": (0, 1), "y": (0, 1)}, "layout": "sequence"}, "layout='sequence'"),
        ("sin(x*y)", {"on": {"x": (0, 1), "y": (0, 1)}, "placement": "random"}, "placement='random'"),
        ("sin(x*y)", {"on": {"x": (0, 1), "y": (0, 1)}, "lipschitz": 1}, "for callables"),
        ("sin(x*y)", {"on": {"x": (0, 1), "y": (0, 1)}, "within": 0}, "within=0"),
        ("1/(x*y) + z", {"on": dict.fromkeys("xyz", (-1, 1))}, "not defined at x = "),
        ("sin(40*x*y*z*w) + v", {"on": dict.fromkeys("xyzwv", (-2, 2))}, "is out of reach"),
        ("abs(x) + y", {"on": {"x": (0, 1), "y": (0, 1)}, "dtype": "float32", "within": 1e-12}, "less than float32"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(function, options, message):
    with pytest.raises(ah.AnchorheadError, match=message):
        ah.approximate(function, **{"within": 1e-3, **options})
