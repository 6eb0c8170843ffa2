"""Splines become targets that are equal to them: what their float64 coefficients say, in exact arithmetic."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from scipy.interpolate import (
    Akima1DInterpolator,
    BSpline,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
    UnivariateSpline,
    make_interp_spline,
)

import anchorhead as ah
from anchorhead.convert.splines import spline_target
from anchorhead.language.targets import Expression, target_of
from anchorhead.language.targets.mlp import Mlp
from anchorhead.proof.enclosures.balls import upper

X8, X12 = np.linspace(0, 3, 8), np.sort(np.random.default_rng(0).uniform(-2, 5, 12))
SMOOTH = {
    "cubic": CubicSpline(X8, np.sin(X8)),
    "natural": CubicSpline(X12, np.exp(-X12), bc_type="natural"),
    "pchip": PchipInterpolator(X12, np.sin(2 * X12)),
    "akima": Akima1DInterpolator(X12, np.cos(X12)),
    "hermite": CubicHermiteSpline(X8, np.sin(X8), np.cos(X8)),
    "far": CubicSpline(X8 + 1e4, 1e6 * np.sin(X8)),
    "one piece": PPoly([[1.0], [0.0], [2.0]], [0.5, 2.0]),
    "empty pieces": PPoly([[1.0, 7.0, 1.0], [0.0, 7.0, 2.0], [2.0, 7.0, 3.0]], [0.0, 1.0, 1.0, 2.0]),
    "of degree 2": make_interp_spline(X8, np.sin(X8), k=2),
    "of degree 3": make_interp_spline(X12, np.sin(X12), k=3),
    "of degree 5": make_interp_spline(X12, np.sin(X12), k=5),
    "basis without end knots": BSpline(np.arange(10.0), np.array([1.0, -2.0, 0.5, 3.0, 1.0, -1.0]), 3),
}
POLYLINES = {
    "spline of degree 1": make_interp_spline(X12, np.sin(3 * X12), k=1),
    "pieces": PPoly([[1.0, -1.0, 0.1], [0.0, 0.5, 0.25]], [0.0, 0.5, 0.75, 7.0]),
    "a line": PPoly([[0.3], [0.1]], [0.1, 0.7]),
    "a line as a cubic": PPoly([[0.0], [0.0], [0.3], [0.1]], [0.1, 0.7]),
    "a constant": PPoly([[2.0, 2.0]], [0.0, 1.0, 3.0]),
    "scaled": make_interp_spline(1e3 + X12, 1e5 * np.sin(3 * X12), k=1),
}


def as_ppoly(spline):
    return spline if isinstance(spline, PPoly) else PPoly.from_spline(spline)


def exact_value(spline, x):
    """The PPoly at x in rational arithmetic, pieces closed on the left, the last on both sides."""
    poly = as_ppoly(spline)
    low, high = (spline.x[0], spline.x[-1]) if poly is spline else (spline.t[spline.k], spline.t[-spline.k - 1])
    starts = [i for i in range(poly.c.shape[1]) if poly.x[i] < poly.x[i + 1] and low <= poly.x[i] < high]
    i = max((i for i in starts if poly.x[i] <= x), default=starts[0])
    value = Fraction(0)
    for c in poly.c[:, i].tolist():
        value = value * (Fraction(float(x)) - Fraction(float(poly.x[i]))) + Fraction(c)
    return value


def exactly(expression, x):
    """An expression of numbers, sums, products and switches, in rational arithmetic."""
    results = []
    rules = {"add": sum, "mul": prod, "neg": lambda args: -args[0]}
    for op, data, places in expression.program:
        args = [results[place] for place in places]
        if op == "where":
            a, b, then, other = args
            results.append(then if a < b else other)
        else:
            results.append(Fraction(x) if op == "variable" else Fraction(data) if op == "number" else rules[op](args))
    return results[-1]


def points(low, high, knots):
    inside = [float(knot) for knot in knots if low <= knot <= high]
    near = [np.nextafter(knot, side) for knot in inside for side in (low, high)]
    return [*np.linspace(low, high, 57).tolist(), *inside, *map(float, near)]


@pytest.mark.parametrize("name", SMOOTH)
def test_the_expression_is_the_spline_in_exact_arithmetic(name):
    spline = SMOOTH[name]
    expression, (low, high) = spline_target(spline)
    assert isinstance(expression, Expression)
    assert expression.variables == ("x",)
    for x in points(low, high, as_ppoly(spline).x):
        assert exactly(expression, x) == exact_value(spline, x)


@pytest.mark.parametrize("name", SMOOTH)
def test_rounding_at_the_knots_is_no_discontinuity(name):
    """The tiny jumps are found and counted, not refused; the values are scipy's."""
    spline = SMOOTH[name]
    expression, on = spline_target(spline)
    target = target_of(expression, on)
    x = np.linspace(*on, 300)
    scale = 1 + np.abs(spline(x)).max()
    assert np.abs(target.values(x)[:, 0] - spline(x)).max() <= 1e-13 * scale
    assert all(upper(kink.jump) <= 1e-13 * scale for kink in target.pieces.kinks)
    assert set(target.kinks) <= {float(knot) for knot in as_ppoly(spline).x}
    assert Expression.from_json(expression.to_json()) is expression


