"""The search for the worst place finds it: spikes, kinks, ridges, corners, in few dimensions and in many."""

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.proof.search.callable_search import largest_error


class Function:
    def __init__(self, f, inputs):
        self.f, self.low, self.high, self.points = f, (-1.0,) * inputs, (1.0,) * inputs, []

    def values(self, x):
        self.points.append(x)
        return self.f(x)


def nothing(x):
    return np.zeros((len(x), 1))


@pytest.mark.parametrize("inputs", [2, 3, 6])
@pytest.mark.parametrize(
    ("f", "least"),
    [
        (lambda x, c: 1 - np.abs(x - c).sum(axis=1) / len(c) / 2, 0.995),
        (lambda x, c: (x * np.sign(c)).sum(axis=1) / len(c), 1.0),
        (lambda x, c: np.cos(7 * (x - c)).sum(axis=1) / len(c) - 0.1 * ((x - c) ** 2).sum(axis=1), 0.99),
        (lambda x, c: np.exp(-40 * (x - c) ** 2).sum(axis=1) / len(c), 0.99),
    ],
    ids=["kink", "corner", "waves", "bells"],
)
def test_the_worst_place_is_found(f, least, inputs):
    c = np.random.default_rng(inputs).uniform(-0.9, 0.9, inputs)
    target = Function(lambda x: np.maximum(f(x, c), 0)[:, None], inputs)
    error, at = largest_error(nothing, target)
    assert error >= least
    assert target.f(at[None])[0, 0] == error
    assert all(((x >= -1) & (x <= 1)).all() for x in target.points)


def test_a_narrow_spike_of_two_variables_is_found():
    target = Function(lambda x: np.maximum(0, 1 - 40 * np.abs(x - [0.31, -0.77]).max(axis=1))[:, None], 2)
    assert largest_error(nothing, target)[0] > 0.999


def test_the_same_seed_finds_the_same_and_outputs_are_taken_one_by_one():
    target = Function(lambda x: np.stack([x[:, 0], -3 * x[:, 1] ** 2], axis=1), 2)
    twice = [largest_error(lambda x: np.zeros((len(x), 2)), target, seed=4) for _ in range(2)]
    assert twice[0][0] == twice[1][0] == 3
    assert np.array_equal(twice[0][1], twice[1][1])


def test_a_network_that_gives_no_number_is_infinitely_wrong():
    target = Function(lambda x: x[:, :1], 2)
    assert largest_error(lambda x: np.where(x[:, :1] > 0.9, np.nan, x[:, :1]), target)[0] == np.inf


def test_shapes_that_do_not_agree_are_refused():
    with pytest.raises(ah.AnchorheadError, match="where the function gives"):
        largest_error(lambda x: np.zeros((len(x), 2)), Function(lambda x: x[:, :1], 2))
