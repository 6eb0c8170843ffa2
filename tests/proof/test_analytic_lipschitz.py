"""Size and Lipschitz constant of heads, and proofs for callables with a Lipschitz constant."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.proof.enclosures.analytic import lipschitz_bound, size_bound
from anchorhead.proof.enclosures.lipschitz import prove_sup_lipschitz

from .analytic_cases import Case, candidates, exact, gelu8, mirrored, random_part, relu_part, softmax, stored

HEADS = {
    "relu, A = 1e3": Case([relu_part(1e3, 1e-2)], [], -1.0, 1.0),
    "relu, A = 1e12": Case([relu_part(1e12, 1e-6)], [], -1.0, 1.0),
    "abs": Case([relu_part(1e9, 1e-5), mirrored(relu_part(1e9, 1e-5))], [], -1.0, 0.5, bias=3.0),
    "gelu": Case([gelu8()], [], -10.0, 10.0),
    "steep, off centre": Case([random_part(5, 8, 1e4, -1, 1)], [], 6.0, 8.0, origin=7.0),
    "constant": Case([softmax([-1, 1], [0, 0], [3, 3])], [], -1.0, 1.0, bias=-1.0),
}


@pytest.mark.parametrize("name", HEADS)
def test_no_value_is_larger_than_the_size_of_a_part_which_is_hardly_more(name: str) -> None:
    case = HEADS[name]
    for part in case.parts:
        bound, head = size_bound(*stored(part), case.low, case.high), exact([part], 0.0, 0.0)
        with ctx.workprec(400):
            largest = max(abs(head(x)).lower() for x in candidates(case, arb(case.low), arb(case.high)))
        assert largest <= bound <= 1.011 * largest


@pytest.mark.parametrize("name", HEADS)
def test_no_two_values_are_farther_apart_than_the_lipschitz_constant_allows(name: str) -> None:
    case = HEADS[name]
    constant = lipschitz_bound(stored(*case.parts), case.low, case.high, case.origin)
    head = exact(case.parts, case.origin, case.bias)
    steepest = 0.0
    with ctx.workprec(500):
        step = arb(2) ** -150
        for x in candidates(case, arb(case.low), arb(case.high)):
            if x + step <= case.high:
                rate = abs(head(x + step) - head(x)) / step
                assert rate.lower() <= constant
                steepest = max(steepest, float(rate))
    assert constant <= 1.05 * steepest + 1e-12


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.1, 100))
def test_sizes_and_constants_of_random_heads_hold(seed: int, anchors: int, steepness: float) -> None:
    parts = [random_part(seed, anchors, steepness), random_part(seed + 1, 3, 1.0)]
    sizes = sum(size_bound(part, -1.25, 0.75) for part in stored(*parts))
    constant = lipschitz_bound(stored(*parts), -1.0, 1.0, 0.25)
    head = exact(parts, 0.25, 0.5)
    points = np.sort(np.random.default_rng(seed).uniform(-1, 1, 40))
    with ctx.workprec(200):
        found = [head(arb(x)) for x in points.tolist()]
        for k, ball in enumerate(found):
            assert abs(ball - 0.5).lower() <= sizes
            if k:
                gap = abs(ball - found[k - 1]) / (arb(points[k]) - arb(points[k - 1]))
                assert gap.lower() <= constant


def test_every_output_counts() -> None:
    part = softmax([-1, 1], [0, 0], [[-1, 5], [1, 5]])
    assert size_bound(*stored(part), -1.0, 1.0) == pytest.approx(5.0, rel=0.01)
    assert lipschitz_bound(stored(part), -1.0, 1.0) == pytest.approx(1.0, rel=0.02)


def ripple(s: np.ndarray) -> np.ndarray:
    """Not analytic anywhere near the head's own shape: a triangle wave with slope 1."""
    return np.abs((s + 0.1) % 0.4 - 0.2)


def test_a_callable_with_a_lipschitz_constant_is_proven() -> None:
    part = softmax([-1, 1], [0, 0], [-0.5, 0.5])
    proof = prove_sup_lipschitz(stored(part), 0.0, 0.0, ripple, 1.0, -2.0, 2.0, f_error=1e-15, rtol=0.05)
    s = np.linspace(-2, 2, 400_001)
    largest = np.abs(ripple(s) - 0.5 * np.tanh(s)).max()
    assert largest <= proof.bound <= 1.05 * largest
    assert proof.found <= largest * (1 + 1e-9)


def test_a_kink_that_the_grid_misses_is_within_the_bound() -> None:
    """A tent of slope 1 and height 1e-4 at an odd place, where the head is flat."""
    place = 1 / math.pi

    def tent(s: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1e-4 - np.abs(s - place))

    flat = softmax([-1, 1], [0, 0], [0, 0])
    proof = prove_sup_lipschitz(stored(flat), 0.0, 0.0, tent, 1.0, -1.0, 1.0, f_error=1e-15, evaluations=40_000)
    assert proof.bound >= 1e-4


def test_the_cap_on_evaluations_is_kept_and_the_bound_holds() -> None:
    count = 0

    def counted(s: np.ndarray) -> np.ndarray:
        nonlocal count
        count += len(s)
        return np.tanh(s)

    part = softmax([-1, 1], [0, 0], [-1, 1])
    proof = prove_sup_lipschitz(stored(part), 0.0, 0.0, counted, 1.0, -1.0, 1.0, f_error=1e-15, evaluations=2_000)
    assert count <= 2_000
    assert 0 < proof.bound < 0.01


def test_the_error_of_the_evaluation_is_added() -> None:
    part = softmax([-1, 1], [0, 0], [0, 0])
    options = {"lipschitz": 0.0, "low": -1.0, "high": 1.0}
    exactly = prove_sup_lipschitz(stored(part), 0.0, 0.0, np.ones_like, **options)
    roughly = prove_sup_lipschitz(stored(part), 0.0, 0.0, np.ones_like, **options, f_error=0.25)
    assert exactly.bound == pytest.approx(1.0)
    assert roughly.bound == pytest.approx(1.25)
    assert roughly.found == pytest.approx(0.75)


def test_several_outputs_and_single_points() -> None:
    part = softmax([-1, 1], [0, 0], [[-1, 1], [1, 1]])

    def both(s: np.ndarray) -> np.ndarray:
        return np.stack([np.tanh(s), 0 * s], axis=1)

    proof = prove_sup_lipschitz(stored(part), 0.0, np.zeros(2), both, 1.0, -1.0, 1.0)
    assert 1.0 <= proof.bound <= 1.1
    point = prove_sup_lipschitz(stored(part), 0.0, np.zeros(2), both, 1.0, 0.5, 0.5)
    assert point.bound == pytest.approx(1.0)
