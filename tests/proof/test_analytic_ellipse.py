"""The theorem behind the proofs: an interval from a few values and an ellipse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorhead.proof.enclosures.balls import lower, upper
from anchorhead.proof.enclosures.ellipse import DEGREES, bound_on_cell, bound_on_ellipse, cardinal


@given(st.floats(-1e300, 1e300), st.floats(1e-320, 1e300))
def test_floats_are_rounded_outwards(middle: float, radius: float) -> None:
    ball = arb(middle, radius) / 3
    assert arb(upper(ball)) >= ball.upper()
    assert arb(lower(ball)) <= ball.lower()


def test_balls_that_are_not_finite_have_no_bound() -> None:
    assert upper(arb.nan()) == upper(arb.pos_inf()) == math.inf
    assert lower(arb.nan()) == -math.inf
    assert upper(arb(0)) == lower(arb(0)) == 0.0


@pytest.mark.parametrize("degree", DEGREES)
def test_the_matrix_evaluates_polynomials_within_its_stated_rounding(degree: int) -> None:
    """T_0 … T_n, whose values are cosines, from nodes to the fine grid."""
    matrix = cardinal(degree, 16)
    stated = 5 * (degree + 4) ** 2 * 2.0**-53
    fine, nodes = np.arange(16 * degree + 1), np.arange(degree + 1)
    for k in range(degree + 1):
        values = np.cos(np.pi * (k * nodes % (2 * degree)) / degree)
        found = matrix @ values
        wanted = np.cos(np.pi * (k * fine % (32 * degree)) / (16 * degree))
        assert np.abs(found - wanted).max() <= stated


@pytest.mark.parametrize("oversampling", [4, 16])
@pytest.mark.parametrize("degree", [3, 8, 24])
def test_a_polynomial_between_the_points_exceeds_them_by_the_cosine_at_most(degree: int, oversampling: int) -> None:
    rng = np.random.default_rng(degree)
    points = np.cos(np.arange(oversampling * degree + 1) * np.pi / (oversampling * degree))
    everywhere = np.cos(np.linspace(0, np.pi, 20001))
    for _ in range(50):
        series = np.polynomial.Chebyshev(rng.normal(size=degree + 1))
        ratio = np.abs(series(everywhere)).max() / np.abs(series(points)).max()
        assert ratio <= 1 / math.cos(math.pi / (2 * oversampling)) * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-3, 3),
    st.floats(0.01, 3),
    st.floats(-2, 2),
    st.floats(1e-3, 2),
    st.floats(-14, -1),
)
def test_a_cell_is_bounded_whatever_its_pole(
    real: float, imaginary: float, left: float, width: float, digits: float
) -> None:
    """1 / (1 + ((x - real) / imaginary)^2) on [left, left + width]: its largest value is known."""

    def bell(z: acb) -> acb:
        return 1 / (1 + ((z - arb(real)) / arb(imaginary)) ** 2)

    a, b = arb(left), arb(left) + arb(width)
    allowed = 10**digits
    with ctx.workprec(200):
        nearest = arb(real).max(a).min(b)
        largest = bell(acb(nearest)).real
        cell = bound_on_cell(bell, a.mid(), b.mid(), allowed, 16)
    if cell is None:
        return
    assert largest.lower() <= cell.bound
    assert cell.bound <= 1.005 * float(largest) + 1.1 * allowed
    for x, size in cell.points:
        assert size <= upper(largest)
        assert a - 1e-9 <= x <= b + 1e-9


def chebyshev(z: acb, degree: int) -> acb:
    before, here = acb(1), z
    for _ in range(degree - 1):
        before, here = here, 2 * z * here - before
    return here


@pytest.mark.parametrize("allowed", [1e-9, 1e-3, 0.1])
@pytest.mark.parametrize("degree", DEGREES)
def test_a_function_that_vanishes_at_every_node_is_not_taken_for_zero(degree: int, allowed: float) -> None:
    """T_2n is 1 at the nodes of degree n, so f = (T_2n - 1)/2 is 0 there, and -1 between them."""
    with ctx.workprec(300):
        cell = bound_on_cell(lambda z: (chebyshev(z, 2 * degree) - 1) / 2, arb(-1), arb(1), allowed, 16)
    assert cell is None or cell.bound >= 1
    assert cell is not None or degree > 16


@pytest.mark.parametrize("place", [acb(0, 0.3), acb(0.2, 0.05), acb(1.2, 0.2), acb(0, 1.3), acb(-0.4, 1.1)])
def test_a_faint_pole_inside_is_not_overlooked(place: acb) -> None:
    """On the rim of the ellipse the function is below 1e-28; inside it is not bounded."""

    def faint(z: acb) -> acb:
        return arb(1e-30) / ((z - place) * (z - place.conjugate()))

    assert bound_on_ellipse(faint, arb(0), arb(1), 1e-20) is None
    assert bound_on_cell(faint, arb(-1), arb(1), 1e-20, 16) is None


def test_a_pole_outside_does_no_harm() -> None:
    assert bound_on_ellipse(lambda z: 1 / (z - arb(2)), arb(0), arb(1), 1e6) is not None


@given(st.floats(-1.6, 1.6), st.floats(0, 1.3))
def test_the_bound_on_the_ellipse_covers_every_point(x: float, y: float) -> None:
    bound = bound_on_ellipse(lambda z: z.sin() * z.exp(), arb(0), arb(1), 1e6)
    assert bound is not None
    if math.hypot(x / (5 / 3), y / (4 / 3)) <= 1:
        for sign in (-1, 1):
            z = acb(x, sign * y)
            assert abs(z.sin() * z.exp()).lower() <= bound
