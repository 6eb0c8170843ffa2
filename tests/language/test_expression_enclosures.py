"""Enclosures contain what they must: real and complex balls, derivatives, affine forms; zero tolerance."""

import math
import random

import mpmath
import numpy as np
import pytest
from flint import acb, arb, ctx

from anchorhead.errors import AnchorheadError
from anchorhead.language.expressions.build import (
    add,
    div,
    integer_power,
    make,
    mul,
    neg,
    number,
    power,
    variable,
    where,
)
from anchorhead.language.expressions.expression import SMOOTH, postorder
from anchorhead.language.targets import Expression, analyse, parse

X, Y = variable("x"), variable("y")


def random_tree(rng: random.Random, depth: int, switches: bool = True) -> Expression:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice([X, Y, X, Y, number(rng.choice([0.5, -1, 2, 0.1, 3])), make("pi", ())])
    part = lambda: random_tree(rng, depth - 1, switches)  # noqa: E731
    choices = ["add", "mul", "div", "neg", "integer_power", "power", *SMOOTH] + ["add", "mul"] * 3
    op = rng.choice(choices + ["abs", "min", "max", "where"] * 2 if switches else choices)
    match op:
        case "add":
            return add(part(), part(), part())
        case "mul":
            return mul(part(), part())
        case "div":
            return div(part(), part())
        case "neg":
            return neg(part())
        case "integer_power":
            return integer_power(part(), rng.choice([2, 3, -1, -2, 5]))
        case "power":
            return power(make("exp", (part(),)), number(rng.choice([0.5, 1.5, -0.3])))
        case "where":
            return where(rng.choice(["<", "<="]), part(), part(), part(), part())
        case "min" | "max":
            return make(op, (part(), part(), part()))
        case _:
            return make(op, (part(),))


class Undefined(Exception):
    pass


def truth(expression: Expression, at: dict[str, mpmath.mpc | mpmath.mpf], real: bool = True):
    """The value by mpmath, written a second time from the definitions."""
    values: dict[Expression, object] = {}
    for node in postorder(expression.core):
        a = [values[arg] for arg in node.args]
        try:
            values[node] = _apply(node, a, at, real)
        except (ZeroDivisionError, OverflowError, ValueError) as error:
            raise Undefined from error
        if mpmath.isnan(values[node]) or mpmath.isinf(values[node]) or abs(values[node]) > mpmath.mpf(10) ** 50:
            raise Undefined
    return values[expression.core]


def _apply(node: Expression, a: list, at: dict, real: bool):
    match node.op:
        case "number":
            return mpmath.mpf(node.data)
        case "pi":
            return +mpmath.pi
        case "e":
            return +mpmath.e
        case "variable":
            return at[node.data]
        case "add":
            return mpmath.fsum(a)
        case "mul":
            return mpmath.fprod(a)
        case "neg":
            return -a[0]
        case "div":
            return a[0] / a[1]
        case "integer_power":
            return a[0] ** node.data
        case "power":
            return mpmath.exp(a[1] * _log(a[0], real))
        case "log":
            return _log(a[0], real)
        case "log1p":
            return _log(1 + a[0], real)
        case "sqrt":
            if real and a[0] < 0:
                raise Undefined
            return mpmath.sqrt(a[0])
        case "sigmoid":
            return 1 / (1 + mpmath.exp(-a[0]))
        case "softplus":
            return mpmath.log(1 + mpmath.exp(a[0]))
        case "abs":
            return abs(a[0])
        case "min":
            return min(a)
        case "max":
            return max(a)
        case "where":
            return a[2] if (a[0] < a[1] or (node.data == "<=" and a[0] == a[1])) else a[3]
        case _:
            return getattr(mpmath, node.op)(a[0])


def _log(a, real: bool):
    if real and a <= 0:
        raise Undefined
    return mpmath.log(a)


def near(value) -> arb:
    """A ball that surely holds an mpmath result of 100 digits whose cancellation lost at most 40."""
    with ctx.workprec(400):
        return arb(mpmath.nstr(value, 95)) + arb(0, 1) * (arb(10) ** -60) * (1 + arb(mpmath.nstr(abs(value), 10)))


