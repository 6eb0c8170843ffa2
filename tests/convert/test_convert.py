"""ah.convert takes every kind of model, in its own dtype, and says what is missing or wrong."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy.interpolate import CubicSpline, PPoly, make_interp_spline
from torch import nn

import anchorhead as ah
from anchorhead.convert.maxout import Maxout
from anchorhead.language.forms import mlp_of
from anchorhead.language.targets.kernel_smoother import KernelSmoother
from anchorhead.language.targets.mlp import Mlp


def sequential(*sizes, activation=nn.ReLU, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    layers = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1]).to(dtype).eval()


def inputs(network, *shape, seed=0):
    box = network.certificate.on
    return np.random.default_rng(seed).uniform(box.low.min(), box.high.max(), shape)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_networks_in_their_own_dtype(dtype):
    module = sequential(3, 8, 6, 2, dtype=dtype)
    network = ah.convert(module, on=(-1, 1), within=0.01)
    assert network.dtype == network.certificate.dtype == str(dtype).removeprefix("torch.")
    x = inputs(network, 500, 3).astype(network.dtype)
    theirs = module.double()(torch.from_numpy(x.astype(np.float64))).detach().numpy()
    exact = network.program(x)
    assert np.abs(network(x) - exact).max() <= network.certificate.bound
    assert np.abs(exact - theirs).max() <= 1e-13
    assert ah.check(network).stated == network.certificate.bound


def test_another_dtype_can_be_asked_for():
    module = sequential(3, 4, 2, dtype=torch.float32)
    for dtype in ("float64", torch.float64, np.float64):
        assert ah.convert(module, on=(0, 1), within=1e-3, dtype=dtype).dtype == "float64"
    assert ah.convert(sequential(3, 4, 2), on=(0, 1), within=1e-2, dtype="float32").dtype == "float32"


@pytest.mark.parametrize("activation", [nn.GELU, nn.Tanh, nn.SiLU, nn.LeakyReLU, nn.Sigmoid])
def test_activations_of_torch(activation):
    module = sequential(2, 4, 1, activation=activation)
    network = ah.convert(module, on=(-1, 1), within=1e-3)
    x = inputs(network, 300, 2)
    theirs = module(torch.from_numpy(x)).detach().numpy()
    assert np.abs(network(x) - theirs).max() <= network.certificate.bound + 1e-13


def test_safetensors_files(tmp_path):
    module = sequential(3, 5, 2)
    path = tmp_path / "weights.safetensors"
    save_file(module.state_dict(), path)
    same = ah.convert(module, on=(0, 1), within=1e-6)
    for given in (path, str(path)):
        network = ah.convert(given, on=(0, 1), within=1e-6, activation="relu")
        x = inputs(network, 20, 3)
        assert np.array_equal(network(x), same(x))
        assert ah.check(network)
    with pytest.raises(ah.AnchorheadError, match="say activation="):
        ah.convert(path, on=(0, 1), within=1e-6)
    with pytest.raises(ah.AnchorheadError, match="do not follow on each other"):
        ah.convert(path, on=(0, 1), within=1e-6, activation="relu", order=["2", "0"])
    for missing in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises(ah.AnchorheadError, match="is not a file"):
            ah.convert(missing, on=(0, 1), within=1e-6)


def test_polylines_become_networks_on_their_own_interval():
    spline = make_interp_spline(np.linspace(0, 3, 8), np.sin(np.linspace(0, 3, 8)), k=1)
    network = ah.convert(spline, within=1e-6)
    assert network.certificate.on == ah.Box.of((0, 3))
    x = np.concatenate([np.linspace(0, 3, 1001), spline.t])[:, None]
    assert np.abs(network(x)[:, 0] - spline(x[:, 0])).max() <= network.certificate.bound + 1e-14
    assert ah.convert(spline, on=(1, 2), within=1e-6).certificate.on == ah.Box.of((1, 2))


@pytest.mark.slow
def test_smooth_splines_become_heads():
    spline = CubicSpline(np.linspace(0, 3, 4), np.sin(np.linspace(0, 3, 4)))
    network = ah.convert(spline, within=1e-2)
    x = np.linspace(0, 3, 1001)[:, None]
    assert np.abs(network(x)[:, 0] - spline(x[:, 0])).max() <= network.certificate.bound + 1e-14
    assert network.certificate.bound <= 1e-2
    with pytest.raises(ah.AnchorheadError, match="tokens=2: a spline of one variable takes one"):
        ah.convert(spline, within=1e-2, tokens=2)
    with pytest.raises(ah.AnchorheadError, match="one variable"):
        ah.convert(spline, on=([0, 0], [1, 1]), within=1e-2)
    with pytest.raises(ah.AnchorheadError, match="within is missing"):
        ah.convert(spline)


@pytest.mark.slow
def test_maxout_units():
    rng = np.random.default_rng(0)
    maxout = Maxout(rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5)))
    network = ah.convert(maxout, on=(-1, 1), within=1e-6)
    x = inputs(network, 500, 3)
    assert np.abs(network(x) - maxout.values(x)).max() <= network.certificate.bound
    assert ah.check(network)


def test_kernel_smoothers_need_no_error():
    rng = np.random.default_rng(0)
    smoother = KernelSmoother(rng.uniform(-1, 1, (12, 2)), rng.normal(size=(12, 1)), 0.3)
    network = ah.convert(smoother, on=(-1, 1))
    x = inputs(network, 500, 2)
    assert np.abs(network(x) - smoother.values(x)).max() <= network.certificate.bound < 1e-10
    with pytest.raises(ah.AnchorheadError, match=r"form='deep'.*leave it out"):
        ah.convert(smoother, on=(-1, 1), form="deep")


def test_targets_themselves_and_tokens():
    module = sequential(6, 5, 4)
    network = ah.convert(module, on=(0, 1), within=1e-6, tokens=2)
    target = mlp_of(network.program)
    assert target.tokens == 2
    again = ah.convert(target, on=(0, 1), within=1e-6)
    x = inputs(network, 20, 2, 3)
    assert np.array_equal(network(x), again(x))
    assert network(x).shape == (20, 2, 2)
    assert ah.convert(Mlp(target.hidden, target.readout), on=(0, 1), within=1e-6)(x.reshape(20, 6)).shape == (20, 4)


def test_what_a_call_does_outside_the_box():
    module = sequential(3, 4, 2)
    with pytest.raises(ah.AnchorheadError, match="outside"):
        ah.convert(module, on=(0, 1), within=1e-3, outside="raise")(np.full(3, 2.0))
    clipped = ah.convert(module, on=(0, 1), within=1e-3, outside="clip")
    assert np.array_equal(clipped(np.full(3, 2.0)), clipped(np.ones(3)))
    with pytest.warns(ah.OutsideWarning):
        ah.convert(module, on=(0, 1), within=1e-3)(np.full(3, 2.0))


BAD = {
    "no box": ({"on": None}, "on is missing"),
    "no error": ({"within": None}, "within is missing"),
    "error of 0": ({"within": 0}, "above 0"),
    "negative error": ({"within": -1.0}, "above 0"),
    "error that is no number": ({"within": "small"}, "above 0"),
    "infinite error": ({"within": float("inf")}, "above 0"),
    "NaN": ({"within": float("nan")}, "above 0"),
    "a truth": ({"within": True}, "above 0"),
    "infinite box": ({"on": (0, float("inf"))}, "not finite"),
    "box upside down": ({"on": (1, 0)}, "lower end above"),
    "no box at all": ({"on": "all"}, "not a box"),
    "tokens": ({"tokens": 1.5}, "whole number"),
    "tokens True": ({"tokens": True}, "whole number"),
    "activation": ({"activation": "relu"}, "has its own"),
    "dtype": ({"dtype": "float16"}, "float16"),
    "outside": ({"outside": "maybe"}, "outside='maybe'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_what_is_allowed(name):
    options, message = BAD[name]
    with pytest.raises(ah.AnchorheadError, match=message):
        ah.convert(sequential(3, 4, 2), **{"on": (0, 1), "within": 1e-3, **options})


@pytest.mark.parametrize("model", [3, None, "nothing.safetensors", np.ones(3), [nn.Linear(2, 2)], Path("none"), PPoly])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(ah.AnchorheadError):
        ah.convert(model, on=(0, 1), within=1e-3)
