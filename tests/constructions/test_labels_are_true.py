"""What features and heads are called says what they hold and compute."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.network import Attention, Network

NEURON = re.compile(r"\(?neuron (\d+)(?: ([+-]) ([\d.e-]+)\))?(?: / ([\d.e-]+))?")


def network_of(weights: list[list[list[float]]], biases: list[list[float]], phi: torch.nn.Module) -> torch.nn.Module:
    layers: list[torch.nn.Module] = []
    for weight, bias in zip(weights, biases, strict=True):
        linear = torch.nn.Linear(len(weight[0]), len(weight)).double()
        linear.weight.data, linear.bias.data = torch.tensor(weight).double(), torch.tensor(bias).double()
        layers += [linear, phi]
    return torch.nn.Sequential(*layers[:-1])


def after(net: ah.Network, layer: int, x: np.ndarray) -> np.ndarray:
    """The features of the first token after a layer."""
    return np.asarray(Network(net.layers[: layer + 1], token_axis=net.token_axis)(x))


@pytest.mark.parametrize("phi", [torch.nn.ReLU(), torch.nn.SiLU()])
def test_a_feature_holds_what_its_name_says(phi: torch.nn.Module) -> None:
    weights = [[[20.0, -10.0], [3.0, 1.0], [0.01, 0.02]], [[1.0, -2.0, 3.0], [0.5, 0.25, 4.0]], [[1.0, 1.0]]]
    model = network_of(weights, [[1.0, -2.0, 0.005], [0.1, 0.2], [0.0]], phi)
    net = ah.convert(model, on=(0, 3), within=1e-5)
    x = np.random.default_rng(0).uniform(0, 3, (50, 2))
    exact = model[:2](torch.from_numpy(x)).detach().numpy()
    embedded, read = after(net, 0, x), after(net, 1, x)
    names = net.layers[0].features
    assert [name for name in names if name.startswith("x ")] == ["x 0 - 1.5", "x 1 - 1.5"]
    np.testing.assert_allclose(embedded[:, :2], x - 1.5, atol=1e-12)
    found = [NEURON.fullmatch(name) for name in net.layers[1].features[:3]]
    for match, feature in zip(found, read.T, strict=False):
        assert match is not None
        number, sign, shift, scale = match.groups()
        units = float(shift or 0) * (-1 if sign == "+" else 1), float(scale or 1)
        np.testing.assert_allclose(feature * units[1] + units[0], exact[:, int(number)], atol=1e-3)


def test_a_head_s_label_is_the_neuron_of_the_target_whatever_the_box() -> None:
    model = network_of([[[2.0, -1.0], [0.5, 0.0]], [[1.0, 1.0]]], [[0.5, 0.0], [0.0]], torch.nn.ReLU())
    for on in ((0, 1), (-1, 1), (3, 9)):
        heads = [layer for layer in ah.convert(model, on=on, within=1e-6).layers if isinstance(layer, Attention)]
        labels = [label.partition(", divided")[0] for label in heads[-1].labels or ()]
        assert labels == ["relu(s) at s = 2 (x 0) - (x 1) + 0.5", "relu(s) at s = 0.5 (x 0)"]


@pytest.mark.slow
def test_an_expression_s_variables_name_features_and_heads() -> None:
    net = ah.approximate("one*s + sin(3*s)", on={"one": (0, 1), "s": (-1, 1)}, within=1e-4)
    assert net.layers[0].features is not None
    assert net.layers[0].features[:3] == ("variable one", "s", "one")
    heads = [layer for layer in net.layers if isinstance(layer, Attention)][-1]
    assert [label.partition(", ")[0] for label in heads.labels or ()] == [
        "square(t) at t = (variable one) + s",
        "square(t) at t = (variable one) - s",
        "sin(3*t) at t = s",
    ]
    ah.check(net)


def test_the_axes_of_a_grid_are_called_by_their_variables() -> None:
    net = ah.approximate("exp(a*b)", on={"a": (0, 1), "b": (-1, 1)}, within=1e-2)
    assert net.layers[0].features is not None
    assert net.layers[0].features[:5] == ("a - 0.5", "b", "one", "slope along a", "offset along a")
    x = np.array([[0.25, 0.75]])
    np.testing.assert_allclose(after(net, 0, x)[:, :2], [[-0.25, 0.75]])


def test_a_grid_s_axis_called_one_is_told_from_the_feature_that_is_1() -> None:
    net = ah.approximate("exp(one*b)", on={"one": (-1, 1), "b": (-1, 1)}, within=1e-2)
    assert net.layers[0].features is not None
    assert net.layers[0].features[:3] == ("variable one", "b", "one")


def test_anchors_are_named_by_their_shape_since_heads_share_them() -> None:
    net = ah.approximate("x*y + sin(z)", on={"x": (-1, 1), "y": (0, 2), "z": (-3, 3)}, within=1e-4)
    heads = net.layers[3]
    assert isinstance(heads, Attention)
    assert heads.labels is not None
    names = net.layers[2].features or ()
    for head, label in enumerate(heads.labels):
        (slope,) = np.flatnonzero(heads.key[head % len(heads.key), 0])
        kind = label.partition(" at ")[0]
        assert names[slope] == f"slope of shape {0 if kind == 'square(s)' else 1}, {kind}"


def test_a_fitted_callable_s_inputs_keep_their_names() -> None:
    box = dict.fromkeys(("aa", "bb", "cc", "dd", "ee"), (-1.0, 1.0))
    net = ah.approximate(lambda x: x[:, 0] - 2 * x[:, 4], on=box, within=0.1)
    assert (net.layers[0].features or ())[:5] == tuple(box)


@pytest.mark.parametrize("form", ["two-layer", "deep", "attention-softmax"])
@pytest.mark.parametrize("tokens", [None, 2])
@pytest.mark.parametrize("name", ["is an input", "at position 0", "not at position 1", "slope of shape 0, x", "one"])
def test_an_input_may_be_called_like_a_feature_of_the_layout(name: str, tokens: int | None, form: str) -> None:
    neurons = Hidden.of(np.array([[1.0, 2.0], [-1.0, 0.5]]), np.zeros(2), parse("relu(x)"))
    target = Mlp((neurons,), Affine(np.eye(2), np.zeros(2)), tokens, variables=(name, "b"))
    assert ah.convert(target, on=(-1, 1), within=1e-2, form=form).certificate  # type: ignore[arg-type]