@pytest.mark.parametrize("seed", range(150))
def test_a_real_ball_contains_every_value(seed: int) -> None:
    rng = random.Random(seed)
    expression = random_tree(rng, rng.choice([2, 3, 4]))
    for _ in range(6):
        centre = {name: rng.uniform(-3, 3) for name in ("x", "y")}
        radius = {name: rng.choice([0, 1e-9, 0.01, 0.5, 4]) for name in ("x", "y")}
        with ctx.workprec(rng.choice([53, 128])):
            box = {name: arb(centre[name], radius[name]) for name in centre}
            ball = expression.ball(box)
        for _ in range(4):
            point = {name: centre[name] + rng.uniform(-1, 1) * radius[name] for name in centre}
            if not all(box[name].contains(arb(point[name])) for name in point):
                continue
            with mpmath.workdps(100):
                try:
                    value = truth(expression, {name: mpmath.mpf(p) for name, p in point.items()})
                except Undefined:
                    continue
                assert not ball.is_finite() or ball.overlaps(near(value)), (
                    expression,
                    box,
                    point,
                    value,
                    ball,
                )


@pytest.mark.parametrize("seed", range(150))
def test_a_finite_complex_ball_contains_every_value(seed: int) -> None:
    rng = random.Random(1000 + seed)
    expression = random_tree(rng, rng.choice([2, 3]), switches=False)
    for _ in range(6):
        radius = rng.choice([0, 1e-6, 0.05, 0.5])
        centre = {name: complex(rng.uniform(-2, 2), rng.uniform(-2, 2)) for name in ("x", "y")}
        box = {n: acb(arb(c.real, radius), arb(c.imag, radius)) for n, c in centre.items()}
        ball = expression.complex_ball(box)
        if not ball.is_finite():
            continue
        for _ in range(4):
            point = {n: c + radius * complex(rng.uniform(-1, 1), rng.uniform(-1, 1)) * 0.999 for n, c in centre.items()}
            with mpmath.workdps(100):
                try:
                    value = truth(expression, {n: mpmath.mpc(p) for n, p in point.items()}, real=False)
                except Undefined:
                    continue
                value = mpmath.mpc(value)
                inside = ball.real.overlaps(near(value.real)), ball.imag.overlaps(near(value.imag))
                assert all(inside), (expression, point, value, ball)


SMOOTH_TEXTS = [
    "log(x)", "sqrt(x)", "x**0.3", "1/x", "softplus(x)", "mish(x)", "sigmoid(3*x)", "tanh(x)*x", "gelu(x)",
    "log1p(x**2)", "1/(1+x**2)", "2**x", "erfc(x)/x", "tan(x)", "sqrt(x**3 + 1)", "log(sin(x))",
]  # fmt: skip


@pytest.mark.parametrize("text", SMOOTH_TEXTS)
def test_where_a_complex_ball_is_finite_the_function_is_analytic(text: str) -> None:
    """Cauchy: the mean over a circle in the ball is the value at its centre; not over a cut or a pole."""
    rng, expression, checked = random.Random(text), parse(text), 0
    turns = [mpmath.expjpi(2 * mpmath.mpf(k) / 48) for k in range(48)]
    for _ in range(60):
        centre, radius = complex(rng.uniform(-5, 5), rng.uniform(-5, 5)), rng.choice([0.1, 0.5, 1, 2])
        ball = expression.complex_ball({"x": acb(arb(centre.real, radius), arb(centre.imag, radius))})
        if not ball.is_finite():
            continue
        values = [expression.complex_ball({"x": acb(centre + radius / 2 * complex(turn))}) for turn in turns]
        middle = expression.complex_ball({"x": acb(centre)})
        mean = sum(values, acb(0)) / len(values)
        size = float(max(value.abs_upper() for value in values))
        assert float((mean - middle).abs_upper()) <= 1e-10 * max(size, float(ball.abs_upper())), (
            centre,
            radius,
        )
        checked += 1
    assert checked >= 3


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("log(x)", (-1, 0)), ("sqrt(x)", (-1, 0)), ("x**0.5", (-1, 0)), ("1/x", (0, 0)), ("x**-2", (0, 0)),
        ("log(x)", (0, 0)), ("log1p(x)", (-2, 0)), ("sigmoid(x)", (0, math.pi)),
        ("tanh(x)", (0, math.pi / 2)),
        ("softplus(x)", (0, math.pi)), ("softplus(x)", (4, 3.2)), ("softplus(x)", (4, -3.1)),
        ("tan(x)", (math.pi / 2, 0)),
    ],
)  # fmt: skip
def test_cuts_and_poles_give_no_finite_ball(text: str, at: tuple[float, float]) -> None:
    for radius in (0.1, 1):
        assert not parse(text).complex_ball({"x": acb(arb(at[0], radius), arb(at[1], radius))}).is_finite()


def test_a_switch_needs_a_branch_in_the_complex_plane() -> None:
    expression = parse("abs(x) + max(x, 2*x, -1) + where(x < 1, x, x**2)")
    z = acb(-0.25, 0.5)
    with pytest.raises(AnchorheadError, match="analytic only piece by piece"):
        expression.complex_ball({"x": z})
    value = expression.complex_ball({"x": z}, branch={"x": arb(-0.3, 0.1)})
    assert value.overlaps(-z + z + z)
    with pytest.raises(AnchorheadError, match="not decided"):
        expression.complex_ball({"x": z}, branch={"x": arb(0, 0.1)})


