"""Feed-forward targets: what multiplying maps out costs, and what activations are."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

from anchorhead.language.expressions.parser import parse
from anchorhead.language.expressions.precision import precision
from anchorhead.language.merge import merged
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp


def test_products_of_maps_that_underflow_are_not_taken_for_zero():
    """1e-200 1e-200 1e200 1e200 is 1, and 0 in float64: no bound may hide it."""
    sizes = (1e-200, 1e-200, 1e200, 1e200)
    hidden = [Hidden.of(np.array([[size]]), np.zeros(1), IDENTITY) for size in sizes]
    readout = merged(Mlp(tuple(hidden), Affine(np.ones((1, 1)), np.zeros(1)))).readout
    assert abs(readout.weight[0, 0] - 1) <= readout.weight_error[0, 0]


def test_values_are_those_of_the_whole_activation():
    mlp = Mlp(
        (Hidden.of(np.ones((1, 1)), np.zeros(1), parse("abs(sigmoid(x) - 1)")),), Affine(np.ones((1, 1)), np.zeros(1))
    )
    assert np.allclose(mlp.values(np.array([[-2.0]])).astype(float), 1 - 1 / (1 + np.exp(2.0)))


@pytest.mark.parametrize("activation", ["relu(x)", "gelu(x)"])
def test_constant_neurons_are_folded_into_the_map_behind_them(activation: str) -> None:
    """What is left computes the same, up to the errors that its maps state; names say which neurons are left."""
    rng, phi = np.random.default_rng(0), parse(activation)
    weight, bias = rng.normal(size=(5, 3)), rng.normal(size=5)
    weight[[1, 3]] = 0.0
    behind, readout = Affine(rng.normal(size=(4, 5)), rng.normal(size=4)), Affine(rng.normal(size=(2, 4)), np.zeros(2))
    linear = Hidden(behind, (IDENTITY,), np.zeros(4, int))
    simple = merged(Mlp((Hidden.of(weight, bias, phi), linear), readout))
    (layer,), last = simple.hidden, simple.readout
    assert layer.names[:, 2].tolist() == [0, 2, 4]
    assert np.array_equal(layer.affine.weight, weight[[0, 2, 4]])
    with precision(200):
        constants = [phi.ball({"x": arb(float(bias[r]))}) for r in (1, 3)]
        for output, (row, number) in enumerate(zip(readout.weight, last.bias, strict=True)):
            exact = sum((arb(float(w)) * arb(float(b)) for w, b in zip(row, behind.bias, strict=True)), arb(0))
            for k, value in zip((1, 3), constants, strict=True):
                heavy = sum(
                    (arb(float(w)) * arb(float(v)) for w, v in zip(row, behind.weight[:, k], strict=True)), arb(0)
                )
                exact = exact + heavy * value
            assert abs(exact - arb(float(number))) <= last.errors[1][output] < 1e-13


def test_of_a_constant_layer_one_neuron_stays_that_nothing_takes() -> None:
    hidden = Hidden.of(np.zeros((3, 2)), np.array([-1.0, 2.0, 3.0]), parse("relu(x)"))
    simple = merged(Mlp((hidden,), Affine(np.ones((1, 3)), np.zeros(1))))
    (layer,), last = simple.hidden, simple.readout
    assert layer.names[:, 2].tolist() == [0]
    assert last.bias.tolist() == [5.0]
    assert not last.weight.any()
    undefined = Hidden.of(np.array([[0.0], [1.0]]), np.array([-1.0, 2.0]), parse("log(x)"))
    (layer,) = merged(Mlp((undefined,), Affine(np.ones((1, 2)), np.zeros(1)))).hidden
    assert layer.names[:, 2].tolist() == [0, 1]
