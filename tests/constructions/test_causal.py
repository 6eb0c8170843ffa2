"""Causal functions of sequences: proven from the expression, or refuted with two inputs."""

import numpy as np
import pytest

import anchorhead as ah


def approximate(rows, features=1, within=1e-2, **options):
    return ah.approximate(rows, tokens=len(rows), features=features, on=(0, 1), within=within, causal=True, **options)


def test_a_grid_is_asked_at_the_origin_of_what_is_hidden():
    rows = [["sin(x[0,0])"], ["exp(x[0,0]*x[1,0])"], ["sin(x[0,0]*x[2,0]) + x[1,0]"]]
    network = approximate(rows)
    ah.check(network)
    x = np.random.default_rng(0).random((300, 3, 1))
    a, b, c = x[:, :, 0].T
    exact = np.stack([np.sin(a), np.exp(a * b), np.sin(a * c) + b], axis=1)[:, :, None]
    assert np.abs(network(x) - exact).max() <= network.certificate.bound <= 1e-2
    for token in (0, 1):
        other = x.copy()
        other[:, token + 1 :] = 1 - other[:, token + 1 :]
        assert np.array_equal(network(x)[:, : token + 1], network(other)[:, : token + 1])


def test_a_dependence_that_cancels_is_none():
    rows = [["x[0,0] + x[0,0]*(x[0,0] + x[1,0]) - x[1,0]*x[0,0]"], ["x[1,0]"]]
    network = approximate(rows)
    x = np.random.default_rng(0).random((200, 2, 1))
    assert np.abs(network(x)[:, 0] - (x[:, 0] + x[:, 0] ** 2)).max() <= network.certificate.bound


def test_a_counterexample_names_both_inputs():
    with pytest.raises(ah.AnchorheadError, match="output token 0 depends on input token 1") as caught:
        approximate([["x[0,0]*exp(x[1,0])"], ["x[0,0]"]])
    assert "agree up to token 0" in str(caught.value)
    assert str(caught.value).count("[[") == 2


def test_what_is_neither_proven_nor_refuted_is_refused():
    with pytest.raises(ah.AnchorheadError, match="neither proven"):
        approximate([["sin(x[1,0])**2 + cos(x[1,0])**2"], ["x[0,0]"]])


def test_callables_are_searched_for_a_counterexample():
    network = ah.approximate(lambda x: np.cumsum(x**2, 1), tokens=2, features=1, on=(0, 1), within=1e-2, causal=True)
    assert network.certificate.kind == "measured"
    assert "pairs of inputs" in network.certificate.method
    x = np.random.default_rng(0).random((100, 2, 1))
    assert np.abs(network(x) - np.cumsum(x**2, 1)).max() <= 1e-2
    other = x.copy()
    other[:, 1] = 0
    assert np.array_equal(network(x)[:, 0], network(other)[:, 0])
    with pytest.raises(ah.AnchorheadError, match="agree up to token 0"):
        ah.approximate(lambda x: x[:, ::-1], tokens=2, features=1, on=(0, 1), within=1e-2, causal=True)


@pytest.mark.parametrize("function", ["x*exp(x*y)", lambda x: x])
def test_without_tokens_nothing_is_causal(function):
    with pytest.raises(ah.AnchorheadError, match="without tokens"):
        ah.approximate(function, on={"x": (0, 1), "y": (0, 1)}, within=1e-2, causal=True)