@pytest.mark.parametrize("seed", range(120))
def test_derivatives_agree_with_differences(seed: int) -> None:
    rng = random.Random(2000 + seed)
    expression = random_tree(rng, 3)
    slope = expression.derivative("x")
    for _ in range(4):
        x, y = rng.uniform(-2, 2), rng.uniform(-2, 2)
        with mpmath.workdps(100), ctx.workprec(400):
            h = mpmath.mpf(10) ** -30
            try:
                at = [truth(expression, {"x": x + k * h, "y": mpmath.mpf(y)}) for k in (-1, 0, 1)]
                exact = truth(slope, {"x": mpmath.mpf(x), "y": mpmath.mpf(y)})
            except Undefined:
                continue
            sides = (at[1] - at[0]) / h, (at[2] - at[1]) / h
            if abs(sides[0] - sides[1]) > mpmath.mpf(10) ** -15 * (1 + abs(exact)):
                continue  # at a kink, or too curved for this step
            assert abs((sides[0] + sides[1]) / 2 - exact) <= mpmath.mpf(10) ** -12 * (1 + abs(exact)), expression
            ball = slope.ball({"x": arb(x), "y": arb(y)})
            assert not ball.is_finite() or ball.overlaps(near(exact))


def test_the_derivative_of_a_softened_function_does_not_cancel() -> None:
    for text in ("tanh(x)", "sigmoid(x)", "erf(x)"):
        value = parse(text).derivative("x").values({"x": np.array([20.0])})
        with ctx.workprec(200):
            exact = float(parse(text).derivative("x").ball({"x": arb(20)}))
        assert math.isclose(value[0], exact, rel_tol=1e-13)


def test_affine_forms() -> None:
    def form(text: str):
        result = parse(text, ("x", "y")).affine()
        return result and ({name: float(slope) for name, slope in result[0].items()}, float(result[1]))

    assert form("3*(x - y)/4 + 2 - x") == ({"x": -0.25, "y": -0.75}, 2.0)
    assert form("x - x + 5") == ({}, 5.0)
    assert form("pi*x")[0]["x"] == math.pi
    assert form("relu(2)*x + x**1") == ({"x": 3.0}, 0.0)
    for text in ("x*y", "x**2", "1/x", "sin(x)", "abs(x)", "x/0"):
        assert form(text) is None
    slopes, constant = parse("x/3 + 0.1").affine() or ({}, arb(0))
    assert not slopes["x"].is_exact()
    assert constant.is_exact()


def test_points_that_overflow_on_the_way_are_mended() -> None:
    x = np.array([-1000.0, -1.0, 0.0, 1000.0])
    np.testing.assert_allclose(parse("exp(x)/(1 + exp(x))").values({"x": x}), [0, 0.2689414213699951, 0.5, 1])
    np.testing.assert_allclose(parse("log(exp(x))").values({"x": x}), x, atol=1e-15)
    assert np.isnan(parse("log(x)").values({"x": x})[:2]).all()


def test_values_broadcast_and_name_what_is_missing() -> None:
    expression = parse("x*y + 1", ("x", "y"))
    assert expression.values({"x": np.ones((3, 1)), "y": np.ones(4)}).shape == (3, 4)
    assert parse("2").values({"x": np.zeros((5, 2))}).shape == (5, 2)
    with pytest.raises(AnchorheadError, match="no value for y in x"):
        expression.values({"x": 1.0})
    with pytest.raises(AnchorheadError, match="no value for y in x"):
        expression.ball({"x": arb(1)})
    with pytest.raises(AnchorheadError, match="no value for y in x"):
        expression.complex_ball({"x": acb(1)})


@pytest.mark.parametrize("seed", range(60))
def test_pieces_equal_the_function_on_random_trees(seed: int) -> None:
    rng = random.Random(3000 + seed)
    expression = random_tree(rng, 3).substitute({"y": number(0.7)})
    try:
        pieces = analyse(expression, -2, 2).pieces
    except AnchorheadError:
        return
    assert float(pieces[0].left) == -2
    assert float(pieces[-1].right) == 2
    for piece in pieces:
        assert not piece.expression.has_switches
        left, right = float(piece.left.mid()), float(piece.right.mid())
        assert left < right
        for _ in range(8):
            at = {"x": arb(rng.uniform(left, right))}
            with ctx.workprec(200):
                assert piece.expression.ball(at).overlaps(expression.ball(at))
                assert piece.expression.ball(at).is_finite()
