"""Maxout layers become networks of ReLUs that are equal to them, not merely close."""

from fractions import Fraction

import numpy as np
import pytest

from anchorhead import AnchorheadError
from anchorhead.convert.maxout import Maxout


def exactly(mlp, x):
    """The network in rational arithmetic."""
    a = [Fraction(v) for v in x.tolist()]
    for layer in (*mlp.hidden, None):
        affine = mlp.readout if layer is None else layer.affine
        rows = zip(affine.weight.tolist(), affine.bias.tolist(), strict=True)
        a = [sum((Fraction(w) * v for w, v in zip(row, a, strict=True) if w), Fraction(b)) for row, b in rows]
        if layer is not None and not layer.linear:
            assert layer.activations[0].op == "relu"
            a = [max(v, Fraction(0)) for v in a]
    return a


def maxout_exactly(maxout, x):
    return [
        max(
            sum((Fraction(w) * Fraction(v) for w, v in zip(row, x.tolist(), strict=True)), Fraction(t))
            for row, t in zip(rows, offsets, strict=True)
        )
        for rows, offsets in zip(maxout.weight.tolist(), maxout.bias.tolist(), strict=True)
    ]


@pytest.mark.parametrize("pieces", [1, 2, 3, 4, 5, 7, 8, 9])
def test_the_network_is_the_maxout_in_exact_arithmetic(pieces):
    rng = np.random.default_rng(pieces)
    maxout = Maxout(
        rng.normal(size=(3, pieces, 2)) * 10.0 ** rng.integers(-8, 8, (3, pieces, 1)), rng.normal(size=(3, pieces))
    )
    mlp = maxout.mlp()
    for x in rng.normal(size=(20, 2)) * 10.0 ** rng.integers(-5, 5, (20, 1)):
        assert exactly(mlp, x) == maxout_exactly(maxout, x)


@pytest.mark.parametrize("pieces", [2, 3, 4, 5, 8, 9])
def test_the_tournament_has_as_few_layers_as_rounds_and_weights_of_one(pieces):
    mlp = Maxout(np.ones((2, pieces, 3)), np.ones((2, pieces))).mlp()
    first, *rounds = mlp.hidden
    assert first.linear
    assert len(rounds) == int(np.ceil(np.log2(pieces)))
    for affine in (*(layer.affine for layer in rounds), mlp.readout):
        assert set(np.unique(affine.weight)) <= {-1.0, 0.0, 1.0}
        assert not affine.bias.any()


def test_values_of_both_agree_and_tokens_are_passed_on():
    rng = np.random.default_rng(0)
    maxout = Maxout(rng.normal(size=(4, 5, 6)), rng.normal(size=(4, 5)))
    x = rng.normal(size=(50, 6))
    assert np.abs(maxout.mlp().values(x) - maxout.values(x)).max() <= 1e-15
    assert maxout.mlp(tokens=2).values(x.reshape(50, 2, 3)).shape == (50, 2, 2)


@pytest.mark.parametrize(
    ("weight", "bias", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 3)), r"weight .*\(2, 3\)"),
        (np.ones((2, 3, 1)), np.ones(2), r"bias .*\(2,\)"),
        (np.ones((2, 3, 1)), np.ones((3, 2)), "needed are"),
        (np.full((1, 1, 1), np.nan), np.ones((1, 1)), r"nan at \(0, 0, 0\)"),
        (np.ones((0, 3, 1)), np.ones((0, 3)), "weight"),
        ("abc", np.ones((1, 1)), "numbers"),
    ],
)
def test_bad_weights_are_refused(weight, bias, message):
    with pytest.raises(AnchorheadError, match=message):
        Maxout(weight, bias)


def test_a_tournament_that_would_not_fit_is_refused():
    with pytest.raises(AnchorheadError, match="one by one"):
        Maxout(np.ones((100, 100, 1)), np.ones((100, 100))).mlp()
