"""The paper's rates, on the weights that its proofs construct."""

from __future__ import annotations

import numpy as np
import pytest

from anchorhead.errors import AnchorheadError
from anchorhead.lab import fitted_rate, multi_head_sweep, single_head_sweep
from anchorhead.lab.sweeps import ON, sample_functions

ANCHORS = [8, 16, 32, 64, 128, 256, 512]
HEADS = [1, 2, 4, 8, 16, 32]
TOKENS = [8, 16, 32, 64]
DTYPES = ["float64", "float32"]


def assert_bounds_hold(sweep):
    for row in sweep.rows:
        assert 0 < row.measured <= row.proven, row


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_a_single_head_errs_as_one_over_the_anchors(dtype):
    sweep = single_head_sweep(ANCHORS, dtype=dtype)
    assert_bounds_hold(sweep)
    assert fitted_rate(sweep.rows) == pytest.approx(-1, abs=0.03)
    assert [row.intervals for row in sweep.rows] == [p - 1 for p in ANCHORS]
    for row in sweep.rows:
        assert row.theorem == pytest.approx(2 / row.size)
        assert 10 * row.proven <= row.theorem


@pytest.mark.slow
def test_a_single_head_with_as_many_anchors_as_tokens_errs_as_one_over_the_tokens():
    sweep = single_head_sweep(None, TOKENS)
    assert_bounds_hold(sweep)
    assert [(row.tokens, row.size) for row in sweep.rows] == [(n, n) for n in TOKENS]
    assert sweep.rate == pytest.approx(-1, abs=0.03)


@pytest.mark.parametrize("dtype", [pytest.param("float64", marks=pytest.mark.slow), "float32"])
def test_many_heads_err_as_one_over_the_heads(dtype):
    sweep = multi_head_sweep(HEADS, dtype=dtype)
    assert_bounds_hold(sweep)
    assert [row.size for row in sweep.rows] == HEADS
    assert fitted_rate(sweep.rows) == pytest.approx(-1, abs=0.03)
    assert np.ptp([row.c for row in sweep.rows]) < 1e-6


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_heads_err_as_one_over_the_tokens(dtype):
    sweep = multi_head_sweep(2, TOKENS, low=5, high=7, dtype=dtype)
    assert_bounds_hold(sweep)
    assert [row.intervals for row in sweep.rows] == [2 * (n - 2) for n in TOKENS]
    assert fitted_rate(sweep.rows) == pytest.approx(-1, abs=0.03)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("c", [0.2, 6.0])
def test_bounds_hold_far_from_zero_with_a_sharpness_of_ones_own(dtype, c):
    single = single_head_sweep([8, 32, 128], low=5, high=7, dtype=dtype, c=c)
    several = multi_head_sweep([1, 3, 8], low=5, high=7, dtype=dtype, c=c)
    for sweep in (single, several):
        assert_bounds_hold(sweep)
        assert [row.c for row in sweep.rows] == pytest.approx([c] * 3, rel=1e-6)


def test_heads_and_tokens_can_vary_together():
    done = []
    sweep = multi_head_sweep([1, 2], [4, 6], progress=lambda status: done.append(status.share))
    assert [(row.heads, row.tokens, row.intervals) for row in sweep.rows] == [
        (1, 4, 2),
        (2, 4, 4),
        (1, 6, 4),
        (2, 6, 8),
    ]
    assert done == [0.25, 0.5, 0.75, 1.0]
    assert sweep.rate == pytest.approx(-1, abs=0.03)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (5.0, 7.0), (-1000.0, 1000.0)])
def test_sample_functions_reach_beyond_both_ends_of_the_range(low, high):
    w, t = sample_functions(50, 3, low, high, seed=1)
    far = ON * np.abs(w).sum(axis=1)
    assert (t - far < low).all()
    assert (t + far > high).all()


def test_one_size_has_no_rate():
    sweep = single_head_sweep([8])
    assert sweep.rate is None
    with pytest.raises(AnchorheadError, match="at least two sizes"):
        fitted_rate(sweep.rows)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: single_head_sweep([8], [4, 8]), "one number of tokens"),
        (lambda: single_head_sweep([]), "at least one"),
        (lambda: single_head_sweep([1]), "anchors=1 "),
        (lambda: single_head_sweep([8], features=0), "at least 1 of each"),
        (lambda: multi_head_sweep([2], 2), "at least 3"),
        (lambda: multi_head_sweep([0]), "heads=0"),
        (lambda: multi_head_sweep([2], low=1, high=0), "low must be below high"),
    ],
)
def test_sizes_that_make_no_network_are_refused(run, message):
    with pytest.raises(AnchorheadError, match=message):
        run()
