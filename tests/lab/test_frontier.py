"""The frontier: rows that only get better, bounds that are those of the heads, polynomials that are the best."""

from __future__ import annotations

import numpy as np
import pytest

from anchorhead.constructions.head import head
from anchorhead.errors import AnchorheadError
from anchorhead.lab import frontier
from anchorhead.lab.frontier import SHOWN
from anchorhead.lab.polynomial import best_polynomial

X = np.unique(np.concatenate([-np.cos(np.pi * np.arange(2001) / 2000), np.linspace(-1, 1, 1001)]))


@pytest.mark.parametrize(
    ("f", "coefficients", "error"),
    [
        (lambda x: x**5, 5, 1 / 16),
        (lambda x: 2 * x**8, 8, 1 / 64),
        (np.abs, 3, 1 / 8),
        (np.abs, 4, 1 / 8),
        (np.sign, 1, 1.0),
        (lambda x: 1 / (x + 1.25), 4, 0.75**-2 * 2.0**-3),
    ],
)
def test_polynomials_have_the_errors_that_chebyshev_found(f, coefficients, error):
    assert best_polynomial(X, f(X), coefficients).error == pytest.approx(error, rel=1e-4)


@pytest.mark.parametrize("f", [np.exp, lambda x: np.exp(-16 * x**2), np.abs, lambda x: np.sin(40 * x), np.cbrt])
@pytest.mark.parametrize("coefficients", [1, 2, 3, 4, 7, 8, 11, 12, 15, 16])
def test_no_polynomial_errs_by_less_than_the_best_one(f, coefficients):
    best = best_polynomial(X, f(X), coefficients)
    assert best.least <= best.error + 1e-14
    assert best.error <= 1.001 * best.least + 1e-13


@pytest.fixture(scope="module")
def bell():
    return frontier("exp(-x**2)", (-2, 2), most=5)


def assert_never_worse(found):
    for fewer, more in zip(found.rows, found.rows[1:], strict=False):
        assert more.anchors == fewer.anchors + 1
        assert more.solved <= fewer.solved
        assert fewer.used <= fewer.anchors


@pytest.mark.slow
def test_more_anchors_never_have_a_worse_bound(bell):
    assert [row.anchors for row in bell.rows] == [2, 3, 4, 5]
    assert_never_worse(bell)
    assert bell.rows[-1].solved < 1e-4 * bell.rows[0].solved


def test_nor_have_they_at_kinks_in_float32():
    found = frontier("relu", (-1, 2), dtype="float32", most=3)
    assert_never_worse(found)
    assert found.rows[1].solved < 1e-4 < found.rows[1].uniform


def test_the_bounds_are_those_of_heads(bell):
    row = bell.rows[2]
    solved = head("exp(-x**2)", (-2, 2), anchors=row.anchors)
    even = head("exp(-x**2)", (-2, 2), anchors=row.anchors, placement="uniform")
    assert bell.kind == solved.certificate.kind == "proven"
    assert row.solved <= solved.certificate.bound
    assert (row.max_value, row.max_slope) == (solved.atom.max_value, solved.atom.max_slope)
    assert row.uniform <= even.certificate.bound <= 1.02 * row.uniform


def test_polynomials_are_best_for_the_function_on_its_domain(bell):
    s = np.linspace(-2, 2, 5001)
    expected = best_polynomial(s / 2, np.exp(-(s**2)), 5)
    assert bell.rows[3].polynomial == pytest.approx(expected.error, rel=1e-3)


def test_rows_end_where_more_anchors_gain_nothing():
    found = frontier("2 + 0*x", (-1, 1), most=16)
    assert [row.anchors for row in found.rows] == list(range(2, SHOWN + 1))
    assert {row.used for row in found.rows} == {1}
    assert found.rows[0].solved < 100 * found.resolution


def test_caps_are_kept():
    free, capped = (frontier("relu", (-1, 1), most=2, max_value=cap) for cap in (None, 1.0))
    assert max(row.max_value for row in capped.rows) <= 1 < max(row.max_value for row in free.rows)
    assert_never_worse(capped)


def test_callables_are_measured_and_several_functions_have_one_head():
    opaque = frontier(lambda x: np.tanh(x) ** 3, (-1, 1), most=2)
    assert opaque.kind == "measured"
    both = frontier(["tanh(x)", "x**2"], (-1, 1), most=2)
    assert both.rows[0].solved > 0.1
    assert both.rows[0].polynomial == pytest.approx(0.5, rel=1e-3)


def test_progress_is_told_in_words():
    told = []
    frontier("sin(x)+x", (-1, 1), most=2, progress=told.append)
    assert any(str(status).startswith("solving for a head: 2 anchors") for status in told)
    assert any(str(status).startswith("proving") for status in told)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"most": 1}, "most=1"),
        ({"most": 4.0}, "most=4.0"),
        ({"most": 1000}, "from 2 to"),
        ({"max_value": 0}, "above 0"),
        ({"max_slope": float("nan")}, "above 0"),
        ({"most": 2, "max_value": 1e-9}, "keeps to the caps"),
        ({"dtype": "float16"}, "float16"),
    ],
)
def test_what_makes_no_frontier_is_refused(options, message):
    with pytest.raises(AnchorheadError, match=message):
        frontier("cos", (-1, 1), **{"most": 3, **options})
