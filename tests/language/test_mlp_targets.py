"""Feed-forward targets: what multiplying maps out costs, and what activations are."""

from __future__ import annotations

import numpy as np

from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import IDENTITY, Affine, Hidden, Mlp, merged


def test_products_of_maps_that_underflow_are_not_taken_for_zero():
    """1e-200 1e-200 1e200 1e200 is 1, and 0 in float64: no bound may hide it."""
    sizes = (1e-200, 1e-200, 1e200, 1e200)
    hidden = [Hidden.of(np.array([[size]]), np.zeros(1), IDENTITY) for size in sizes]
    _, readout = merged(Mlp(tuple(hidden), Affine(np.ones((1, 1)), np.zeros(1))))
    assert abs(readout.weight[0, 0] - 1) <= readout.weight_error[0, 0]


def test_values_are_those_of_the_whole_activation():
    mlp = Mlp(
        (Hidden.of(np.ones((1, 1)), np.zeros(1), parse("abs(sigmoid(x) - 1)")),), Affine(np.ones((1, 1)), np.zeros(1))
    )
    assert np.allclose(mlp.values(np.array([[-2.0]])).astype(float), 1 - 1 / (1 + np.exp(2.0)))