@pytest.mark.parametrize("name", POLYLINES)
def test_a_polyline_is_one_layer_of_relus_with_its_slopes_exactly(name):
    spline = POLYLINES[name]
    mlp, (low, high) = spline_target(spline)
    assert isinstance(mlp, Mlp)
    assert [layer.linear for layer in mlp.hidden] == [False, True]
    assert mlp.hidden[0].activations[0].op == "relu"
    knots = np.unique(as_ppoly(spline).x)
    for x in points(low, high, knots):
        ramps = [max(Fraction(x) + Fraction(b), Fraction(0)) for b in mlp.hidden[0].affine.bias.tolist()]
        lengths = [
            sum((Fraction(w) * r for w, r in zip(row, ramps, strict=True)), Fraction(0))
            for row in mlp.hidden[1].affine.weight.tolist()
        ]
        value = sum(
            (Fraction(s) * a for s, a in zip(mlp.readout.weight[0].tolist(), lengths, strict=True)),
            Fraction(float(mlp.readout.bias[0])),
        )
        truth = exact_value(spline, x)
        assert abs(value - truth) <= 1e-13 * (1 + abs(truth))
        assert abs(float(value) - float(mlp.values([x])[0])) <= 1e-13 * (1 + abs(float(truth)))


def test_a_polyline_of_dyadic_numbers_is_equal_to_its_spline():
    spline = PPoly([[1.0, -1.0, 0.125], [0.0, 0.5, 0.25]], [0.0, 0.5, 0.75, 7.0])
    mlp, on = spline_target(spline)
    assert on == (0.0, 7.0)
    x = np.arange(0, 7 * 64 + 1) / 64
    assert np.array_equal(mlp.values(x[:, None])[:, 0], spline(x))


@pytest.mark.parametrize(
    ("spline", "within"),
    [
        pytest.param(CubicSpline([0.0, 1.0, 3.0], [0.0, 1.0, 0.5], bc_type="natural"), 1e-2, marks=pytest.mark.slow),
        (make_interp_spline(np.linspace(0, 3, 5), np.sin(np.linspace(0, 3, 5)), k=3), 1e-2),
        (PchipInterpolator([0.0, 1.0, 3.0], [0.0, 1.0, 1.5]), 1e-2),
    ],
    ids=["cubic", "basis", "pchip"],
)
def test_heads_for_splines_are_proven_and_checked(spline, within):
    expression, on = spline_target(spline)
    head = ah.head(expression, on=on, within=within)
    assert head.certificate.kind == "proven"
    assert ah.check(head).stated == head.certificate.bound
    s = np.linspace(*on, 5001)
    assert np.abs(head(s) - spline(s)).max() <= head.certificate.bound <= within


def test_many_knots_nest_as_deep_as_the_logarithm_and_too_many_are_refused():
    x = np.linspace(0, 20, 81)
    spline = CubicSpline(x, np.sin(x))
    expression, on = spline_target(spline)
    s = np.linspace(*on, 1000)
    assert np.abs(expression.values({"x": s}) - spline(s)).max() <= 1e-15
    x = np.linspace(0, 20, 301)
    with pytest.raises(ah.AnchorheadError, match=r"300 pieces.*fewer knots"):
        spline_target(CubicSpline(x, np.sin(x)))


def changed(spline, **changes):
    for name, value in changes.items():
        setattr(spline, name, value)
    return spline


BAD = {
    "a jump": (lambda: PPoly([[1.0, 1.0], [0.0, 1.5]], [0.0, 1.0, 2.0]), r"jumps by 0\.5 at its knot x = 1"),
    "a small jump": (lambda: PPoly([[1.0, 1.0], [0.0, 1.0 + 1e-9]], [0.0, 1.0, 2.0]), "jumps by 1e-09"),
    "steps": (lambda: PPoly([[1.0, 2.0]], [0.0, 1.0, 2.0]), "jumps by 1"),
    "a jump in a cubic": (lambda: PPoly([[1.0, 0], [0, 0], [0, 0], [0, 0]], [0.0, 1.0, 2.0]), "jumps by -1"),
    "vectors": (lambda: CubicSpline(X8, np.stack([np.sin(X8), np.cos(X8)], 1)), "each of their entries"),
    "vectors of a basis": (lambda: make_interp_spline(X8, np.stack([X8, X8], 1)), "each of their entries"),
    "periodic": (lambda: CubicSpline([0, 1, 2], [0, 1, 0], bc_type="periodic"), "extrapolate=True"),
    "NaN": (lambda: PPoly([[1.0], [np.nan]], [0.0, 1.0]), r"nan at \(1, 0\)"),
    "NaN in a basis": (lambda: changed(make_interp_spline(X8, X8), c=np.full(8, np.nan)), "nan"),
    "complex": (lambda: PPoly([[1.0], [1j]], [0.0, 1.0]), "complex"),
    "descending": (lambda: PPoly([[1.0], [1.0]], [1.0, 0.0]), "ascending"),
    "another class": (lambda: UnivariateSpline(X8, np.sin(X8)), "make_interp_spline"),
    "a function": (lambda: np.sin, "make_interp_spline"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_continuous_scalar_spline_is_refused(name):
    make, message = BAD[name]
    with pytest.raises(ah.AnchorheadError, match=message):
        spline_target(make())


def test_one_period_of_a_periodic_spline_is_converted_on_request():
    spline = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, -1.0, 0.0], bc_type="periodic")
    expression, on = spline_target(changed(spline, extrapolate=True))
    assert on == (0.0, 3.0)
    assert abs(float(expression.values({"x": 1.5})) - float(spline(1.5))) <= 1e-15
